import { setTimeout as delay } from 'node:timers/promises';
import { backendFailure } from '../../errors.ts';
import type { CounterBackend, CounterHit } from '../../ports/counter-backend.ts';
import type { Batcher } from './batcher.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** One Redis: its connections and what sends to them. */
export interface RedisInstance {
  readonly pool: ConnectionPool;
  readonly batcher: Batcher;
}

/** What the backend is made of. */
export interface RedisBackendParts {
  readonly main: RedisInstance;
  /** Where counters of seconds live; absent when they live with the others. */
  readonly perSecond?: RedisInstance | undefined;
  /** How long `start` waits for the first connections, milliseconds; 0 waits for ever. */
  readonly startTimeoutMs: number;
}

/**
 * Counters in Redis. With a second instance the counters of seconds, which are many and short, live there; both are
 * asked at the same time.
 */
export function createRedisBackend({ main, perSecond, startTimeoutMs }: RedisBackendParts): CounterBackend {
  const instances = perSecond === undefined ? [main] : [main, perSecond];

  async function ask(method: 'add' | 'read', hits: readonly CounterHit[]): Promise<readonly number[]> {
    if (perSecond === undefined) {
      return main.batcher[method](hits);
    }
    const isPerSecond = hits.map(({ unit }) => unit === 'second');
    const [mainCounts, perSecondCounts] = await Promise.all([
      main.batcher[method](hits.filter((_, i) => isPerSecond[i] !== true)),
      perSecond.batcher[method](hits.filter((_, i) => isPerSecond[i] === true)),
    ]);
    const next = { main: 0, perSecond: 0 };
    return isPerSecond.map((seconds) =>
      seconds ? (perSecondCounts[next.perSecond++] ?? 0) : (mainCounts[next.main++] ?? 0),
    );
  }

  return {
    add: (hits) => ask('add', hits),
    read: (hits) => ask('read', hits),
    async start() {
      const connected = Promise.all(instances.map(({ pool }) => pool.start()));
      await (startTimeoutMs === 0 ? connected : Promise.race([connected, giveUp(startTimeoutMs)]));
    },
    close() {
      for (const { pool } of instances) {
        pool.close();
      }
      return Promise.resolve();
    },
  };
}

async function giveUp(afterMs: number): Promise<never> {
  await delay(afterMs, undefined, { ref: false });
  throw backendFailure(`Redis did not answer within ${afterMs}ms (KVSTORE_STARTUP_MAX_ELAPSED_TIME)`);
}
