import { PassThrough, Writable } from 'node:stream';
import t from 'tap';
import { StatsRegistry, type StatsSnapshot } from '../../src/metrics/registry.ts';
import { formatStats, LogSink } from '../../src/metrics/text.ts';

const nothing: StatsSnapshot = { counters: [], gauges: [], timers: [] };
const noDrops = { onDropped: () => {} };

t.test('each changed statistic is a line with its value', async (t) => {
  const output = new PassThrough();
  const sink = new LogSink({ extraTags: { team: 'edge' }, output, ...noDrops });
  sink.flush({
    counters: [{ name: 'hits', tags: undefined, value: 10, delta: 4 }],
    gauges: [{ name: 'open', tags: undefined, value: 2 }],
    timers: [{ name: 'time', tags: undefined, timingsMs: [1, 2] }],
  });
  t.equal(
    String(output.read()),
    'hits.__team=edge: 10 (+4)\nopen.__team=edge: 2\ntime.__team=edge: count=2 mean=1.50ms max=2.00ms\n',
  );
});

t.test('an unchanged gauge is not repeated', async (t) => {
  const output = new PassThrough();
  const sink = new LogSink({ extraTags: {}, output, ...noDrops });
  const open = (value: number) => ({ ...nothing, gauges: [{ name: 'open', tags: undefined, value }] });
  sink.flush(open(2));
  sink.flush(open(2));
  sink.flush(open(3));
  t.equal(String(output.read()), 'open: 2\nopen: 3\n');
});

t.test('a blocked output drops lines instead of filling the memory', async (t) => {
  const output = new Writable({ highWaterMark: 1, write() {} });
  let dropped = 0;
  const sink = new LogSink({
    extraTags: {},
    output,
    onDropped: (bytes) => {
      dropped += bytes;
    },
  });
  const hit = { ...nothing, counters: [{ name: 'hits', tags: undefined, value: 1, delta: 1 }] };
  sink.flush(hit);
  sink.flush(hit);
  t.equal(dropped, 'hits: 1 (+1)\n'.length);
});

t.test('all statistics are listed by name with their value', async (t) => {
  const registry = new StatsRegistry();
  registry.counter('ratelimit.service.config_load_success').value += 2;
  registry.counter('ratelimit.memcache.add', { code: 'success' }).value += 1;
  registry.gauge('ratelimit.localcache.entryCount', () => 5);
  registry.domainNotFound('nowhere').value += 1;
  const rule = registry.rule('domain', ['key_value']);
  rule.totalHits += 3;
  rule.withinLimit += 2;
  rule.overLimit += 1;
  registry.rule('domain', ['never_hit']);
  registry.timer('ratelimit_server.ShouldRateLimit.response_time').record(1);
  t.equal(
    formatStats(registry),
    [
      'ratelimit.localcache.entryCount: 5',
      'ratelimit.memcache.add.__code=success: 1',
      'ratelimit.service.config_load_success: 2',
      'ratelimit.service.rate_limit.domain.key_value.near_limit: 0',
      'ratelimit.service.rate_limit.domain.key_value.over_limit: 1',
      'ratelimit.service.rate_limit.domain.key_value.over_limit_with_local_cache: 0',
      'ratelimit.service.rate_limit.domain.key_value.shadow_mode: 0',
      'ratelimit.service.rate_limit.domain.key_value.total_hits: 3',
      'ratelimit.service.rate_limit.domain.key_value.total_negative_hits: 0',
      'ratelimit.service.rate_limit.domain.key_value.within_limit: 2',
      'ratelimit.service.rate_limit.nowhere.domain_not_found: 1',
      'ratelimit.stats.dropped_series: 0',
      'ratelimit.stats.dropped_timings: 0',
      'ratelimit.stats.overflowed_lookups: 0',
      'ratelimit_server.ShouldRateLimit.response_time: count=1 sum=1.00ms p50=1.00ms p99=1.00ms',
      '',
    ].join('\n'),
  );
});

t.test('a rule with refunds only is listed', async (t) => {
  const registry = new StatsRegistry();
  registry.rule('domain', ['refunded']).totalNegativeHits += 2;
  t.match(
    formatStats(registry),
    /^ratelimit\.service\.rate_limit\.domain\.refunded\.total_negative_hits: 2$/m,
  );
});

t.test('series with equal sanitised names are shown as one', async (t) => {
  const registry = new StatsRegistry();
  registry.dynamicRule('domain', ['a:b']).totalHits += 1;
  registry.dynamicRule('domain', ['a_b']).totalHits += 2;
  t.match(formatStats(registry), /^ratelimit\.service\.rate_limit\.domain\.a_b\.total_hits: 3$/m);
});
