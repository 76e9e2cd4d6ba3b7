import { percentile } from '../load/percentile.ts';

/** How long edits took. */
export interface EditTimes {
  readonly edits: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Sums up the times of single edits. */
export function editTimes(samplesMs: readonly number[]): EditTimes {
  const sorted = Float64Array.from(samplesMs).sort();
  return {
    edits: sorted.length,
    p50Ms: percentile(sorted, 50),
    p99Ms: percentile(sorted, 99),
    maxMs: percentile(sorted, 100),
  };
}
