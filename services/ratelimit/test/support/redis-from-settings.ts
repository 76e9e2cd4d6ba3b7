import { createHealth, type Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import type { Test } from 'tap';
import { redisBackend } from '../../src/backends/redis/redis-module.ts';
import type { CounterBackend } from '../../src/ports/counter-backend.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { createStatsRegistry, type StatsRegistry } from '../../src/stats/stats-registry.ts';

/** The Redis backend as the service makes it, with what it reports. */
export interface RedisFromSettings {
  readonly backend: CounterBackend;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
}

/** Makes it from settings, with short times unless said otherwise; it is closed when the test ends. */
export async function redisFromSettings(
  t: Test,
  env: Readonly<Record<string, string>>,
): Promise<RedisFromSettings> {
  const read = readSettings({
    KVSTORE_TIMEOUT: '5s',
    KVSTORE_STARTUP_INITIAL_INTERVAL: '10ms',
    KVSTORE_STARTUP_MAX_INTERVAL: '20ms',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '20s',
    KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    USE_PUSHSTATS: 'false',
    ...env,
  });
  if (!read.ok) {
    throw new TypeError(formatSettingProblems(read.problems));
  }
  const logLines: Readonly<Record<string, unknown>>[] = [];
  const health = createHealth();
  const stats = createStatsRegistry();
  const backend = await redisBackend.create(read.settings, {
    nowSeconds: () => Math.floor(Date.now() / 1000),
    random: () => 0.5,
    health,
    stats,
    logger: createLogger({
      level: 'info',
      format: 'json',
      destination: { write: (line) => logLines.push(JSON.parse(line)) },
    }),
  });
  t.teardown(backend.close);
  return { backend, health, stats, logLines };
}
