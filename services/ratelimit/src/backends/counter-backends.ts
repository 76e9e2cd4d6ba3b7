import type { Settings } from '../config/settings.ts';
import type { CreateBackend } from './counter-backend.ts';
import { createMemcachedBackend } from './memcached/memcached-backend.ts';
import { createMemoryBackend } from './memory.ts';
import { createRedisBackend } from './redis/redis-module.ts';

/**
 * Counter backends by BACKEND_TYPE. A new one is a file or folder, a line here and a value of that
 * setting.
 */
export const counterBackends = {
  redis: createRedisBackend,
  memcache: createMemcachedBackend,
  memory: createMemoryBackend,
} as const satisfies Record<Settings['backendType'], CreateBackend>;
