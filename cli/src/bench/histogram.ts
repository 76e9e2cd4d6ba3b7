/** Upper bounds of buckets grow by so much: the error of a percentile. */
const growth = 1.05;
const smallestMs = 0.01;
/** The last bucket ends above two minutes. */
const bucketCount = 340;

/** Durations in buckets: bounded memory for any number of them. */
export class Histogram {
  readonly #counts = new Float64Array(bucketCount);
  #total = 0;
  #maxMs = 0;

  add(ms: number): void {
    const index = Math.ceil(Math.log(Math.max(ms, smallestMs) / smallestMs) / Math.log(growth));
    const bucket = Math.min(Math.max(index, 0), bucketCount - 1);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
    this.#maxMs = Math.max(this.#maxMs, ms);
  }

  get maxMs(): number {
    return this.#maxMs;
  }

  /** The duration that this part of all, from 0 to 1, does not exceed. Undefined without any. */
  percentile(part: number): number | undefined {
    let left = Math.max(Math.ceil(this.#total * part), 1);
    for (const [index, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0 && this.#total > 0) return Math.min(upperBound(index), this.#maxMs);
    }
    return undefined;
  }

  /** How many durations are in each of a few ranges, from the first that has any to the last. */
  ranges(): readonly Range[] {
    const used = [...this.#counts.entries()].filter(([, count]) => count > 0);
    const [first = 0] = used[0] ?? [];
    const [last = 0] = used.at(-1) ?? [];
    if (used.length === 0) return [];
    const size = Math.max(Math.ceil((last - first + 1) / maxRanges), 1);
    const ranges: Range[] = [];
    for (let start = first; start <= last; start += size) {
      const end = Math.min(start + size, last + 1);
      const count = this.#counts.slice(start, end).reduce((sum, value) => sum + value, 0);
      ranges.push({ upToMs: Math.min(upperBound(end - 1), this.#maxMs), count });
    }
    return ranges;
  }
}

/** Lines of the picture. */
const maxRanges = 12;

interface Range {
  readonly upToMs: number;
  readonly count: number;
}

/** The last bucket has all that is longer. */
function upperBound(bucket: number): number {
  return bucket === bucketCount - 1 ? Number.POSITIVE_INFINITY : smallestMs * growth ** bucket;
}

const barWidth = 40;

/** A line with a bar for each range. */
export function drawHistogram(ranges: readonly Range[]): readonly string[] {
  const most = Math.max(...ranges.map(({ count }) => count), 1);
  const total = ranges.reduce((sum, { count }) => sum + count, 0);
  return ranges.map(({ upToMs, count }) => {
    const bar = '#'.repeat(Math.ceil((count / most) * barWidth));
    const share = ((count / total) * 100).toFixed(1).padStart(5);
    return `${`<= ${formatMs(upToMs)}`.padStart(12)} ${share} % |${bar}`;
  });
}

/** Three digits, with the unit. */
export function formatMs(ms: number): string {
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}
