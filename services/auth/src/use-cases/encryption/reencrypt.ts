import { type SealedColumn, sealedColumns } from '../../ports/sealed-column-store.ts';
import type { Services } from '../../services.ts';

/** Encrypts what is kept with the key of today, or decrypts it where nothing is to be encrypted; answers how many values that were. */
export type Reencrypt = () => Promise<Readonly<Record<SealedColumn, number>>>;

/** Before all ids. */
const nilUuid = '00000000-0000-0000-0000-000000000000';
/** Rows that are read, and written, by one statement. */
const batchSize = 500;

/** Creates {@link Reencrypt}. It may be interrupted and run again, also while the service runs. */
export function createReencrypt({ store }: Pick<Services, 'store'>): Reencrypt {
  async function reencryptColumn(column: SealedColumn): Promise<number> {
    let resealed = 0;
    let after: string | undefined = nilUuid;
    while (after !== undefined) {
      const step = await store.sealedColumns.reseal(column, after, batchSize);
      resealed += step.resealed;
      after = step.next;
    }
    return resealed;
  }

  return async () => {
    const counts = { 'password hashes': 0, 'factor secrets': 0, 'refresh token keys': 0 };
    for (const column of sealedColumns) counts[column] = await reencryptColumn(column);
    return counts;
  };
}
