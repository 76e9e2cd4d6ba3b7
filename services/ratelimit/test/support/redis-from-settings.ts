import type { Test } from 'tap';
import { createRedisStore } from '../../src/stores/redis/redis-store.ts';
import { type StoreFromSettings, storeFromSettings } from './store-from-settings.ts';

/**
 * Makes the Redis store from settings, with short pauses unless said otherwise; it is closed when
 * the test ends.
 */
export function redisFromSettings(
  t: Test,
  env: Readonly<Record<string, string>>,
): Promise<StoreFromSettings> {
  return storeFromSettings(t, createRedisStore, {
    KVSTORE_TIMEOUT: '5s',
    KVSTORE_STARTUP_INITIAL_INTERVAL: '10ms',
    KVSTORE_STARTUP_MAX_INTERVAL: '20ms',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s',
    KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    ...env,
  });
}
