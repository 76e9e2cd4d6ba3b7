import type { Entry } from '@tollgate/rules/match';

/** Start of the fixed window that holds `nowSeconds`, in Unix seconds. Windows are aligned to the epoch. */
export function windowStart(nowSeconds: number, unitSeconds: number): number {
  return nowSeconds - (nowSeconds % unitSeconds);
}

/** Whole seconds until the window ends: 1 to `unitSeconds`, never 0. */
export function secondsUntilReset(nowSeconds: number, unitSeconds: number): number {
  return unitSeconds - (nowSeconds % unitSeconds);
}

/**
 * The name of a counter: `<prefix><domain>_<key>_<value>_…<window start>`.
 *
 * Byte for byte what envoyproxy/ratelimit writes, so that both can share one Redis during a migration.
 * That includes its ambiguities: nothing is escaped and the unit is not part of the key.
 */
export function counterKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  nowSeconds: number,
  unitSeconds: number,
): string {
  let key = `${prefix}${domain}_`;
  for (const entry of entries) {
    key += `${entry.key}_${entry.value}_`;
  }
  return key + windowStart(nowSeconds, unitSeconds);
}
