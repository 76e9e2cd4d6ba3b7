import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { loadRuleFiles } from '@tollgate/rules/load-rule-files';
import t from 'tap';
import { statsNames } from '../../src/metrics/names.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import { RuleStore } from '../../src/rules/rule-store.ts';
import { rulesText } from '../support/rule-folder.ts';

const load = (text: string) => loadRuleFiles([{ source: 'a.yaml', text }], { mergeDomains: false });
const none = loadRuleFiles([], { mergeDomains: false });

function makeStore() {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: 'trace',
    format: 'json',
    // Parsed boundary: the JSON format is one object a line.
    destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const stats = new StatsRegistry();
  const health = new Health();
  const store = new RuleStore({ stats, logger, health: health.component('config', { healthy: false }) });
  const counts = () => ({
    success: stats.counter(statsNames.configLoadSuccess).value,
    error: stats.counter(statsNames.configLoadError).value,
    attempts: stats.counter(statsNames.runtimeLoadAttempts).value,
    failures: stats.counter(statsNames.runtimeLoadFailures).value,
  });
  const isCurrent = () => stats.gauge(statsNames.configCurrent).value;
  return { store, health, lines, counts, isCurrent };
}

t.test('before the first load there are no rules, and the service is unhealthy', (t) => {
  const { store, health } = makeStore();
  t.equal(store.current(), undefined);
  t.notOk(health.isHealthy());
  t.end();
});

t.test('a valid load is active, counted, logged and healthy', (t) => {
  const { store, health, lines, counts } = makeStore();
  const good = load(rulesText('a', 1));
  store.apply(good);
  t.equal(store.current(), good.ok ? good.rules : undefined);
  t.ok(health.isHealthy());
  t.strictSame(counts(), { success: 1, error: 0, attempts: 1, failures: 0 });
  t.match(lines, [{ level: 'info', '@message': 'rules loaded', domains: 1, rules: 1 }]);
  t.end();
});

t.test('an invalid load keeps rules and health, and is logged with its position', (t) => {
  const { store, health, lines, counts, isCurrent } = makeStore();
  store.apply(load(rulesText('a', 1)));
  const inForce = store.current();
  t.equal(isCurrent(), 1);
  store.apply(load('domain: a\ndescriptors:\n  - key: ""\n'));
  t.equal(isCurrent(), 0);
  t.equal(store.current(), inForce);
  t.ok(health.isHealthy());
  t.strictSame(counts(), { success: 1, error: 1, attempts: 2, failures: 1 });
  t.match(lines.slice(1), [
    { level: 'error', problem: 'a.yaml:3:10: descriptor has empty key' },
    { level: 'error', '@message': 'keeping the last valid rules', problems: 1, kept: 1 },
  ]);
  store.apply(load(rulesText('a', 1)));
  t.equal(isCurrent(), 1);
  t.end();
});

t.test('an invalid first load is logged, and leaves no rules', (t) => {
  const { store, health, lines } = makeStore();
  store.apply(load('domain: ""'));
  t.equal(store.current(), undefined);
  t.notOk(health.isHealthy());
  t.match(lines.at(-1), { '@message': 'no active rules, every request fails' });
  t.end();
});

t.test('a valid load without domains is active and unhealthy', (t) => {
  const { store, health } = makeStore();
  store.apply(load(rulesText('a', 1)));
  store.apply(none);
  t.equal(store.current()?.domains.size, 0);
  t.notOk(health.isHealthy());
  store.apply(load('domain: ""'));
  t.notOk(health.isHealthy());
  store.apply(load(rulesText('a', 1)));
  t.ok(health.isHealthy());
  t.end();
});

t.test('only the first hundred problems are logged, with their total number', (t) => {
  const { store, lines } = makeStore();
  store.apply(load(`domain: a\ndescriptors:\n${'  - key: ""\n'.repeat(500)}`));
  t.equal(lines.length, 101);
  t.match(lines.at(-1), { problems: 500 });
  t.end();
});
