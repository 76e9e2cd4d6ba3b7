import type { Entry } from '@tollgate/rules/match';
import type { Limit } from './find-limit.ts';
import type { DecisionOptions } from './options.ts';

/** Options on which keys of counters depend besides the limit. */
export type KeyOptions = Pick<DecisionOptions, 'cacheKeyPrefix' | 'cacheKeyEscape'>;

/**
 * The key of the counter of a limit at a time: `<prefix><domain>_<key>_<value>_…` and then the
 * start of the window or the name of the algorithm. Windows other than those of units have their
 * label before the start: `5m_1200`, `day_Europe/Berlin_1200`.
 */
export function limitKey(
  { cacheKeyPrefix, cacheKeyEscape }: KeyOptions,
  domain: string,
  { keyEntries, windows, rule }: Pick<Limit, 'keyEntries' | 'windows' | 'rule'>,
  nowSeconds: number,
): string {
  const { rate, unitSeconds } = rule;
  if (rate !== undefined) return escapedEntriesKey(cacheKeyPrefix, domain, keyEntries) + rate.algorithm;
  const start = windows === undefined ? windowStart(nowSeconds, unitSeconds) : windows.at(nowSeconds).start;
  const label = windows === undefined || windows.label === '' ? '' : windows.label;
  if (cacheKeyEscape) {
    const entries = escapedEntriesKey(cacheKeyPrefix, domain, keyEntries);
    return label === '' ? `${entries}${start}` : `${entries}${escapePart(label)}_${start}`;
  }
  const entries = originalEntriesKey(cacheKeyPrefix, domain, keyEntries);
  return label === '' ? `${entries}${start}` : `${entries}${label}_${start}`;
}

/** Prefix of the keys of fixed windows of these entries, whatever entries follow. */
export function windowKeyPrefix(options: KeyOptions, domain: string, entries: readonly Entry[]): string {
  return keyPrefixes(options, domain, { entries }).windows;
}

interface KeyPrefixes {
  readonly windows: string;
  /** Prefix of the other algorithms. */
  readonly others: string;
}

/** Prefixes of keys. After the entries there may be a key without its value. */
export function keyPrefixes(
  { cacheKeyPrefix, cacheKeyEscape }: KeyOptions,
  domain: string,
  { entries, lastKey }: { readonly entries: readonly Entry[]; readonly lastKey?: string },
): KeyPrefixes {
  const escapedEntries = escapedEntriesKey(cacheKeyPrefix, domain, entries);
  const others = lastKey === undefined ? escapedEntries : `${escapedEntries}${escapePart(lastKey)}_`;
  if (cacheKeyEscape) return { windows: others, others };
  const windows = originalEntriesKey(cacheKeyPrefix, domain, entries);
  return { windows: lastKey === undefined ? windows : `${windows}${lastKey}_`, others };
}

/**
 * Byte for byte that of envoyproxy/ratelimit, so that both can share one Redis during a migration.
 * This includes its ambiguities: nothing is escaped, and the unit is not part of the key.
 */
function originalEntriesKey(prefix: string, domain: string, entries: readonly Entry[]): string {
  let key = `${prefix}${domain}_`;
  for (const entry of entries) key += `${entry.key}_${entry.value}_`;
  return key;
}

/** Every `_` that is not after a `~` ends a part, so that no two descriptors have the same key. */
function escapedEntriesKey(prefix: string, domain: string, entries: readonly Entry[]): string {
  let key = `${prefix}${escapePart(domain)}_`;
  for (const entry of entries) key += `${escapePart(entry.key)}_${escapePart(entry.value)}_`;
  return key;
}

const special = /[_~]/;
const allSpecial = /[_~]/g;

/** `~_` for `_`, and `~~` for `~`: neither Redis, its patterns nor JSON have a meaning for `~`. */
function escapePart(text: string): string {
  return special.test(text) ? text.replace(allSpecial, '~$&') : text;
}

/** Start of the fixed window, in Unix seconds. Windows are aligned to the epoch. */
function windowStart(nowSeconds: number, unitSeconds: number): number {
  return nowSeconds - (nowSeconds % unitSeconds);
}

/** Whole seconds until the window ends: 1 to `unitSeconds`. */
export function secondsUntilReset(nowSeconds: number, unitSeconds: number): number {
  return unitSeconds - (nowSeconds % unitSeconds);
}
