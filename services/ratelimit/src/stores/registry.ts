import type { Settings } from '../config/settings.ts';
import type { CreateStore } from './counter-store.ts';

/**
 * Counter stores by BACKEND_TYPE. A new one is a folder, a line here and a value of that
 * setting. Only the chosen one and its client library are loaded.
 */
export const counterStores = {
  redis: async () => (await import('./redis/redis-store.ts')).createRedisStore,
  memcache: async () => (await import('./memcached/memcached-store.ts')).createMemcachedStore,
  memory: async () => (await import('./memory/memory-store.ts')).createMemoryStore,
} as const satisfies Record<Settings['backendType'], () => Promise<CreateStore>>;
