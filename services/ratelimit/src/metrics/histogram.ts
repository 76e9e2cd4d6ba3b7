/**
 * Upper bounds of the exported buckets: the defaults of Prometheus clients, and finer ones below 5
 * ms, where most calls are.
 */
export const bucketBoundsMs: readonly number[] = [
  0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
];

// Quantiles come from finer buckets, eight to each doubling from about 1 µs to about 2^16 ms: they
// are at most 9 % too high.
const stepsPerDoubling = 8;
const smallestExponent = -10;
const largestExponent = 16;
const fineCount = (largestExponent - smallestExponent) * stepsPerDoubling + 1;

/** All recordings of a timer, in constant memory. */
export class TimingHistogram {
  readonly #buckets = new Array<number>(bucketBoundsMs.length).fill(0);
  readonly #fine = new Float64Array(fineCount);
  #count = 0;
  #sumMs = 0;

  get count(): number {
    return this.#count;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** Negative values (a clock that stepped back) count as 0. */
  record(ms: number): void {
    const value = Math.max(ms, 0);
    this.#count += 1;
    this.#sumMs += value;
    for (let i = 0; i < bucketBoundsMs.length; i++) {
      if (value <= (bucketBoundsMs[i] ?? Number.POSITIVE_INFINITY)) {
        this.#buckets[i] = (this.#buckets[i] ?? 0) + 1;
        break;
      }
    }
    const index = toFineIndex(value);
    this.#fine[index] = (this.#fine[index] ?? 0) + 1;
  }

  /**
   * Recordings of at most `boundMs`: exact for the exported bounds, otherwise for a bound that is
   * up to 9 % lower.
   */
  countAtMost(boundMs: number): number {
    const exported = bucketBoundsMs.findIndex((bound) => Math.abs(bound - boundMs) < bound * 1e-9);
    if (exported !== -1) return sum(this.#buckets.slice(0, exported + 1));
    const fine = Math.floor((Math.log2(boundMs) - smallestExponent) * stepsPerDoubling + 1e-9);
    return sum(this.#fine.subarray(0, Math.max(0, fine + 1)));
  }

  /** The `q` quantile (0 to 1), at most 9 % too high; 0 when empty. */
  quantileMs(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.#count));
    let seen = 0;
    for (let i = 0; i < fineCount; i++) {
      seen += this.#fine[i] ?? 0;
      if (seen >= rank) return 2 ** (smallestExponent + i / stepsPerDoubling);
    }
    return 0;
  }
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function toFineIndex(ms: number): number {
  if (ms <= 2 ** smallestExponent) return 0;
  const index = Math.ceil((Math.log2(ms) - smallestExponent) * stepsPerDoubling);
  return Math.min(index, fineCount - 1);
}
