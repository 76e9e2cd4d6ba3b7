import type { Entry } from '@tollgate/rules/match';
import { formatPeriod } from '@tollgate/rules/windows';
import type { LimitCheck } from './check.ts';
import type { Limit } from './find-limit.ts';
import { Code } from './wire/response.ts';

// Clients choose keys and values, so what is kept of each is bounded, and so is their number.
const maxEntries = 8;
const maxChars = 100;

/** Refusals that are kept, the last ones. */
const maxRefusals = 1_000;

/** Counters of a sketch: about 1 MB with usual keys, 7 MB at most. */
const maxCounters = 2_048;

/** The top keys are those of this time and of the part that follows it. */
const sketchSeconds = 60;

/** A counter by its descriptor, without its window. */
interface KeyHits {
  readonly domain: string;
  readonly entries: readonly Entry[];
  hits: number;
}

/** A descriptor that was over its limit. */
export interface Refusal {
  readonly atMs: number;
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** The metric path of the rule. */
  readonly rule: string;
  readonly requestsPerUnit: number;
  readonly unit: string;
  readonly hits: number;
  /** The code of the request: OK when the limit or the service is in shadow mode. */
  readonly code: 'OK' | 'OVER_LIMIT';
}

/** Activity of a process, for the counter API. */
export interface ActivityReport {
  /** The time that `keys` are of. */
  readonly seconds: number;
  readonly keys: readonly Readonly<KeyHits>[];
  /** Keys may have had as many more hits. */
  readonly maxMissedHits: number;
  /** The last first. */
  readonly refusals: readonly Refusal[];
}

/** Remembers the heaviest keys and the last refusals of this process. */
export class Activity {
  readonly #nowMs: () => number;
  readonly #refusals: Refusal[] = [];
  #nextRefusal = 0;
  #current: Sketch;
  #previous: Sketch;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#current = new Sketch(this.#nowSeconds());
    this.#previous = this.#current;
  }

  /** Records a decided request. */
  record(domain: string, checks: readonly LimitCheck[], code: Code): void {
    this.#rotate();
    for (const { limit, hit, result } of checks) {
      if (hit.addend > 0) this.#current.add(domain, limit.keyEntries, hit.addend);
      if (result?.allowed === false) this.#addRefusal(domain, limit, hit.addend, code);
    }
  }

  report(): ActivityReport {
    this.#rotate();
    const sketches = new Set([this.#previous, this.#current]);
    const started = Math.min(...[...sketches].map(({ startedSeconds }) => startedSeconds));
    const newest = this.#refusals.slice(0, this.#nextRefusal).reverse();
    return {
      seconds: Math.max(1, this.#nowSeconds() - started),
      keys: sumKeys([...sketches].flatMap(({ keys }) => [...keys.values()])),
      maxMissedHits: [...sketches].reduce((sum, { maxMissedHits }) => sum + maxMissedHits, 0),
      refusals: [...newest, ...this.#refusals.slice(this.#nextRefusal).reverse()],
    };
  }

  #addRefusal(domain: string, limit: Limit, hits: number, code: Code): void {
    this.#refusals[this.#nextRefusal] = {
      atMs: this.#nowMs(),
      domain: shorten(domain),
      entries: shortenEntries(limit.keyEntries),
      rule: shorten(limit.metricPath.join('.')),
      requestsPerUnit: limit.rule.requestsPerUnit,
      unit: limit.rule.unit ?? formatPeriod(limit.rule.unitSeconds),
      hits,
      code: code === Code.OVER_LIMIT ? 'OVER_LIMIT' : 'OK',
    };
    this.#nextRefusal = (this.#nextRefusal + 1) % maxRefusals;
  }

  #nowSeconds(): number {
    return Math.floor(this.#nowMs() / 1000);
  }

  #rotate(): void {
    const now = this.#nowSeconds();
    const age = now - this.#current.startedSeconds;
    if (age < sketchSeconds) return;
    this.#previous = age < 2 * sketchSeconds ? this.#current : new Sketch(now);
    this.#current = new Sketch(now);
  }
}

/**
 * Hits by key of any number of keys, with a bounded number of counters (Misra and Gries): when
 * there is no counter left, the median count is taken from each and the empty ones are dropped. A
 * key misses at most 2/2048 of all hits by that.
 */
class Sketch {
  readonly startedSeconds: number;
  readonly keys = new Map<string, KeyHits>();
  maxMissedHits = 0;

  constructor(startedSeconds: number) {
    this.startedSeconds = startedSeconds;
  }

  add(domain: string, entries: readonly Entry[], hits: number): void {
    const key = toKey(domain, entries);
    const known = this.keys.get(key);
    if (known !== undefined) {
      known.hits += hits;
      return;
    }
    if (this.keys.size >= maxCounters) this.#drop();
    this.keys.set(key, { domain: shorten(domain), entries: shortenEntries(entries), hits });
  }

  #drop(): void {
    const counts = Float64Array.from(this.keys.values(), ({ hits }) => hits).sort();
    const median = counts[counts.length >> 1] ?? 0;
    this.maxMissedHits += median;
    for (const [key, counter] of this.keys) {
      counter.hits -= median;
      if (counter.hits <= 0) this.keys.delete(key);
    }
  }
}

/** Equal keys are added up, the heaviest first. */
function sumKeys(counters: readonly Readonly<KeyHits>[]): readonly Readonly<KeyHits>[] {
  const sums = new Map<string, KeyHits>();
  for (const counter of counters) {
    const key = toKey(counter.domain, counter.entries);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { ...counter });
    else sum.hits += counter.hits;
  }
  return [...sums.values()].sort((a, b) => b.hits - a.hits);
}

function toKey(domain: string, entries: readonly Entry[]): string {
  let key = shorten(domain);
  const count = Math.min(entries.length, maxEntries);
  for (let i = 0; i < count; i += 1) {
    const { key: name = '', value = '' } = entries[i] ?? {};
    key += `\0${shorten(name)}\0${shorten(value)}`;
  }
  return key;
}

function shortenEntries(entries: readonly Entry[]): readonly Entry[] {
  return entries.slice(0, maxEntries).map(({ key, value }) => ({ key: shorten(key), value: shorten(value) }));
}

function shorten(text: string): string {
  // A copy: V8 keeps the whole text for a part of it.
  return text.length <= maxChars ? text : `${Buffer.from(text.slice(0, maxChars)).toString()}…`;
}
