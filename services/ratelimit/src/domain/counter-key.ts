import type { Entry } from '@tollgate/rules/match';
import { windowStart } from './window.ts';

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
