import type { Test } from 'tap';
import { createMemcachedStore } from '../../src/stores/memcached/memcached-store.ts';
import type { ResolveSrv } from '../../src/stores/memcached/servers.ts';
import { type StoreFromSettings, storeFromSettings } from './store-from-settings.ts';

/** The memcached store as the service makes it, with what it reports. */
export interface MemcachedFromSettings extends StoreFromSettings {
  /** Hits let through so far because they could not be counted. */
  readonly uncounted: () => number;
}

/**
 * Makes it from settings, with a time to answer that only a hanging server uses up; it is closed
 * when the test ends.
 */
export async function memcachedFromSettings(
  t: Test,
  env: Readonly<Record<string, string>>,
  resolveSrv: ResolveSrv = () => Promise.reject(new Error('no DNS in this test')),
): Promise<MemcachedFromSettings> {
  const made = await storeFromSettings(
    t,
    (settings, context) => createMemcachedStore(settings, context, resolveSrv),
    {
      BACKEND_TYPE: 'memcache',
      MCACHE_TIMEOUT: '20s',
      ...env,
    },
  );
  const { stats } = made;
  return { ...made, uncounted: () => stats.counter('ratelimit.memcache.uncounted_hits').value };
}
