import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { RefreshCounter } from '../../../ports/session-store.ts';
import type { Row } from '../query.ts';

/** What is kept of a session whose refresh tokens are not kept, for `… sessions s`; {@link refreshCounterOf} reads it. */
export const refreshCounterColumns = 's.refresh_token_hmac_key, s.refresh_token_counter';

interface RefreshCounterRow {
  readonly refresh_token_hmac_key: string | null;
  /** A bigint, which the library answers as text. */
  readonly refresh_token_counter: string | null;
}

/** Reads {@link refreshCounterColumns}; undefined for a session whose refresh tokens are kept. */
export function refreshCounterOf(
  row: Row,
  { sessionId, cipher }: { readonly sessionId: string; readonly cipher: ColumnCipher },
): RefreshCounter | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const { refresh_token_hmac_key: kept, refresh_token_counter: counter } =
    row as unknown as RefreshCounterRow;
  return kept === null ? undefined : { hmacKey: cipher.open(sessionId, kept), counter: Number(counter ?? 0) };
}
