import type { Settings } from '../settings/settings.ts';
import type { BackendModule } from './backend-module.ts';
import { memcachedBackend } from './memcached/memcached-module.ts';
import { memoryBackend } from './memory/memory-module.ts';
import { redisBackend } from './redis/redis-module.ts';

/** All backends by their BACKEND_TYPE: a new one is its folder, a line here and a value of that setting. */
export const counterBackends = {
  redis: redisBackend,
  memcache: memcachedBackend,
  memory: memoryBackend,
} as const satisfies Record<Settings['backendType'], BackendModule>;
