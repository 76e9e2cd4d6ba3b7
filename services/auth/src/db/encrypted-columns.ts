import type { ColumnCipher } from '../keys/secrets.ts';
import type { Queryable } from './connection.ts';
import { integer, text, uuid } from './sql-types.ts';
import { parameters, raw, statement } from './statement.ts';

const encryptedColumns = [
  'password hashes',
  'factor secrets',
  'refresh token keys',
  'provider secrets',
  'webhook secrets',
  'previous webhook secrets',
] as const;

type EncryptedColumn = (typeof encryptedColumns)[number];

interface ReencryptedBatch {
  readonly reencrypted: number;
  /** Id after which the next batch starts. Undefined after the last one. */
  readonly next: string | undefined;
}

const p = {
  ...parameters(uuid, 'after'),
  ...parameters(integer, 'limit'),
  ...parameters(uuid.list, 'ids'),
  ...parameters(text.list, 'stored', 'encrypted'),
};

function columnQueries(tableName: string, columnName: string) {
  const [table, column] = [raw(tableName), raw(columnName)];
  return {
    find: statement({ id: uuid, stored: text.notNull })`
      select id, ${column} as stored from ${table} where id > ${p.after}::uuid and ${column} <> ''
      order by id limit ${p.limit}`,
    update: statement({ reencrypted: integer })`with updated as (
        update ${table} t set ${column} = n.encrypted
        from unnest(${p.ids}::uuid[], ${p.stored}::text[], ${p.encrypted}::text[]) as n(id, stored, encrypted)
        where t.id = n.id and t.${column} = n.stored
        returning 1
      )
      select count(*)::int as reencrypted from updated`,
  };
}

const queries = {
  'password hashes': columnQueries('users', 'encrypted_password'),
  'factor secrets': columnQueries('mfa_factors', 'secret'),
  'refresh token keys': columnQueries('sessions', 'refresh_token_hmac_key'),
  'provider secrets': columnQueries('custom_oauth_providers', 'client_secret'),
  'webhook secrets': columnQueries('tollgate_webhooks', 'secret'),
  'previous webhook secrets': columnQueries('tollgate_webhooks', 'previous_secret'),
} satisfies Readonly<Record<EncryptedColumn, unknown>>;

export class EncryptedColumnStore {
  readonly #sql: Queryable;
  readonly #cipher: ColumnCipher;

  constructor(sql: Queryable, cipher: ColumnCipher) {
    this.#sql = sql;
    this.#cipher = cipher;
  }

  /**
   * Encrypts up to `limit` values of rows whose ids come after `after` as the current settings
   * require. Values that change concurrently keep the concurrent change.
   */
  async reencrypt(column: EncryptedColumn, after: string, limit: number): Promise<ReencryptedBatch> {
    const { find, update } = queries[column];
    const rows = await find.run(this.#sql, { after, limit });
    const next = rows.length < limit ? undefined : rows.at(-1)?.id;
    const old = rows.filter(({ stored }) => !this.#cipher.isCurrent(stored));
    if (old.length === 0) return { reencrypted: 0, next };
    const row = await update.first(this.#sql, {
      ids: old.map(({ id }) => id),
      stored: old.map(({ stored }) => stored),
      encrypted: old.map(({ id, stored }) => this.#cipher.encrypt(id, this.#cipher.decrypt(id, stored))),
    });
    return { reencrypted: row?.reencrypted ?? 0, next };
  }
}

const nilUuid = '00000000-0000-0000-0000-000000000000';
/** Rows that one statement reads and writes. */
const batchSize = 500;

/**
 * Encrypts all stored values with the current key, or decrypts them if encryption is off, and
 * returns the number of changed values. It may be interrupted and repeated while the service runs.
 */
export async function reencrypt(
  columns: EncryptedColumnStore,
): Promise<Readonly<Record<EncryptedColumn, number>>> {
  const counts = {
    'password hashes': 0,
    'factor secrets': 0,
    'refresh token keys': 0,
    'provider secrets': 0,
    'webhook secrets': 0,
    'previous webhook secrets': 0,
  };
  for (const column of encryptedColumns) {
    let after: string | undefined = nilUuid;
    while (after !== undefined) {
      const batch = await columns.reencrypt(column, after, batchSize);
      counts[column] += batch.reencrypted;
      after = batch.next;
    }
  }
  return counts;
}
