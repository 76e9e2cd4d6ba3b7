import { type AcceptedReason, acceptedReasons, type Verdict } from '../domain/verdict.ts';
import type { XdsMetrics } from '../metrics/xds-metrics.ts';

/** Counts objects by the reason of their condition Accepted; reasons that nobody has are 0, so that alerts can be made of them. */
export function countObjects({ objects }: Pick<XdsMetrics, 'objects'>, verdicts: Iterable<Verdict>): void {
  const counts = new Map<AcceptedReason, number>();
  for (const { accepted } of verdicts) counts.set(accepted.reason, (counts.get(accepted.reason) ?? 0) + 1);
  for (const reason of acceptedReasons) objects.set({ reason }, counts.get(reason) ?? 0);
}
