import { loadYaml } from '@tollgate/rules/load-yaml';
import t from 'tap';
import { createDecisionStats } from '../../src/decide/decision-stats.ts';
import { limitsInForce } from '../../src/domain/limit-in-force.ts';
import { createStatsRegistry } from '../../src/stats/stats-registry.ts';

t.test('a rule that a reload takes over as it is keeps its series', async (t) => {
  const text = 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: hour, requests_per_unit: 1 }\n';
  const loaded = loadYaml([{ source: 'd.yaml', text }], { mergeDomains: false });
  const root = loaded.ok ? loaded.rules.domains.get('d') : undefined;
  const [limit] =
    root === undefined ? [] : limitsInForce(root, [{ entries: [{ key: 'k', value: '' }], limit: undefined }]);
  if (limit?.kind !== 'limited') throw new Error('the rules of the test limit k');

  // With no room for series of the past, those are dropped as soon as they are idle.
  const registry = createStatsRegistry({ maxDynamicRules: 0, idleMs: 0 });
  const stats = createDecisionStats(registry);
  const counters = stats.countersOf('d', limit);
  registry.releaseRules();
  t.equal(stats.countersOf('d', limit), counters, 'the same counters');
  counters.totalHits += 1;
  registry.takeSnapshot(1);
  registry.dropIdleSeries(2);
  t.same(
    [...registry.rules()].map(({ key, totalHits }) => [key, totalHits]),
    [['d.k', 1]],
  );
});
