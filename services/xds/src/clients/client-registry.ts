import type { LimiterClient } from '../domain/limiter-client.ts';

/** Which limiters are connected, and what each has in force. */
export interface ClientRegistry {
  /** Adds a client, or replaces what was known of it. */
  put(client: LimiterClient): void;
  remove(id: string): void;
  all(): Iterable<LimiterClient>;
  readonly size: number;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** Makes an empty registry. */
export function createClientRegistry(): ClientRegistry {
  const clients = new Map<string, LimiterClient>();
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...listeners]) listener();
  };
  return {
    put(client) {
      clients.set(client.id, client);
      tell();
    },
    remove(id) {
      if (clients.delete(id)) tell();
    },
    all: () => clients.values(),
    get size() {
      return clients.size;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
