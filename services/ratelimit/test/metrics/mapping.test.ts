// biome-ignore-all lint/suspicious/noTemplateCurlyInString: captures of mapping files
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@tollgate/kit/logger';
import t, { type Test } from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { parseMapping } from '../../src/metrics/mapping-file.ts';
import type { MetricMapper, StatType } from '../../src/metrics/metric-mapper.ts';
import { PrometheusExporter } from '../../src/metrics/prometheus.ts';
import { rulesWithHits } from '../../src/metrics/prometheus-format.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import { createSink } from '../../src/metrics/sinks.ts';

function mapperFrom(text: string): MetricMapper {
  const parsed = parseMapping(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.mapper;
}

function mapped(text: string, name: string, type: StatType = 'counter') {
  const metric = mapperFrom(text).map(name, type);
  if (metric === undefined) return undefined;
  return metric.mapping.drop ? 'dropped' : { name: metric.name, labels: Object.fromEntries(metric.labels) };
}

// Each result is that of statsd_exporter 0.26.1.
const cases: readonly [title: string, text: string, name: string, expected: ReturnType<typeof mapped>][] = [
  [
    'a * is one segment',
    'mappings: [{ match: "a.*.c.*", name: "m_$1", labels: { l: "$2-${1}" } }]',
    'a.b.c.d',
    { name: 'm_b', labels: { l: 'd-b' } },
  ],
  ['a * is not two segments', 'mappings: [{ match: "a.*", name: m }]', 'a.b.c', undefined],
  [
    'the first glob that matches is used',
    'mappings: [{ match: "a.*", name: first }, { match: "a.b", name: second }]',
    'a.b',
    { name: 'first', labels: {} },
  ],
  [
    'with glob_disable_ordering, the most specific one',
    '{ defaults: { glob_disable_ordering: true }, mappings: [{ match: "a.*", name: first }, { match: "a.b", name: second }] }',
    'a.b',
    { name: 'second', labels: {} },
  ],
  [
    'with glob_disable_ordering, whatever globs of other lengths are between them',
    '{ defaults: { glob_disable_ordering: true }, mappings: [{ match: "a.*", name: first }, { match: x, name: other }, { match: "a.b", name: second }] }',
    'a.b',
    { name: 'second', labels: {} },
  ],
  [
    'globs come before regular expressions',
    'mappings: [{ match: ".", match_type: regex, name: r }, { match: "a.*", name: g }]',
    'a.b',
    { name: 'g', labels: {} },
  ],
  [
    'a regular expression may match anywhere',
    'mappings: [{ match: "b([^.]*)", match_type: regex, name: "m_$1" }]',
    'a.bcd.e',
    { name: 'm_cd', labels: {} },
  ],
  [
    'named groups, and a name that is as long as possible',
    'mappings: [{ match: "a.(?P<x>.*)", match_type: regex, name: m, labels: { l: "${x}y", k: "$xy", d: "$$x" } }]',
    'a.b',
    { name: 'm', labels: { l: 'by', k: '', d: '$x' } },
  ],
  [
    'captures that do not exist are empty',
    'mappings: [{ match: "a.*", name: "m_$9", labels: { l: "$x" } }]',
    'a.b',
    { name: 'm_', labels: { l: '' } },
  ],
  [
    'drop',
    'mappings: [{ match: ".", match_type: regex, action: drop, name: dropped }]',
    'anything',
    'dropped',
  ],
  [
    'a mapping of gauges does not take a counter',
    'mappings: [{ match: "a.*", name: m, match_metric_type: gauge }]',
    'a.b',
    undefined,
  ],
];

for (const [title, text, name, expected] of cases) {
  t.test(`mapping file: ${title}`, async (t) => {
    t.strictSame(mapped(text, name), expected);
  });
}

const problems: readonly [text: string, problem: RegExp][] = [
  ['mappings:\n- match: a.*\n  nam: x', /^line 3: unknown field nam$/],
  ['mappings:\n- match: a.*', /^line 2: name must be text/],
  ['mappings:\n- match: "a.b*"\n  name: x', /^line 2: match must be segments/],
  ['mappings:\n- match: "("\n  match_type: regex\n  name: x', /^line 2: .*missing closing \)/],
  ['mappings:\n- match: a\n  name: x-y', /^line 3: name must have letters/],
  ['mappings:\n- match: a\n  name: x\n  labels: { "a-b": c }', /^line 4: invalid label a-b$/],
  ['mappings:\n- match: a\n  name: x\n  action: keep', /^line 4: action must be map or drop$/],
  ['mappings:\n- match: a\n  name: x\n  scale: big', /^line 4: scale must be a number$/],
  ['mapping: []', /^line 1: unknown field mapping$/],
  ['mappings: [', /^line \d+: /],
  ['- a', /the file must have fields/],
];

for (const [text, problem] of problems) {
  t.test(`invalid mapping file: ${JSON.stringify(text)}`, async (t) => {
    const parsed = parseMapping(text);
    t.match(parsed.ok ? 'accepted' : parsed.problem, problem);
  });
}

async function scrape(t: Test, registry: StatsRegistry, mapper: MetricMapper): Promise<string[]> {
  const address = { host: '127.0.0.1', port: 0 };
  const exporter = new PrometheusExporter(registry, {
    address,
    path: '/metrics',
    extraTags: { env: 'test' },
    processMetrics: false,
    mapper,
  });
  t.teardown(() => exporter.close());
  await exporter.start();
  const response = await fetch(exporter.url());
  return (await response.text()).split('\n');
}

t.test('a mapping file replaces the default mapping, and keeps the hits by rule', async (t) => {
  const registry = new StatsRegistry();
  registry.rule('shop', ['key_value']).totalHits += 5;
  registry.rule('shop', ['key_value', 'sub', 'deep']).totalHits += 7;
  registry.rule('shop', ['key_value', 'sub', 'other']).totalHits += 1;
  registry.counter('ratelimit.memcache.add', { code: 'success' }).value += 3;
  registry.counter('noise').value += 1;
  registry.gauge('ratelimit.localcache.entryCount').value = 4;
  const mapper = mapperFrom(`
mappings:
- match: ratelimit.service.rate_limit.*.*.total_hits
  name: hits
  help: Hits of rules.
  labels: { domain: $1, key1: $2 }
- match: 'ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\..*)?\\.total_hits'
  match_type: regex
  name: hits
  labels: { key2: $3, domain: $1, key1: $2 }
- match: ratelimit.localcache.*
  name: cache_$1
  scale: 0.5
- match: noise
  action: drop
  name: dropped
`);
  const lines = await scrape(t, registry, mapper);
  const lacking = [
    '# HELP hits Hits of rules.',
    '# TYPE hits counter',
    'hits{domain="shop",key1="key_value",env="test"} 5',
    'hits{domain="shop",key1="key_value",key2="sub",env="test"} 8',
    'ratelimit_memcache_add{code="success",env="test"} 3',
    'cache_entryCount{env="test"} 2',
    'tollgate_ratelimit_hits_total{domain="shop",rule="key_value",level1="key_value",result="within",env="test"} 0',
  ].filter((line) => !lines.includes(line));
  t.strictSame(lacking, []);
  t.notOk(lines.some((line) => /^(noise|dropped)/.test(line)));
});

/** Mapping that Envoy Gateway 1.9.1 mounts for its rate limit service. */
function envoyGatewayMapping(): string {
  const stats = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'];
  const timer = { timer_type: 'histogram' };
  const levels = { domain: '$1', key1: '$2' };
  const segment = '\\.([^\\.]*)';
  const oneLevel = stats.map((stat) => ({
    match: `ratelimit.service.rate_limit.*.*.${stat}`,
    name: `ratelimit_service_rate_limit_${stat}`,
    labels: levels,
    ...timer,
  }));
  const moreLevels = stats.map((stat) => ({
    match: `ratelimit\\.service\\.rate_limit${segment}${segment}${segment}(\\..*)?\\.${stat}`,
    match_type: 'regex',
    name: `ratelimit_service_rate_limit_${stat}`,
    labels: { ...levels, key2: '$3' },
    ...timer,
  }));
  const counters = [
    ['ratelimit.service.call.should_rate_limit.*', 'ratelimit_service_should_rate_limit_error', 'err_type'],
    ['ratelimit_server.*.total_requests', 'ratelimit_service_total_requests', 'grpc_method'],
    ['ratelimit.service.config_load_success', 'ratelimit_service_config_load_success'],
    ['ratelimit.service.config_load_error', 'ratelimit_service_config_load_error'],
  ].map(([match, name, label]) => ({
    match,
    name,
    match_metric_type: 'counter',
    ...(label !== undefined && { labels: { [label]: '$1' } }),
  }));
  const times = {
    match: 'ratelimit_server.*.response_time',
    name: 'ratelimit_service_response_time_seconds',
    labels: { grpc_method: '$1' },
    ...timer,
  };
  // JSON is YAML.
  return JSON.stringify({ mappings: [...oneLevel, ...moreLevels, ...counters, times] });
}

t.test('the mapping of Envoy Gateway counts hits of the local cache twice below two levels', async (t) => {
  const registry = new StatsRegistry();
  for (const keys of [['one'], ['one', 'two', 'three']]) {
    const rule = registry.rule('shop', keys);
    rule.totalHits += 7;
    rule.overLimit += 5;
    rule.overLimitWithLocalCache += 3;
  }
  registry.counter('ratelimit.service.call.should_rate_limit.redis_error').value += 2;
  const lines = await scrape(t, registry, mapperFrom(envoyGatewayMapping()));
  const expected = [
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="one",env="test"} 7',
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="one",key2="two",env="test"} 7',
    'ratelimit_service_rate_limit_over_limit{domain="shop",key1="one",env="test"} 5',
    // The pattern for over_limit also finds over_limit_with_local_cache, as in statsd_exporter.
    'ratelimit_service_rate_limit_over_limit{domain="shop",key1="one",key2="two",env="test"} 8',
    'ratelimit_service_should_rate_limit_error{err_type="redis_error",env="test"} 2',
  ];
  t.strictSame(
    expected.filter((line) => !lines.includes(line)),
    [],
  );
});

t.test('a scrape lets requests pass after 4 ms, after however few rules', async (t) => {
  const registry = new StatsRegistry();
  for (let i = 0; i < 20; i += 1) registry.rule('shop', [`key${i}`]).totalHits += 1;
  let nowMs = 0;
  let turns = 0;
  const countTurns = (): void => {
    turns += 1;
    immediate = setImmediate(countTurns);
  };
  let immediate = setImmediate(countTurns);
  for await (const _ of rulesWithHits(registry, () => nowMs)) nowMs += 2;
  clearImmediate(immediate);
  t.ok(turns >= 9, `${turns} turns in 40 ms`);
});

t.test('timers become histograms with the buckets of the file, or summaries', async (t) => {
  const registry = new StatsRegistry();
  for (const ms of [1, 7, 30]) registry.timer('ratelimit_server.A.response_time').record(ms);
  registry.timer('ratelimit_server.B.response_time').record(2);
  registry.timer('unmapped').record(2);
  const lines = await scrape(
    t,
    registry,
    mapperFrom(`
mappings:
- match: ratelimit_server.A.response_time
  name: a_seconds
  timer_type: histogram
  scale: 0.001
- match: ratelimit_server.B.response_time
  name: b_ms
  observer_type: summary
  summary_options: { quantiles: [{ quantile: 0.5, error: 0.05 }] }
`),
  );
  const series = lines.filter((line) => /^(a_seconds|b_ms|unmapped)/.test(line));
  t.strictSame(
    series.filter((line) => line.startsWith('a_seconds')).map((line) => line.replace('env="test"', '')),
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, '+Inf']
      .map((le) => {
        const count = le === 0.005 ? 1 : le === 0.01 || le === 0.025 ? 2 : 3;
        return `a_seconds_bucket{le="${le}",} ${count}`;
      })
      .concat('a_seconds_sum{} 0.038', 'a_seconds_count{} 3'),
  );
  t.match(series, [
    ...new Array(14).fill(/^a_seconds/),
    /^b_ms\{quantile="0.5",env="test"\} 2(\.1\d*)?$/,
    'b_ms_sum{env="test"} 2',
    'b_ms_count{env="test"} 1',
    /^unmapped\{quantile="0.5",env="test"\} 2/,
    /quantile="0.9"/,
    /quantile="0.99"/,
    'unmapped_sum{env="test"} 2',
    'unmapped_count{env="test"} 1',
  ]);
});

t.test('a missing file means the default mapping, an invalid one a start error', async (t) => {
  const folder = t.testdir();
  const lines: string[] = [];
  const logger = createLogger({
    level: 'warn',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  const create = (path: string) => {
    const read = readSettings({
      USE_PUSHSTATS: 'false',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_MAPPER_YAML: path,
      BACKEND_TYPE: 'memory',
    });
    if (!read.ok) throw new Error('settings');
    return createSink(read.settings, { registry: new StatsRegistry(), output: process.stdout, logger });
  };
  t.ok(await create(join(folder, 'missing.yaml')));
  t.match(lines, [/metrics mapping not found, using the default mapping/]);
  const path = join(folder, 'mapping.yaml');
  await writeFile(path, 'mappings:\n- match: a\n');
  await t.rejects(create(path), {
    message: `PULLMETRICS_MAPPER_YAML: ${path}: line 2: name must be text that is not empty`,
  });
});
