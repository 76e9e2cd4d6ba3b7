import type { LimiterClient } from '../domain/limiter-client.ts';
import { type Schedule, scheduleByTimer } from '../pipeline/schedule.ts';

/** Which limiters are connected, and what each has in force. */
export interface ClientRegistry {
  /** Adds a client, or replaces what was known of it. */
  put(client: LimiterClient): void;
  remove(id: string): void;
  /** Those that are connected. */
  all(): Iterable<LimiterClient>;
  /**
   * Those that are connected, without those that came a moment ago and have not answered yet: what they enforce will be
   * known in a moment, and whoever counts limiters must not count each time anew.
   */
  counted(): Iterable<LimiterClient>;
  /** How many are connected. */
  readonly size: number;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** How long one that has come may take to answer before it is waited for. Ours compiles 10,000 domains in less. */
const firstAnswerMs = 5_000;

/** Makes an empty registry. Timers are the process' own unless `schedule` is given. */
export function createClientRegistry({
  schedule = scheduleByTimer,
}: {
  readonly schedule?: Schedule;
} = {}): ClientRegistry {
  const clients = new Map<string, LimiterClient>();
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...listeners]) listener();
  };
  /** By id of those that are not counted yet, with what takes back that they will be. */
  const newcomers = new Map<string, () => void>();

  function welcome(id: string): void {
    const countIt = schedule(firstAnswerMs, () => {
      newcomers.delete(id);
      tell();
    });
    newcomers.set(id, countIt);
  }

  function count(id: string): void {
    newcomers.get(id)?.();
    newcomers.delete(id);
  }

  return {
    put(client) {
      const { id, accepted, rejection } = client;
      if (accepted !== undefined || rejection !== undefined) count(id);
      else if (!clients.has(id)) welcome(id);
      clients.set(id, client);
      tell();
    },
    remove(id) {
      count(id);
      if (clients.delete(id)) tell();
    },
    all: () => clients.values(),
    counted: () => [...clients.values()].filter(({ id }) => !newcomers.has(id)),
    get size() {
      return clients.size;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
