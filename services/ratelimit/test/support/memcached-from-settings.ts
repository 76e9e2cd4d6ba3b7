import type { Test } from 'tap';
import type { ResolveSrv } from '../../src/backends/memcached/addresses.ts';
import { createMemcachedBackend } from '../../src/backends/memcached/memcached-backend.ts';
import { type BackendFromSettings, backendFromSettings } from './backend-from-settings.ts';

/** The memcached backend as the service makes it, with what it reports. */
export interface MemcachedFromSettings extends BackendFromSettings {
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
  const made = await backendFromSettings(
    t,
    (settings, context) => createMemcachedBackend(settings, context, resolveSrv),
    {
      BACKEND_TYPE: 'memcache',
      MCACHE_TIMEOUT: '20s',
      ...env,
    },
  );
  const { stats } = made;
  return { ...made, uncounted: () => stats.counter('ratelimit.memcache.uncounted_hits').value };
}
