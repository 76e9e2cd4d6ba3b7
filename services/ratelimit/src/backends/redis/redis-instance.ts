import type { CounterHit } from '../../ports/counter-backend.ts';

/** One deployment of Redis: a server, one that sentinels name, or a cluster. */
export interface RedisInstance {
  /** @see CounterBackend.add */
  add(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** @see CounterBackend.read */
  read(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** Resolves once counters can be added, however long that takes; rejects when closed before. */
  start(): Promise<void>;
  /** Lets go of all connections; a `start` that still waits rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** Why the last attempt to connect failed. */
  lastError(): Error | undefined;
}
