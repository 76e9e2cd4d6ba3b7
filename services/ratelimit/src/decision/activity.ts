import type { Entry } from '@tollgate/rules/match';
import { formatPeriod } from '@tollgate/rules/windows';
import type { LimitCheck } from './check.ts';
import type { Limit } from './find-limit.ts';
import { KeyHistory, type KeySelection } from './key-history.ts';
import { type KeyHits, KeySketch, shorten, shortenEntries } from './key-sketch.ts';
import { Code } from './wire/response.ts';

/** Refusals that are kept, the last ones. */
const maxRefusals = 1_000;

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

type TopKey = Readonly<Pick<KeyHits, 'domain' | 'entries' | 'hits'>>;

/** Activity of a process, for the counter API. */
export interface ActivityReport {
  /** The time that `keys` are of. */
  readonly seconds: number;
  readonly keys: readonly TopKey[];
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
  readonly #history: KeyHistory;
  /** The minute of the clock so far. */
  #current: KeySketch;
  /** The minute before it. */
  #previous: KeySketch;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#current = new KeySketch(this.#nowSeconds());
    this.#previous = this.#current;
    this.#history = new KeyHistory(this.#current.minute);
  }

  /** Records a decided request. */
  record(domain: string, checks: readonly LimitCheck[], code: Code): void {
    const second = this.#nowSeconds();
    this.#rotate(second);
    for (const check of checks) {
      const { limit, hit, result } = check;
      const isOver = result?.allowed === false;
      if (hit.addend > 0)
        this.#current.add(domain, check, { second, isRefused: isOver && code === Code.OVER_LIMIT });
      if (isOver) this.#addRefusal(domain, limit, hit.addend, code);
    }
  }

  report(): ActivityReport {
    this.#rotate(this.#nowSeconds());
    const sketches = new Set([this.#previous, this.#current]);
    const started = Math.min(...[...sketches].map(({ startedSeconds }) => startedSeconds));
    const newest = this.#refusals.slice(0, this.#nextRefusal).reverse();
    return {
      seconds: Math.max(1, this.#nowSeconds() - started),
      keys: sumKeys([...sketches].flatMap(({ keys }) => [...keys])),
      maxMissedHits: [...sketches].reduce((sum, { maxMissedHits }) => sum + maxMissedHits, 0),
      refusals: [...newest, ...this.#refusals.slice(this.#nextRefusal).reverse()],
    };
  }

  /** The heaviest keys of the last hour. */
  reportHour(selection: KeySelection = {}): ReturnType<KeyHistory['report']> {
    this.#rotate(this.#nowSeconds());
    return this.#history.report(this.#current, selection);
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

  #rotate(now: number): void {
    const age = Math.floor(now / 60) - this.#current.minute;
    // The clock may have been set back.
    if (age <= 0) return;
    this.#history.add(this.#current);
    this.#previous = age === 1 ? this.#current : new KeySketch(now);
    this.#current = new KeySketch(now);
  }
}

/** Equal keys are added up, the heaviest first. */
function sumKeys(counters: readonly (readonly [string, KeyHits])[]): readonly TopKey[] {
  const sums = new Map<string, { -readonly [Field in keyof TopKey]: TopKey[Field] }>();
  for (const [key, { domain, entries, hits }] of counters) {
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { domain, entries, hits });
    else sum.hits += hits;
  }
  return [...sums.values()].sort((a, b) => b.hits - a.hits);
}
