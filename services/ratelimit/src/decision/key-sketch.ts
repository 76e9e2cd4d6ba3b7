import type { Entry } from '@tollgate/rules/match';
import type { Rule } from '@tollgate/rules/rule-set';
import type { LimitCheck } from './check.ts';

// Clients choose keys and values, so what is kept of each is bounded, and so is their number.
const maxEntries = 8;
const maxChars = 100;

/** Counters of a sketch: about 1 MB with usual keys, 7 MB at most. */
const maxCounters = 2_048;

/** A counter by its descriptor, without its window. */
export interface KeyHits {
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** The rule that limited its first hit of the sketch. */
  readonly rule: Rule;
  /** Whether the request brought the limit. */
  readonly isOwn: boolean;
  /** Hits that the key may have had before, when it had no counter. */
  readonly missed: number;
  hits: number;
  /** Hits of refused requests that were over this limit. */
  refused: number;
  /** Most hits within a second. */
  peakSecond: number;
  /** The last second with hits. */
  second: number;
  hitsOfSecond: number;
}

/**
 * Hits of a minute by key, of any number of keys, with a bounded number of counters (Misra and
 * Gries): when there is no counter left, the median count is taken from each and the empty ones are
 * dropped. A key misses at most 2/2048 of all hits by that. What is taken is kept as one sum, so
 * that a counter has all hits since it began.
 */
export class KeySketch {
  readonly startedSeconds: number;
  readonly keys = new Map<string, KeyHits>();
  /** The most hits that a key without a counter may have had. */
  maxMissedHits = 0;

  constructor(startedSeconds: number) {
    this.startedSeconds = startedSeconds;
  }

  /** Minutes since the epoch. */
  get minute(): number {
    return Math.floor(this.startedSeconds / 60);
  }

  add(
    domain: string,
    { limit, hit }: LimitCheck,
    { second, isRefused }: { readonly second: number; readonly isRefused: boolean },
  ): void {
    const { addend } = hit;
    const key = toKey(domain, limit.keyEntries);
    const known = this.keys.get(key);
    if (known === undefined) {
      if (this.keys.size >= maxCounters) this.#drop();
      this.keys.set(key, {
        ...{ domain: shorten(domain), entries: shortenEntries(limit.keyEntries) },
        ...{ rule: limit.rule, isOwn: limit.isOwn, hits: addend },
        ...{ refused: isRefused ? addend : 0, missed: this.maxMissedHits },
        ...{ peakSecond: addend, second, hitsOfSecond: addend },
      });
      return;
    }
    known.hits += addend;
    if (isRefused) known.refused += addend;
    known.hitsOfSecond = known.second === second ? known.hitsOfSecond + addend : addend;
    known.second = second;
    if (known.hitsOfSecond > known.peakSecond) known.peakSecond = known.hitsOfSecond;
  }

  #drop(): void {
    const counts = Float64Array.from(this.keys.values(), ({ hits, missed }) => hits + missed).sort();
    // Refunds may have made it less.
    this.maxMissedHits = Math.max(this.maxMissedHits, counts[counts.length >> 1] ?? 0);
    for (const [key, { hits, missed }] of this.keys)
      if (hits + missed <= this.maxMissedHits) this.keys.delete(key);
  }
}

/** Equal for equal keys, also where their texts are shortened. */
function toKey(domain: string, entries: readonly Entry[]): string {
  let key = shorten(domain);
  const count = Math.min(entries.length, maxEntries);
  for (let i = 0; i < count; i += 1) {
    const { key: name = '', value = '' } = entries[i] ?? {};
    key += `\0${shorten(name)}\0${shorten(value)}`;
  }
  return key;
}

export function shortenEntries(entries: readonly Entry[]): readonly Entry[] {
  return entries.slice(0, maxEntries).map(({ key, value }) => ({ key: shorten(key), value: shorten(value) }));
}

export function shorten(text: string): string {
  // A copy: V8 keeps the whole text for a part of it.
  return text.length <= maxChars ? text : `${Buffer.from(text.slice(0, maxChars)).toString()}…`;
}
