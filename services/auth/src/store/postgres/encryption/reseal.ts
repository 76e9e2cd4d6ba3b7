import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { SealedColumn, SealedColumnStore } from '../../../ports/sealed-column-store.ts';
import { type Queryable, query } from '../query.ts';

interface Texts {
  readonly find: string;
  readonly update: string;
}

function textsOf(table: string, column: string): Texts {
  return {
    find: `select id, ${column} as kept from ${table} where id > $1::uuid and ${column} <> '' order by id limit $2`,
    update: `with updated as (
        update ${table} t set ${column} = n.sealed
        from unnest($1::uuid[], $2::text[], $3::text[]) as n(id, kept, sealed)
        where t.id = n.id and t.${column} = n.kept
        returning 1
      )
      select count(*)::int as resealed from updated`,
  };
}

const texts: Readonly<Record<SealedColumn, Texts>> = {
  'password hashes': textsOf('users', 'encrypted_password'),
  'factor secrets': textsOf('mfa_factors', 'secret'),
  'refresh token keys': textsOf('sessions', 'refresh_token_hmac_key'),
};

interface KeptRow {
  readonly id: string;
  readonly kept: string;
}

/** {@link SealedColumnStore} over PostgreSQL. */
export function resealColumns(sql: Queryable, cipher: ColumnCipher): SealedColumnStore {
  return {
    async reseal(column, after, atMost) {
      const { find, update } = texts[column];
      // Parsed boundary: the two columns selected above.
      const rows = (await query(sql, find, [after, atMost])) as readonly unknown[] as readonly KeptRow[];
      const next = rows.length < atMost ? undefined : rows.at(-1)?.id;
      const old = rows.filter(({ kept }) => !cipher.isCurrent(kept));
      if (old.length === 0) return { resealed: 0, next };
      const [row] = await query(sql, update, [
        old.map(({ id }) => id),
        old.map(({ kept }) => kept),
        old.map(({ id, kept }) => cipher.seal(id, cipher.open(id, kept))),
      ]);
      return { resealed: Number(row?.resealed ?? 0), next };
    },
  };
}
