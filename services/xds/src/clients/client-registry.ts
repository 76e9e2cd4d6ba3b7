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
   * Those that are connected, without those that came a moment ago and have not answered yet; and those that left a moment
   * ago and enforce what they had accepted: nearly all of them are on their way back. Connections end at a certain age,
   * and whoever counts limiters must not count each time anew.
   */
  expected(): Iterable<LimiterClient>;
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
  const departed = createDepartedClients({ schedule, onGone: tell });
  /** By id of those that are not counted yet, with what takes back that they will be. */
  const newcomers = new Map<string, () => void>();

  function welcome(client: LimiterClient): void {
    const count = schedule(firstAnswerMs, () => {
      arrive(client);
      tell();
    });
    newcomers.set(client.id, count);
  }

  /** From now on it counts; for one that had left, if it is the same. */
  function arrive(client: LimiterClient): void {
    newcomers.get(client.id)?.();
    newcomers.delete(client.id);
    departed.isBack(client);
  }

  return {
    put(client) {
      const isNew = !clients.has(client.id);
      const answered = client.accepted !== undefined || client.rejection !== undefined;
      if (answered && (isNew || newcomers.has(client.id))) arrive(client);
      else if (isNew) welcome(client);
      clients.set(client.id, client);
      tell();
    },
    remove(id) {
      const client = clients.get(id);
      if (client === undefined) return;
      clients.delete(id);
      newcomers.get(id)?.();
      newcomers.delete(id);
      departed.add(client);
      tell();
    },
    all: () => clients.values(),
    expected: () => [...[...clients.values()].filter(({ id }) => !newcomers.has(id)), ...departed.all()],
    get size() {
      return clients.size;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
