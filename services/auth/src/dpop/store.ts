import { Batch, maxBatchRows, type Queryable } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { text, timestamptz } from '../db/sql-types.ts';
import { parameters, raw, statement } from '../db/statement.ts';

/** A proof that was used, and until when it would be accepted. */
interface UsedProof {
  readonly digest: string;
  readonly usedAt: Date;
  readonly expiresAt: Date;
}

const p = parameters(timestamptz, 'at');

/** More than a batch adds, so that the table has the proofs of about a minute. */
const removedRows = raw(2 * maxBatchRows);

// Rows are inserted in the order of the digests, so that concurrent statements do not deadlock.
const use = statement({ digest: text })`
  with expired as (
    delete from dpop_proofs where digest = any(array(
      select digest from dpop_proofs where expires_at < ${p.at} order by expires_at limit ${removedRows} for update skip locked))
  )
  insert into dpop_proofs (digest, expires_at)
  select i.digest, i.expires_at from ${batchedInput<UsedProof>({
    digest: column(text, ({ digest }) => digest),
    expires_at: column(timestamptz, ({ expiresAt }) => expiresAt),
  })} order by i.digest
  on conflict (digest) do nothing returning digest`;

/** Connections of the pool that checks of proofs may use. */
const maxConcurrent = 4;

/** Used proofs, for all replicas. Expired ones are removed with each use. */
export class DpopProofStore {
  readonly #uses: Batch<UsedProof, boolean>;

  constructor(sql: Queryable) {
    this.#uses = new Batch({
      maxConcurrent,
      run: async (items) => {
        const [first] = items;
        if (first === undefined) return [];
        const rows = await use.run(sql, { items, at: first.usedAt });
        const added = new Set(rows.map(({ digest }) => digest));
        // One of equal items is the first use.
        return items.map(({ digest }) => added.delete(digest));
      },
    });
  }

  /** Returns true for one of concurrent uses. */
  async use(proof: UsedProof): Promise<boolean> {
    return this.#uses.add(proof);
  }
}
