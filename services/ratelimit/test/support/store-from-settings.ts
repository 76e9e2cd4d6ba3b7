import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import type { Test } from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import type { CounterStore, CreateStore } from '../../src/stores/counter-store.ts';

/** A store as the service makes it, with what it reports. */
export interface StoreFromSettings {
  readonly store: CounterStore;
  readonly health: Health;
  readonly stats: StatsRegistry;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
}

/** Makes it from settings; it is closed when the test ends. */
export async function storeFromSettings(
  t: Test,
  createStore: CreateStore,
  env: Readonly<Record<string, string>>,
): Promise<StoreFromSettings> {
  const read = readSettings({ USE_PUSHSTATS: 'false', ...env });
  if (!read.ok) {
    throw new TypeError(formatSettingProblems(read.problems));
  }
  const logLines: Readonly<Record<string, unknown>>[] = [];
  const health = new Health();
  const stats = new StatsRegistry();
  const store = await createStore(read.settings, {
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
  t.teardown(() => store.close());
  return { store, health, stats, logLines };
}
