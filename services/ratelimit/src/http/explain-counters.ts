import type { Entry } from '@tollgate/rules/match';
import { type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import type { CounterBackend } from '../backends/counter-backend.ts';
import { counterKey, secondsUntilReset } from '../ratelimit/limit.ts';

export interface CounterLimit {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly unit: Unit;
  readonly requestsPerUnit: number;
}

export interface CounterState {
  readonly key: string;
  /** Absent, with `error`, when the store does not answer. */
  readonly count?: number;
  readonly remaining?: number;
  readonly error?: string;
  readonly limit: number;
  readonly resetSeconds: number;
}

export interface CounterContext {
  readonly backend: Pick<CounterBackend, 'read'>;
  readonly nowSeconds: () => number;
  readonly cacheKeyPrefix: string;
}

/**
 * Reads the counters of limits without changing them. Never rejects: an explanation is useful
 * without them.
 */
export async function readCounters(
  { backend, nowSeconds, cacheKeyPrefix }: CounterContext,
  limits: readonly CounterLimit[],
): Promise<readonly CounterState[]> {
  const now = nowSeconds();
  const hits = limits.map(({ domain, entries, unit }) => {
    const seconds = unitSeconds[unit];
    const key = counterKey(cacheKeyPrefix, domain, entries, now, seconds);
    return { key, addend: 0, unit, secondsLeft: secondsUntilReset(now, seconds), ttlSeconds: seconds };
  });
  const { counts, error } = await readHits(backend, hits);
  return limits.map(({ requestsPerUnit: limit }, i) => {
    const { key = '', secondsLeft: resetSeconds = 0 } = hits[i] ?? {};
    if (counts === undefined) return { key, limit, resetSeconds, error };
    const count = counts[i] ?? 0;
    return { key, count, limit, remaining: Math.max(0, limit - Math.max(0, count)), resetSeconds };
  });
}

type ReadResult =
  | { readonly counts: readonly number[]; readonly error?: undefined }
  | { readonly counts?: undefined; readonly error: string };

async function readHits(
  backend: CounterContext['backend'],
  hits: Parameters<CounterBackend['read']>[0],
): Promise<ReadResult> {
  try {
    return { counts: hits.length === 0 ? [] : await backend.read(hits) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

export function formatCounter({ key, count, limit, remaining, error, resetSeconds }: CounterState): string {
  const state =
    count === undefined
      ? `cannot be read: ${error}`
      : `${count} now, limit ${limit}, ${remaining} remaining, reset in ${resetSeconds} s`;
  return `counter ${key}: ${state}`;
}
