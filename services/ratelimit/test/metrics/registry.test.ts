import t from 'tap';
import { StatsRegistry } from '../../src/metrics/registry.ts';

const hourMs = 3_600_000;
const nameOf = (sample: { name: string }) => sample.name;

t.test('name and tags identify a counter', async (t) => {
  const registry = new StatsRegistry();
  t.equal(registry.counter('a'), registry.counter('a'));
  t.equal(registry.counter('a', { x: '1', y: '2' }), registry.counter('a', { y: '2', x: '1' }));
  t.not(registry.counter('a', { code: 'success' }), registry.counter('a', { code: 'error' }));
});

t.test('the counters of a rule are the same object for the same domain and levels', async (t) => {
  const registry = new StatsRegistry();
  t.equal(registry.rule('domain', ['key_value', 'sub']), registry.rule('domain', ['key_value', 'sub']));
  t.not(registry.rule('domain', ['key_value']), registry.rule('domain', ['key_other']));
});

t.test('the key of a rule is sanitised, its domain and levels are as configured', async (t) => {
  const rule = new StatsRegistry().rule('my:domain', ['ip_10.0.0.1', 'path_a|b']);
  t.equal(rule.key, 'my_domain.ip_10_0_0_1.path_a_b');
  t.equal(rule.domain, 'my:domain');
  t.strictSame(rule.levels, ['ip_10.0.0.1', 'path_a|b']);
});

t.test('a snapshot has the differences of the counters that changed', async (t) => {
  const registry = new StatsRegistry();
  const loads = registry.counter('loads');
  registry.counter('never');
  const rule = registry.rule('domain', ['key']);
  loads.value += 2;
  rule.totalHits += 3;
  rule.withinLimit += 3;

  t.strictSame(registry.takeSnapshot(0).counters, [
    { name: 'loads', tags: undefined, value: 2, delta: 2 },
    { name: 'ratelimit.service.rate_limit.domain.key.total_hits', tags: undefined, value: 3, delta: 3 },
    { name: 'ratelimit.service.rate_limit.domain.key.within_limit', tags: undefined, value: 3, delta: 3 },
  ]);
  rule.totalHits += 1;
  t.strictSame(registry.takeSnapshot(1).counters, [
    { name: 'ratelimit.service.rate_limit.domain.key.total_hits', tags: undefined, value: 4, delta: 1 },
  ]);
  t.strictSame(registry.takeSnapshot(2).counters, []);
});

t.test('a snapshot has every gauge with its current value', async (t) => {
  const registry = new StatsRegistry();
  let open = 1;
  registry.gauge('open', () => open);
  registry.gauge('set').value = 7;
  open = 4;
  t.strictSame(registry.takeSnapshot(0).gauges, [
    { name: 'open', tags: undefined, value: 4 },
    { name: 'set', tags: undefined, value: 7 },
  ]);
});

t.test('single timings are kept on demand, up to a bound, and counted beyond', async (t) => {
  const registry = new StatsRegistry();
  const timer = registry.timer('time');
  timer.record(1);
  t.strictSame(registry.takeTimings(), []);
  registry.keepTimings(2);
  timer.record(2);
  timer.record(3);
  timer.record(4);
  t.strictSame(registry.takeTimings(), [{ name: 'time', tags: undefined, timingsMs: [2, 3] }]);
  t.equal(registry.counter('ratelimit.stats.dropped_timings').value, 1);
  t.equal(timer.histogram.count, 4);
});

t.test('dynamic series beyond the bound share one series per domain', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 2 });
  const first = registry.dynamicRule('domain', ['user_1']);
  registry.dynamicRule('domain', ['user_2']);
  const other = registry.dynamicRule('domain', ['user_3']);
  t.equal(other.key, 'domain._other');
  t.equal(registry.dynamicRule('domain', ['user_4']), other);
  t.equal(registry.dynamicRule('domain', ['user_1']), first);
  t.equal(registry.dynamicRule('elsewhere', ['user_1']).key, 'elsewhere._other');
  t.equal(registry.counter('ratelimit.stats.overflowed_lookups').value, 3);
  other.totalHits += 5;
  t.ok(
    registry
      .takeSnapshot(0)
      .counters.map(nameOf)
      .includes('ratelimit.service.rate_limit.domain._other.total_hits'),
  );
});

t.test('configured rules do not count as dynamic ones', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 1 });
  for (let i = 0; i < 100; i++) registry.rule('domain', [`rule_${i}`]);
  t.equal(registry.dynamicRule('domain', ['user_1']).key, 'domain.user_1');
});

t.test('a series with an oversized key shares the overflow', async (t) => {
  const registry = new StatsRegistry();
  t.equal(registry.dynamicRule('domain', [`path_${'x'.repeat(5000)}`]).key, 'domain._other');
});

t.test('a full registry drops the series that were idle for an hour, after their last flush', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 2 });
  const idle = registry.dynamicRule('domain', ['idle']);
  const busy = registry.dynamicRule('domain', ['busy']);
  idle.totalHits += 1;
  registry.takeSnapshot(0);
  registry.dropIdleSeries(0);

  busy.totalHits += 1;
  registry.takeSnapshot(hourMs);
  registry.dropIdleSeries(hourMs);

  t.equal(registry.dynamicRule('domain', ['busy']), busy);
  t.equal(registry.dynamicRule('domain', ['new']).key, 'domain.new');
  t.not(registry.dynamicRule('domain', ['idle']), idle);
  t.equal(registry.counter('ratelimit.stats.dropped_series').value, 1);
});

t.test('a series with hits that were not flushed yet is not dropped', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 1 });
  const series = registry.dynamicRule('domain', ['user']);
  registry.takeSnapshot(0);
  series.totalHits += 1;
  registry.dropIdleSeries(2 * hourMs);
  t.equal(registry.dynamicRule('domain', ['user']), series);
});

t.test('idle series are kept below the maximum', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 2 });
  const series = registry.dynamicRule('domain', ['user']);
  registry.takeSnapshot(0);
  registry.dropIdleSeries(10 * hourMs);
  t.equal(registry.dynamicRule('domain', ['user']), series);
});

t.test('a rule that is removed and added again keeps its counts', async (t) => {
  const registry = new StatsRegistry();
  const rule = registry.rule('domain', ['key']);
  rule.totalHits += 9;
  registry.releaseRules();
  registry.takeSnapshot(0);
  registry.dropIdleSeries(5 * hourMs);
  t.equal(registry.rule('domain', ['key']), rule);
  t.equal(registry.rule('domain', ['key']).totalHits, 9);
});

t.test('rules that were removed by reloads do not accumulate', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 10 });
  for (let i = 0; i < 100; i++) registry.rule('domain', [`old_${i}`]);
  registry.releaseRules();
  const kept = registry.rule('domain', ['old_7']);
  registry.takeSnapshot(0);
  registry.dropIdleSeries(hourMs);
  t.strictSame([...registry.rules()], [kept]);
});

t.test('released rules do not reduce the bound of dynamic ones', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 2 });
  for (let i = 0; i < 5; i++) registry.rule('domain', [`old_${i}`]);
  registry.releaseRules();
  t.equal(registry.dynamicRule('domain', ['user']).key, 'domain.user');
});

t.test('unknown domains are counted by name up to a bound', async (t) => {
  const registry = new StatsRegistry({ maxUnknownDomains: 2 });
  registry.domainNotFound('a').value += 1;
  registry.domainNotFound('b:c').value += 2;
  registry.domainNotFound('d').value += 3;
  registry.domainNotFound('e').value += 4;
  registry.domainNotFound('a').value += 5;
  const sent = registry.takeSnapshot(0).counters.filter(({ name }) => name.endsWith('domain_not_found'));
  t.strictSame(
    sent.map(({ name, delta }) => [name, delta]),
    [
      ['ratelimit.service.rate_limit.a.domain_not_found', 6],
      ['ratelimit.service.rate_limit.b_c.domain_not_found', 2],
      ['ratelimit.service.rate_limit._other.domain_not_found', 7],
    ],
  );
});
