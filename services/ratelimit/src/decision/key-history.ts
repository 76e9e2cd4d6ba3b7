import type { KeyHits, KeySketch } from './key-sketch.ts';

/** Minutes that are remembered, the current one included. */
const maxMinutes = 60;

/** Keys that are remembered: about 5 MB at most. */
const maxKeys = 1_000;

interface Minute extends Pick<KeyHits, 'hits' | 'refused' | 'peakSecond' | 'missed'> {
  /** Since the epoch. */
  readonly minute: number;
}

type Key = Pick<KeyHits, 'domain' | 'entries' | 'rule' | 'isOwn'>;

interface KeyRecord extends Key {
  /** Minutes with hits, the oldest first. */
  readonly minutes: readonly Minute[];
}

/** A key with a number for each minute of the report, the oldest first. */
interface KeyOfHour extends Key {
  readonly hits: readonly number[];
  readonly refused: readonly number[];
  readonly peakSecond: readonly number[];
  /** Hits that may be missing. */
  readonly missed: readonly number[];
}

/** The keys of a report, all by default. */
export interface KeySelection {
  readonly domain?: string | undefined;
  /** The number of keys with the most hits. */
  readonly limit?: number;
}

interface HistoryReport {
  /** Beginning of the first minute. */
  readonly sinceMs: number;
  /** False when keys were left out, since there were too many. */
  readonly isComplete: boolean;
  /** The keys with the most hits come first. */
  readonly keys: readonly KeyOfHour[];
}

/** The heaviest keys of the last hour, by minutes of the clock. */
export class KeyHistory {
  readonly #firstMinute: number;
  #records: ReadonlyMap<string, KeyRecord> = new Map();
  /** The most hits of a key that was left out, by minutes that have any. */
  #missed: ReadonlyMap<number, number> = new Map();

  constructor(firstMinute: number) {
    this.#firstMinute = firstMinute;
  }

  /** Adds a minute that has ended. */
  add(sketch: KeySketch): void {
    const merged = merge(this.#records, sketch);
    const sorted = byHits(merged);
    this.#missed = addMissed(this.#missed, sketch, sorted.slice(maxKeys));
    this.#records = sorted.length > maxKeys ? new Map(sorted.slice(0, maxKeys)) : merged;
  }

  /**
   * The hour that ends with a minute, of which `current` is known so far. Only selected keys get
   * their numbers: decisions wait meanwhile.
   */
  report(current: KeySketch, { domain, limit }: KeySelection): HistoryReport {
    const { minute } = current;
    const first = Math.max(this.#firstMinute, minute - maxMinutes + 1);
    const minutes = Array.from({ length: minute - first + 1 }, (_, index) => first + index);
    const missed = addMissed(this.#missed, current, []);
    const isComplete = minutes.every((one) => !missed.has(one));
    const all = byHits(merge(this.#records, current));
    const ofDomain = domain === undefined ? all : all.filter(([, key]) => key.domain === domain);
    const keys = ofDomain.slice(0, limit).map(([, { minutes: known, ...key }]) => {
      const byMinute = new Map(known.map((one) => [one.minute, one]));
      const numbers = (name: 'hits' | 'refused' | 'peakSecond') =>
        minutes.map((one) => byMinute.get(one)?.[name] ?? 0);
      return {
        ...key,
        ...{ hits: numbers('hits'), refused: numbers('refused'), peakSecond: numbers('peakSecond') },
        missed: minutes.map((one) => byMinute.get(one)?.missed ?? missed.get(one) ?? 0),
      };
    });
    return { sinceMs: first * 60_000, isComplete, keys };
  }
}

/** The records with the keys of a minute, without minutes that are more than an hour older. */
function merge(
  records: ReadonlyMap<string, KeyRecord>,
  { minute, keys }: KeySketch,
): ReadonlyMap<string, KeyRecord> {
  const merged = new Map<string, KeyRecord>();
  for (const [name, record] of records) {
    const minutes = record.minutes.filter((one) => one.minute > minute - maxMinutes);
    if (minutes.length > 0) merged.set(name, { ...record, minutes });
  }
  for (const [name, { domain, entries, rule, isOwn, hits, refused, peakSecond, missed }] of keys) {
    const minutes = merged.get(name)?.minutes ?? [];
    const added = { minute, hits, refused, peakSecond, missed };
    merged.set(name, { domain, entries, rule, isOwn, minutes: [...minutes, added] });
  }
  return merged;
}

/** Adds the hits that keys without a counter, and records that are left out, may have had. */
function addMissed(
  missed: ReadonlyMap<number, number>,
  { minute, maxMissedHits }: KeySketch,
  leftOut: readonly (readonly [string, KeyRecord])[],
): ReadonlyMap<number, number> {
  const sums = new Map([...missed].filter(([one]) => one > minute - maxMinutes));
  if (maxMissedHits > 0) sums.set(minute, maxMissedHits);
  for (const [, { minutes }] of leftOut)
    for (const one of minutes)
      sums.set(one.minute, Math.max(sums.get(one.minute) ?? 0, one.hits + one.missed));
  return sums;
}

function byHits(records: ReadonlyMap<string, KeyRecord>): (readonly [string, KeyRecord])[] {
  const sums = [...records].map(([name, record]) => {
    const hits = record.minutes.reduce((sum, minute) => sum + minute.hits, 0);
    return { hits, entry: [name, record] as const };
  });
  return sums.sort((a, b) => b.hits - a.hits).map(({ entry }) => entry);
}
