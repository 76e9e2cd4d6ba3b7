import t from 'tap';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import { formatStats } from '../../src/metrics/text.ts';
import { StatsReporter, StatsSums } from '../../src/workers/stats-report.ts';

function createPair() {
  const sums = new StatsRegistry();
  const workers = [new StatsRegistry(), new StatsRegistry()].map((stats) => ({
    stats,
    reporter: new StatsReporter(stats),
  }));
  const added = new StatsSums(sums);
  const collect = () => {
    for (const [id, { reporter }] of workers.entries()) added.add(id, structuredClone(reporter.take()));
  };
  const [one, two] = workers;
  if (one === undefined || two === undefined) throw new Error('two workers');
  return { sums, added, collect, one: one.stats, two: two.stats };
}

t.test('counters of workers are summed, each hit once', (t) => {
  const { sums, collect, one, two } = createPair();
  one.counter('calls', { code: 'ok' }).value += 2;
  two.counter('calls', { code: 'ok' }).value += 3;
  two.domainNotFound('unknown').value += 1;
  collect();
  collect();
  one.counter('calls', { code: 'ok' }).value += 1;
  collect();
  t.equal(sums.counter('calls', { code: 'ok' }).value, 6);
  t.equal(sums.domainNotFound('unknown').value, 1);
  t.end();
});

t.test('a counter without hits exists in the sums', (t) => {
  const { sums, collect, one } = createPair();
  one.counter('errors');
  collect();
  t.match(formatStats(sums), /^errors: 0$/m);
  t.end();
});

t.test('gauges are summed, or combined as fits them, and end with their worker', (t) => {
  const { sums, added, collect, one, two } = createPair();
  for (const stats of [one, two]) {
    stats.gauge('ratelimit.redis_pool.cx_active').value = 3;
    stats.gauge('runtime.num_values').value = 5;
  }
  one.gauge('ratelimit.service.config_current').value = 1;
  collect();
  const read = () => Object.fromEntries([...sums.gauges()].map(({ name, value }) => [name, value]));
  t.match(read(), { 'ratelimit.redis_pool.cx_active': 6, 'runtime.num_values': 5 });
  t.match(read(), { 'ratelimit.service.config_current': 1 });
  two.gauge('ratelimit.service.config_current').value = 0;
  collect();
  t.match(read(), { 'ratelimit.service.config_current': 0 }, 'one worker with older rules');
  added.remove(1);
  t.match(read(), { 'ratelimit.redis_pool.cx_active': 3, 'ratelimit.service.config_current': 1 });
  t.end();
});

t.test('rules are summed, with their levels, across a reload', (t) => {
  const { sums, collect, one, two } = createPair();
  one.rule('demo', ['tenant']).totalHits += 4;
  two.rule('demo', ['tenant']).totalHits += 1;
  two.dynamicRule('demo', ['tenant_a']).totalHits += 7;
  collect();
  one.releaseRules();
  one.rule('demo', ['tenant']).totalHits += 1;
  collect();
  t.same(
    [...sums.rules()].map(({ levels, totalHits, origin }) => [levels, totalHits, origin]),
    [
      [['tenant'], 6, 'configured'],
      [['tenant_a'], 7, 'dynamic'],
    ],
  );
  t.end();
});

t.test('timings are summed, and single ones passed on', (t) => {
  const { sums, collect, one, two } = createPair();
  sums.keepTimings(10);
  one.keepTimings(10);
  one.timer('time').record(1);
  two.timer('time').record(100);
  collect();
  one.timer('time').record(1);
  collect();
  t.match(formatStats(sums), /^time: count=3 sum=102.00ms p50=1.00ms p99=10\d/m);
  t.same(sums.takeTimings(), [{ name: 'time', tags: undefined, timingsMs: [1, 1] }]);
  t.end();
});

t.test('counts of rules on trial are summed, and start at 0 with the newest set', (t) => {
  const { sums, collect, one, two } = createPair();
  const set = { version: 'a', sinceMs: 1, domains: 1, rules: 2 };
  const newer = { ...set, version: 'b', sinceMs: 3 };
  const count = (stats: StatsRegistry): void => {
    const counts = stats.trial()?.rule('d', 'd.k', '1 per hour');
    if (counts !== undefined) counts.requests += 1;
  };
  const summed = () => Array.from(sums.trial()?.all() ?? [], ({ rule, requests }) => [rule, requests]);
  collect();
  t.equal(sums.trial(), undefined);
  one.startTrial(set);
  two.startTrial({ ...set, sinceMs: 2 });
  for (const stats of [one, one, two]) count(stats);
  collect();
  collect();
  t.same(summed(), [['d.k', 3]]);

  two.startTrial(newer);
  for (const stats of [one, two]) count(stats);
  collect();
  t.same(sums.trial()?.set, newer);
  t.same(summed(), [['d.k', 1]], 'a worker with older rules does not count');
  one.startTrial({ ...newer, sinceMs: 4 });
  count(one);
  collect();
  t.same(sums.trial()?.set, newer);
  t.same(summed(), [['d.k', 2]]);
  t.end();
});
