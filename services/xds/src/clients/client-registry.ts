import type { LimiterClient } from '../domain/limiter-client.ts';
import { type Schedule, scheduleByTimer } from '../pipeline/schedule.ts';
import { createDepartedClients } from './departed-clients.ts';

/** Which limiters are connected, and what each has in force. */
export interface ClientRegistry {
  /** Adds a client, or replaces what was known of it. */
  put(client: LimiterClient): void;
  remove(id: string): void;
  /** Those that are connected. */
  all(): Iterable<LimiterClient>;
  /**
   * Those that are connected, and those that left a moment ago and enforce what they had accepted: nearly all of them are
   * on their way back. Connections end at a certain age, and whoever counts limiters must not count each time anew.
   */
  expected(): Iterable<LimiterClient>;
  /** How many are connected. */
  readonly size: number;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

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
  const departed = createDepartedClients({ schedule, onGone: tell });
  return {
    put(client) {
      if (!clients.has(client.id)) departed.isBack(client);
      clients.set(client.id, client);
      tell();
    },
    remove(id) {
      const client = clients.get(id);
      if (client === undefined) return;
      clients.delete(id);
      departed.add(client);
      tell();
    },
    all: () => clients.values(),
    expected: () => [...clients.values(), ...departed.all()],
    get size() {
      return clients.size;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
