import type { Test } from 'tap';
import { createRedisBackend } from '../../src/backends/redis/redis-backend.ts';
import { type BackendFromSettings, backendFromSettings } from './backend-from-settings.ts';

/**
 * Makes the Redis backend from settings, with short pauses unless said otherwise; it is closed when
 * the test ends.
 */
export function redisFromSettings(
  t: Test,
  env: Readonly<Record<string, string>>,
): Promise<BackendFromSettings> {
  return backendFromSettings(t, createRedisBackend, {
    KVSTORE_TIMEOUT: '5s',
    KVSTORE_STARTUP_INITIAL_INTERVAL: '10ms',
    KVSTORE_STARTUP_MAX_INTERVAL: '20ms',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s',
    KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    ...env,
  });
}
