import { percentile } from '../load/percentile.ts';

/** One who asks again as soon as there is an answer. Rejects when the answer is not the one that is measured. */
export type Asker = () => Promise<void>;

/** What a scenario came to. */
export interface LoopResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Lets all askers ask until the time is over. */
export async function runClosedLoop(askers: readonly Asker[], durationMs: number): Promise<LoopResult> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endAt = startedAt + durationMs;
  async function work(ask: Asker): Promise<void> {
    for (let at = performance.now(); at < endAt; ) {
      await ask();
      const now = performance.now();
      latenciesMs.push(now - at);
      at = now;
    }
  }
  await Promise.all(askers.map(work));
  const seconds = (performance.now() - startedAt) / 1000;
  const sorted = Float64Array.from(latenciesMs).sort();
  return {
    requests: sorted.length,
    perSecond: sorted.length / seconds,
    p50Ms: percentile(sorted, 50),
    p99Ms: percentile(sorted, 99),
  };
}
