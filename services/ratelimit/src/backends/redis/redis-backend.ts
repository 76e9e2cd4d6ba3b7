import { backendFailure } from '../../errors.ts';
import type { CounterBackend, CounterHit } from '../counter-backend.ts';
import type { RedisInstance } from './instance.ts';

/** What the backend is made of. */
export interface RedisBackendParts {
  readonly main: RedisInstance;
  /** Where counters of seconds live; absent when they live with the others. */
  readonly perSecond?: RedisInstance | undefined;
  /** How long `start` waits for the first connections, milliseconds; 0 waits for ever. */
  readonly startTimeoutMs: number;
  /** Added to the error of a start that gives up. */
  readonly hint?: string | undefined;
}

/**
 * Counters in Redis. With a second instance the counters of seconds, which are many and short, live there; both are
 * asked at the same time.
 */
export function createRedisBackend({
  main,
  perSecond,
  startTimeoutMs,
  hint,
}: RedisBackendParts): CounterBackend {
  const instances = perSecond === undefined ? [main] : [main, perSecond];

  async function ask(method: 'add' | 'read', hits: readonly CounterHit[]): Promise<readonly number[]> {
    if (perSecond === undefined) {
      return main[method](hits);
    }
    const isPerSecond = hits.map(({ unit }) => unit === 'second');
    const [mainCounts, perSecondCounts] = await Promise.all([
      main[method](hits.filter((_, i) => isPerSecond[i] !== true)),
      perSecond[method](hits.filter((_, i) => isPerSecond[i] === true)),
    ]);
    const next = { main: 0, perSecond: 0 };
    return isPerSecond.map((seconds) =>
      seconds ? (perSecondCounts[next.perSecond++] ?? 0) : (mainCounts[next.main++] ?? 0),
    );
  }

  return {
    add: (hits) => ask('add', hits),
    read: (hits) => ask('read', hits),
    async start({ signal } = {}) {
      const stop = (): void => close(backendFailure('stopped while connecting to Redis'));
      const timer = startTimeoutMs === 0 ? undefined : setTimeout(giveUp, startTimeoutMs);
      signal?.addEventListener('abort', stop, { once: true });
      try {
        await Promise.all(instances.map((instance) => instance.start()));
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
      }
    },
    close() {
      close();
      return Promise.resolve();
    },
  };

  function close(reason?: Error): void {
    for (const instance of instances) {
      instance.close(reason);
    }
  }

  function giveUp(): void {
    const cause = instances.map((instance) => instance.lastError()).find((error) => error !== undefined);
    const why = cause?.message ?? 'the first attempt has not ended yet (KVSTORE_TIMEOUT bounds each)';
    close(
      backendFailure(
        `no connection to Redis within ${startTimeoutMs}ms (KVSTORE_STARTUP_MAX_ELAPSED_TIME): ${why}${hint === undefined ? '' : ` (${hint})`}`,
        cause,
      ),
    );
  }
}
