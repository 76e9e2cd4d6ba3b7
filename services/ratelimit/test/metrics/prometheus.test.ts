import { request } from 'node:http';
import t, { type Test } from 'tap';
import { PrometheusExporter, type PrometheusExporterOptions } from '../../src/metrics/prometheus.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';

async function startExporter(
  t: Test,
  registry: StatsRegistry,
  options: Partial<PrometheusExporterOptions> = {},
) {
  const exporter = new PrometheusExporter(registry, {
    address: { host: '127.0.0.1', port: 0 },
    path: '/metrics',
    extraTags: {},
    processMetrics: false,
    ...options,
  });
  t.teardown(() => exporter.close());
  await exporter.start();
  return { exporter, url: new URL(exporter.url()).origin };
}

async function scrape(t: Test, registry: StatsRegistry, options: Partial<PrometheusExporterOptions> = {}) {
  const { url } = await startExporter(t, registry, options);
  const response = await fetch(`${url}/metrics`);
  t.equal(response.status, 200);
  const lines = (await response.text()).split('\n');
  return { response, lines, starting: (start: string) => lines.filter((line) => line.startsWith(start)) };
}

t.test('rules have the names and labels of envoyproxy/ratelimit', async (t) => {
  const registry = new StatsRegistry();
  const one = registry.rule('domain', ['key_value']);
  one.totalHits += 5;
  one.overLimit += 2;
  one.overLimitWithLocalCache += 1;
  registry.rule('domain', ['key_value', 'sub_x']).totalHits += 7;
  registry.rule('domain', ['never_hit']);

  const { response, lines, starting } = await scrape(t, registry);
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  t.strictSame(starting('ratelimit_service_rate_limit_total_hits'), [
    'ratelimit_service_rate_limit_total_hits{domain="domain",key1="key_value"} 5',
    'ratelimit_service_rate_limit_total_hits{domain="domain",key1="key_value",key2="sub_x"} 7',
  ]);
  t.ok(lines.includes('# TYPE ratelimit_service_rate_limit_total_hits counter'));
  t.strictSame(
    starting('ratelimit_service_rate_limit_over_limit{'),
    [
      'ratelimit_service_rate_limit_over_limit{domain="domain",key1="key_value"} 2',
      'ratelimit_service_rate_limit_over_limit{domain="domain",key1="key_value",key2="sub_x"} 0',
    ],
    'hits answered from the local cache are not counted twice',
  );
  t.strictSame(
    starting('ratelimit_service_rate_limit_over_limit_with_local_cache{domain="domain",key1="key_value"}'),
    ['ratelimit_service_rate_limit_over_limit_with_local_cache{domain="domain",key1="key_value"} 1'],
  );
});

t.test('dots in domains and keys separate labels, as in envoyproxy/ratelimit', async (t) => {
  const registry = new StatsRegistry();
  registry.rule('shop.example', ['path']).totalHits += 1;
  registry.rule('shop', ['user.id_7', 'path']).totalHits += 2;
  registry.rule('shop', ['ip_10.0.0.1']).totalHits += 3;
  const { starting } = await scrape(t, registry);
  t.strictSame(starting('ratelimit_service_rate_limit_total_hits'), [
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="example",key2="path"} 1',
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="user",key2="id_7"} 2',
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="ip_10_0_0_1"} 3',
  ]);
});

t.test('statistics without a default mapping have their full names without labels', async (t) => {
  const registry = new StatsRegistry();
  for (const level of ['a-b', 'a_b', 'never']) {
    const rule = registry.rule('shop', [level, 'sub']);
    rule.totalHits += 1;
    rule.overLimitWithLocalCache += level === 'never' ? 0 : 1;
  }
  registry.domainNotFound('no.where').value += 7;
  const { starting } = await scrape(t, registry);
  const flat = 'ratelimit_service_rate_limit_shop_a_b_sub_over_limit_with_local_cache';
  t.strictSame(starting(flat), [`${flat} 2`], 'names that become the same are summed');
  t.strictSame(starting('ratelimit_service_rate_limit_shop_never'), []);
  const notFound = 'ratelimit_service_rate_limit_no_where_domain_not_found';
  t.strictSame(starting(notFound), [`${notFound} 7`]);
});

t.test('rules that differ only below the second level are summed', async (t) => {
  const registry = new StatsRegistry();
  registry.rule('domain', ['a', 'b', 'c']).totalHits += 1;
  registry.rule('domain', ['a', 'b', 'd', 'e']).totalHits += 2;
  const { starting } = await scrape(t, registry);
  t.strictSame(starting('ratelimit_service_rate_limit_total_hits'), [
    'ratelimit_service_rate_limit_total_hits{domain="domain",key1="a",key2="b"} 3',
  ]);
});

t.test('tollgate_ratelimit_hits_total has a label for each level with unsanitised values', async (t) => {
  const registry = new StatsRegistry();
  const rule = registry.rule('domain', ['ip_10.0.0.1', 'path_/a"b']);
  rule.totalHits += 4;
  rule.withinLimit += 3;
  rule.nearLimit += 2;
  rule.shadowMode += 1;
  const { starting } = await scrape(t, registry);
  const labels = String.raw`domain="domain",rule="ip_10.0.0.1.path_/a\"b",level1="ip_10.0.0.1",level2="path_/a\"b"`;
  t.strictSame(starting('tollgate_ratelimit_hits_total'), [
    `tollgate_ratelimit_hits_total{${labels},result="within"} 3`,
    `tollgate_ratelimit_hits_total{${labels},result="near"} 2`,
    `tollgate_ratelimit_hits_total{${labels},result="over"} 0`,
    `tollgate_ratelimit_hits_total{${labels},result="over_local_cache"} 0`,
    `tollgate_ratelimit_hits_total{${labels},result="shadow"} 1`,
  ]);
});

t.test('tollgate_ratelimit_hits_total is bounded: further rules are summed per domain', async (t) => {
  const registry = new StatsRegistry();
  for (let i = 0; i < 5; i++) {
    const rule = registry.rule('domain', [`rule_${i}`]);
    rule.totalHits += 1;
    rule.withinLimit += 1;
  }
  const { lines } = await scrape(t, registry, { maxRules: 2 });
  const within = lines.filter((line) => line.includes('tollgate_') && line.includes('result="within"'));
  t.equal(within.length, 3);
  t.equal(within[2], 'tollgate_ratelimit_hits_total{domain="domain",rule="_other",result="within"} 3');
});

t.test('errors, requests and response times have the names of envoyproxy/ratelimit', async (t) => {
  const registry = new StatsRegistry();
  registry.counter('ratelimit.service.call.should_rate_limit.redis_error').value += 1;
  registry.counter('ratelimit.service.call.should_rate_limit.service_error').value += 2;
  registry.counter('ratelimit_server.ShouldRateLimit.total_requests').value += 3;
  registry.counter('ratelimit.service.config_load_success').value += 4;
  registry.counter('ratelimit.service.global_shadow_mode').value += 5;
  registry.gauge('ratelimit.localcache.hitCount', () => 6);
  registry.domainNotFound('nowhere').value += 7;
  const timer = registry.timer('ratelimit_server.ShouldRateLimit.response_time');
  timer.record(0.03125);
  timer.record(5);
  timer.record(30);
  timer.record(20_000);

  const { lines, starting } = await scrape(t, registry);
  t.strictSame(starting('ratelimit_service_should_rate_limit_error'), [
    'ratelimit_service_should_rate_limit_error{err_type="redis_error"} 1',
    'ratelimit_service_should_rate_limit_error{err_type="service_error"} 2',
  ]);
  for (const line of [
    'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3',
    'ratelimit_service_config_load_success 4',
    'ratelimit_service_global_shadow_mode 5',
    '# TYPE ratelimit_localcache_hitCount gauge',
    'ratelimit_localcache_hitCount 6',
    'ratelimit_service_rate_limit_domain_not_found{domain="nowhere"} 7',
    '# TYPE ratelimit_service_response_time_seconds histogram',
  ]) {
    t.ok(lines.includes(line), line);
  }
  const method = 'grpc_method="ShouldRateLimit"';
  const bucket = (le: string, count: number) =>
    `ratelimit_service_response_time_seconds_bucket{${method},le="${le}"} ${count}`;
  t.strictSame(starting('ratelimit_service_response_time_seconds'), [
    bucket('0.00005', 1),
    bucket('0.0001', 1),
    bucket('0.00025', 1),
    bucket('0.0005', 1),
    bucket('0.001', 1),
    bucket('0.0025', 1),
    bucket('0.005', 2),
    bucket('0.01', 2),
    bucket('0.025', 2),
    bucket('0.05', 3),
    bucket('0.1', 3),
    bucket('0.25', 3),
    bucket('0.5', 3),
    bucket('1', 3),
    bucket('2.5', 3),
    bucket('5', 3),
    bucket('10', 3),
    bucket('+Inf', 4),
    `ratelimit_service_response_time_seconds_sum{${method}} 20.03503125`,
    `ratelimit_service_response_time_seconds_count{${method}} 4`,
  ]);
});

t.test('response times can be exported in milliseconds', async (t) => {
  const registry = new StatsRegistry();
  registry.timer('ratelimit_server.Check.response_time').record(30);
  const { starting } = await scrape(t, registry, { responseTimeAsMilliseconds: true });
  t.strictSame(starting('ratelimit_service_response_time_seconds_sum'), [
    'ratelimit_service_response_time_seconds_sum{grpc_method="Check"} 30',
  ]);
});

t.test('extra tags are labels of every metric, those of the process too', async (t) => {
  const registry = new StatsRegistry();
  registry.counter('ratelimit.service.config_load_error').value += 1;
  const rule = registry.rule('domain', ['key']);
  rule.totalHits += 1;
  const { lines, starting } = await scrape(t, registry, {
    extraTags: { 'my-team': 'edge', domain: 'not this one' },
    processMetrics: true,
  });
  t.ok(lines.includes('ratelimit_service_config_load_error{my_team="edge",domain="not this one"} 1'));
  t.ok(
    lines.includes('ratelimit_service_rate_limit_total_hits{domain="domain",key1="key",my_team="edge"} 1'),
  );
  t.match(starting('process_resident_memory_bytes')[0], /my_team="edge"/);
});

t.test('each scrape has the current values', async (t) => {
  const registry = new StatsRegistry();
  const { url } = await startExporter(t, registry);
  const loads = registry.counter('loads');
  for (const expected of [1, 2]) {
    loads.value += 1;
    const text = await (await fetch(`${url}/metrics`)).text();
    t.match(text, new RegExp(`^loads ${expected}$`, 'm'));
  }
});

t.test('other paths and methods are rejected', async (t) => {
  const { url } = await startExporter(t, new StatsRegistry(), { path: '/stats/prom' });
  t.equal((await fetch(`${url}/metrics`)).status, 404);
  t.equal((await fetch(`${url}/stats/prom`, { method: 'POST' })).status, 405);
  t.equal((await fetch(`${url}/stats/prom?name=x`)).status, 200);
  const head = await fetch(`${url}/stats/prom`, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(await head.text(), '');
});

t.test('a scrape of many rules does not block the event loop', async (t) => {
  const registry = new StatsRegistry();
  for (let i = 0; i < 10_000; i++) {
    const rule = registry.rule('domain', [`key_${i}`, 'sub']);
    rule.totalHits += 1;
  }
  const { url } = await startExporter(t, registry);
  let turns = 0;
  const scraped = new AbortController();
  const turn = () => {
    turns += 1;
    if (!scraped.signal.aborted) setImmediate(turn);
  };
  turn();
  const text = await (await fetch(`${url}/metrics`)).text();
  scraped.abort();
  t.equal(text.match(/^ratelimit_service_rate_limit_total_hits\{/gm)?.length, 10_000);
  t.ok(turns > 100, `${turns} turns of the event loop meanwhile`);
});

t.test('closing does not wait for a scraper that keeps its connection', async (t) => {
  const { exporter, url } = await startExporter(t, new StatsRegistry());
  await new Promise<void>((resolve, reject) => {
    request(`${url}/metrics`, { agent: false, headers: { connection: 'keep-alive' } }, (response) => {
      response.resume().on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
  await exporter.close();
  await exporter.close();
  t.throws(() => exporter.url(), TypeError);
});

t.test('a port in use fails the start and names its setting', async (t) => {
  const registry = new StatsRegistry();
  const { exporter } = await startExporter(t, registry);
  const port = Number(new URL(exporter.url()).port);
  const second = new PrometheusExporter(registry, {
    address: { host: '127.0.0.1', port },
    path: '/metrics',
    extraTags: {},
    processMetrics: false,
  });
  await t.rejects(second.start(), { message: /PULLMETRICS_ADDR.*EADDRINUSE/ });
  await second.close();
});
