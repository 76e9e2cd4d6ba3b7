/**
 * Upper bounds in milliseconds of the exported buckets: the default buckets of Prometheus clients, which begin at 5 ms, and
 * finer ones below, where nearly all decisions are.
 */
export const bucketBoundsMs: readonly number[] = [
  0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
];

// Quantiles come from a second, finer set of buckets: eight to each doubling, from 1/64 ms to about 2^16 ms, so that
// a quantile is at most 9 % too high.
const stepsPerDoubling = 8;
const smallestExponent = -6;
const largestExponent = 16;
const fineCount = (largestExponent - smallestExponent) * stepsPerDoubling + 1;

/** Everything ever recorded by one timer, in constant memory. */
export interface TimingHistogram {
  /** Number of recordings. */
  readonly count: number;
  /** Sum of all recordings in milliseconds. */
  readonly sumMs: number;
  /** How many recordings were at most `bucketBoundsMs[i]`, not counting those of lower bounds. */
  readonly buckets: readonly number[];
  /** Adds one recording. Negative values (a clock that stepped back) count as 0. */
  record(ms: number): void;
  /** The value that a share `q` (0 to 1) of all recordings does not exceed, at most 9 % too high; 0 when empty. */
  quantileMs(q: number): number;
}

/** Makes an empty histogram. */
export function createTimingHistogram(): TimingHistogram {
  const buckets = new Array<number>(bucketBoundsMs.length).fill(0);
  const fine = new Float64Array(fineCount);
  let count = 0;
  let sumMs = 0;
  return {
    get count() {
      return count;
    },
    get sumMs() {
      return sumMs;
    },
    buckets,
    record(ms) {
      const value = Math.max(ms, 0);
      count += 1;
      sumMs += value;
      for (let i = 0; i < bucketBoundsMs.length; i++) {
        if (value <= (bucketBoundsMs[i] ?? Number.POSITIVE_INFINITY)) {
          buckets[i] = (buckets[i] ?? 0) + 1;
          break;
        }
      }
      const index = fineIndex(value);
      fine[index] = (fine[index] ?? 0) + 1;
    },
    quantileMs(q) {
      const rank = Math.max(1, Math.ceil(q * count));
      let seen = 0;
      for (let i = 0; i < fineCount; i++) {
        seen += fine[i] ?? 0;
        if (seen >= rank) return fineUpperBoundMs(i);
      }
      return 0;
    },
  };
}

function fineIndex(ms: number): number {
  if (ms <= 2 ** smallestExponent) return 0;
  const index = Math.ceil((Math.log2(ms) - smallestExponent) * stepsPerDoubling);
  return Math.min(index, fineCount - 1);
}

function fineUpperBoundMs(index: number): number {
  return 2 ** (smallestExponent + index / stepsPerDoubling);
}
