import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import type { Test } from 'tap';
import type { CounterBackend, CreateBackend } from '../../src/backends/counter-backend.ts';
import { readSettings } from '../../src/config/settings.ts';
import { StatsRegistry } from '../../src/stats/registry.ts';

/** A backend as the service makes it, with what it reports. */
export interface BackendFromSettings {
  readonly backend: CounterBackend;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
}

/** Makes it from settings; it is closed when the test ends. */
export async function backendFromSettings(
  t: Test,
  createBackend: CreateBackend,
  env: Readonly<Record<string, string>>,
): Promise<BackendFromSettings> {
  const read = readSettings({ USE_PUSHSTATS: 'false', ...env });
  if (!read.ok) {
    throw new TypeError(formatSettingProblems(read.problems));
  }
  const logLines: Readonly<Record<string, unknown>>[] = [];
  const health = new Health();
  const stats = new StatsRegistry();
  const backend = await createBackend(read.settings, {
    nowMs: Date.now,
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
  t.teardown(() => backend.close());
  return { backend, health, stats, logLines };
}
