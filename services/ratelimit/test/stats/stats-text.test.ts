import t from 'tap';
import { createStatsRegistry } from '../../src/stats/stats-registry.ts';
import { statsText } from '../../src/stats/stats-text.ts';

t.test('all statistics are listed by name with their value', async (t) => {
  const registry = createStatsRegistry();
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
    statsText(registry),
    [
      'ratelimit.localcache.entryCount: 5',
      'ratelimit.memcache.add.__code=success: 1',
      'ratelimit.service.config_load_success: 2',
      'ratelimit.service.rate_limit.domain.key_value.near_limit: 0',
      'ratelimit.service.rate_limit.domain.key_value.over_limit: 1',
      'ratelimit.service.rate_limit.domain.key_value.over_limit_with_local_cache: 0',
      'ratelimit.service.rate_limit.domain.key_value.shadow_mode: 0',
      'ratelimit.service.rate_limit.domain.key_value.total_hits: 3',
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

t.test('series that sanitising gives one name are shown as one', async (t) => {
  const registry = createStatsRegistry();
  registry.dynamicRule('domain', ['a:b']).totalHits += 1;
  registry.dynamicRule('domain', ['a_b']).totalHits += 2;
  t.match(statsText(registry), /^ratelimit\.service\.rate_limit\.domain\.a_b\.total_hits: 3$/m);
});
