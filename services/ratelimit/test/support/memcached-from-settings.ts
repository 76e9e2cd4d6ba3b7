import { createHealth } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import type { Test } from 'tap';
import type { ResolveSrv } from '../../src/backends/memcached/find-servers.ts';
import { memcachedModule } from '../../src/backends/memcached/memcached-module.ts';
import type { CounterBackend } from '../../src/ports/counter-backend.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { createStatsRegistry, type StatsRegistry } from '../../src/stats/stats-registry.ts';

/** The memcached backend as the service makes it, with what it reports. */
export interface MemcachedFromSettings {
  readonly backend: CounterBackend;
  readonly stats: StatsRegistry;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
  /** Hits let through so far because they could not be counted. */
  readonly uncounted: () => number;
}

/** Makes it from settings, with a time to answer that only a hanging server uses up; it is closed when the test ends. */
export async function memcachedFromSettings(
  t: Test,
  env: Readonly<Record<string, string>>,
  resolveSrv: ResolveSrv = () => Promise.reject(new Error('no DNS in this test')),
): Promise<MemcachedFromSettings> {
  const read = readSettings({
    BACKEND_TYPE: 'memcache',
    MCACHE_TIMEOUT: '20s',
    USE_PUSHSTATS: 'false',
    ...env,
  });
  if (!read.ok) {
    throw new TypeError(formatSettingProblems(read.problems));
  }
  const logLines: Readonly<Record<string, unknown>>[] = [];
  const stats = createStatsRegistry();
  const backend = await memcachedModule(resolveSrv).create(read.settings, {
    nowSeconds: () => Math.floor(Date.now() / 1000),
    random: () => 0.5,
    health: createHealth(),
    stats,
    logger: createLogger({
      level: 'info',
      format: 'json',
      destination: { write: (line) => logLines.push(JSON.parse(line)) },
    }),
  });
  t.teardown(backend.close);
  return {
    backend,
    stats,
    logLines,
    uncounted: () => stats.counter('ratelimit.memcache.uncounted_hits').value,
  };
}
