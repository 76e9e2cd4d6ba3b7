import { startDeadline } from '@tollgate/kit/time';
import type { RedisConnection } from './connection.ts';

interface Waiter {
  readonly give: (connection: RedisConnection) => void;
  readonly fail: (error: Error) => void;
}

/** What happens to a waiter that is still waiting after a time. */
export interface WaitDeadline {
  readonly ms: number;
  readonly onLate: (fail: (error: Error) => void) => void;
}

/** Batches that wait for a connection, first come, first served. */
export class WaitQueue {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  wait(deadlines: readonly WaitDeadline[]): Promise<RedisConnection> {
    return new Promise((resolve, reject) => {
      const clears: (() => void)[] = [];
      const settle = (): void => {
        for (const clear of clears) clear();
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
        give(connection) {
          settle();
          resolve(connection);
        },
        fail(error) {
          settle();
          reject(error);
        },
      };
      this.#waiters.add(waiter);
      for (const { ms, onLate } of deadlines) clears.push(startDeadline(ms, () => onLate(waiter.fail)));
    });
  }

  /** Gives a connection to the first waiter; false when nothing waits. */
  give(connection: RedisConnection): boolean {
    const [first] = this.#waiters;
    first?.give(connection);
    return first !== undefined;
  }

  failAll(error: Error): void {
    for (const { fail } of [...this.#waiters]) fail(error);
  }
}
