/**
 * The value below or at which `percent` (0-100) of the samples lie (nearest rank).
 *
 * @param sorted ascending; 0 is answered when there is none.
 */
export function percentile(sorted: Float64Array, percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.max(0, rank - 1)] ?? 0;
}
