import type { Settings } from '../config/settings.ts';
import type { CreateBackend } from './counter-backend.ts';

/**
 * Counter backends by BACKEND_TYPE. A new one is a file or folder, a line here and a value of that
 * setting. Only the chosen one and its client library are loaded.
 */
export const counterBackends = {
  redis: async () => (await import('./redis/redis-backend.ts')).createRedisBackend,
  memcache: async () => (await import('./memcached/memcached-backend.ts')).createMemcachedBackend,
  memory: async () => (await import('./memory.ts')).createMemoryBackend,
} as const satisfies Record<Settings['backendType'], () => Promise<CreateBackend>>;
