import type { Settings } from '../config/settings.ts';
import type { CreateStore } from './counter-store.ts';

interface StoreEntry {
  /** Only the chosen store and its client library are loaded. */
  readonly load: () => Promise<CreateStore>;
  /** The span of an exchange; the names of the first two are those of envoyproxy/ratelimit. */
  readonly span: string;
  /** @see https://opentelemetry.io/docs/specs/semconv/db/redis/ */
  readonly database?: { readonly system: string; readonly operation: string };
}

/**
 * Counter stores by BACKEND_TYPE. A new one is a folder, an entry here and a value of that setting.
 */
export const counterStores: Readonly<Record<Settings['backendType'], StoreEntry>> = {
  redis: {
    load: async () => (await import('./redis/redis-store.ts')).createRedisStore,
    span: 'Redis Pipeline Execution',
    database: { system: 'redis', operation: 'PIPELINE' },
  },
  memcache: {
    load: async () => (await import('./memcached/memcached-store.ts')).createMemcachedStore,
    span: 'Memcached Fetch Execution',
    database: { system: 'memcached', operation: 'incr' },
  },
  memory: {
    load: async () => (await import('./memory/memory-store.ts')).createMemoryStore,
    span: 'Memory Counter Execution',
  },
};
