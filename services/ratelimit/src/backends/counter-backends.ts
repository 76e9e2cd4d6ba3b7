import type { Settings } from '../config/settings.ts';
import type { BackendModule } from './counter-backend.ts';
import { memcachedBackend } from './memcached/memcached-backend.ts';
import { memoryBackend } from './memory.ts';
import { redisBackend } from './redis/redis-module.ts';

/** All backends by their BACKEND_TYPE: a new one is its folder, a line here and a value of that setting. */
export const counterBackends = {
  redis: redisBackend,
  memcache: memcachedBackend,
  memory: memoryBackend,
} as const satisfies Record<Settings['backendType'], BackendModule>;
