import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { handleArguments } from '../../src/cli/arguments.ts';
import { readSettings } from '../../src/config/settings.ts';
import { getDecisionOptions } from '../../src/decision/options.ts';
import { createStoreFailures } from '../../src/decision/store-failure.ts';
import { formatFamily, trialMetrics } from '../../src/metrics/prometheus-format.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import { formatStats } from '../../src/metrics/text.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { createTrialReport, type TrialReport } from '../../src/trial/report.ts';
import { Trial } from '../../src/trial/trial.ts';
import { descriptors, startCounterApi } from '../support/counter-api.ts';
import { descriptor, rulesOf } from '../support/make-decider.ts';
import { rulesText } from '../support/rule-folder.ts';
import { type StartAppOptions, startApp } from '../support/start-app.ts';

const hour = 3_600_000;
const nowMs = Math.floor(Date.now() / hour) * hour;

const rules = {
  'shop.yaml': `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: removed, rate_limit: { unit: hour, requests_per_unit: 1 } }
`,
};

const candidates = {
  'shop.yaml': `
domain: shop
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - key: path
    value: "/x*"
    share_threshold: true
    rate_limit: { period: 36h, requests_per_unit: 1, algorithm: token_bucket }
  - { key: free, rate_limit: { unlimited: true } }
`,
};

interface Requested {
  readonly hits?: number;
  readonly refund?: boolean;
  readonly override?: number;
}

async function startTrial(t: Test, options: StartAppOptions = {}) {
  const started = await startApp(t, { rules, candidates, nowMs: () => nowMs, ...options });
  const { http, debug } = started.ports;
  const page = async (headers: Readonly<Record<string, string>>): Promise<string> =>
    (await fetch(`http://127.0.0.1:${debug}/trial`, { headers })).text();
  const report = async (): Promise<TrialReport> => JSON.parse(await page({ accept: 'application/json' }));
  return {
    ...started,
    page,
    report,
    /** Resolves with the report once that many requests were compared. */
    compared: (requests: number): Promise<TrialReport> =>
      awaitUntil(
        async () => {
          const current = await report();
          return current.domains[0]?.requests === requests ? current : undefined;
        },
        { what: `${requests} compared requests` },
      ).then((found) => found ?? report()),
    /** The status of `/json`: 200 or 429. */
    async ask(entry: Readonly<Record<string, string>>, { hits, refund, override }: Requested = {}) {
      const descriptor = {
        entries: Object.entries(entry).map(([key, value]) => ({ key, value })),
        ...(hits === undefined ? undefined : { hitsAddend: String(hits) }),
        ...(refund === true ? { isNegativeHits: true } : undefined),
        ...(override === undefined ? undefined : { limit: { requestsPerUnit: override, unit: 'HOUR' } }),
      };
      const body = JSON.stringify({ domain: 'shop', descriptors: [descriptor] });
      const response = await fetch(`http://127.0.0.1:${http}/json`, { method: 'POST', body });
      await response.text();
      return response.status;
    },
  };
}

t.test(
  'while the store fails, the policy of the rules on trial decides what they would refuse',
  async (t) => {
    const redis = await startRedis();
    t.teardown(redis.stop);
    const limit = 'rate_limit: { unit: hour, requests_per_unit: 9 }';
    const domainOf = (policy: string) =>
      `domain: shop\non_store_failure: ${policy}\ndescriptors: [{ key: tenant, ${limit} }]\n`;
    const { ask, compared, stats } = await startTrial(t, {
      rules: { 'shop.yaml': domainOf('allow') },
      candidates: { 'shop.yaml': domainOf('deny') },
      env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' },
    });
    t.equal(await ask({ tenant: 'a' }), 200);
    t.match(await compared(1), { domains: [{ wouldRefuse: 0 }] });
    await redis.kill();
    t.equal(await ask({ tenant: 'a' }), 200);
    t.match(await compared(2), {
      domains: [{ wouldRefuse: 1, newlyRefused: 1 }],
      notCompared: { failed: 0 },
    });
    t.equal(stats.counter('ratelimit.store_failure', { policy: 'deny' }).value, 0, 'not in force');
  },
);

async function askAll(
  ask: (entry: Readonly<Record<string, string>>) => Promise<number>,
  entry: Readonly<Record<string, string>>,
  times: number,
): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i += 1) statuses.push(await ask(entry));
  return statuses;
}

for (const store of ['memory', 'redis'] as const) {
  t.test(`rules on trial count the difference and change no answer, over ${store}`, async (t) => {
    const redis = store === 'redis' ? await startRedis() : undefined;
    t.teardown(() => redis?.stop());
    const env = redis && { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, CACHE_KEY_PREFIX: 'p_' };
    const { ask, compared, page, ports, stats } = await startTrial(t, env && { env });
    t.same(await askAll(ask, { tenant: 'a' }, 5), [200, 200, 200, 429, 429]);
    await compared(5);
    t.equal(await ask({ tenant: 'a' }, { hits: 4, refund: true }), 200);
    t.same(await askAll(ask, { tenant: 'a' }, 2), [200, 200], 'the refund reached both counters');
    t.same(await askAll(ask, { removed: '1' }, 2), [200, 429]);
    t.same(
      [await ask({ path: '/x1' }), await ask({ path: '/x2' }), await ask({ free: '' })],
      [200, 200, 200],
    );
    t.equal(await ask({ tenant: 'b' }, { override: 0 }), 429, 'an override is no limit of a rule');

    const report = await compared(12);
    t.match(report.trial, { domains: 1, rules: 3, since: new Date(nowMs).toISOString() });
    t.same(report.notCompared, { dropped: 0, failed: 0 });
    t.match(report.domains, [
      { domain: 'shop', requests: 12, wouldRefuse: 5, refused: 3, newlyRefused: 3, newlyAllowed: 1 },
    ]);
    t.match(report.domains, [{ wouldRefusePercent: 41.7, refusedPercent: 25 }]);
    t.match(report.rules, [
      { rule: 'shop.tenant', limit: '2 per hour', requests: 7, wouldRefuse: 4, refused: 2, newlyRefused: 2 },
      { rule: 'shop.path_/x*', limit: '1 per 36h, token_bucket, burst 1', requests: 2, wouldRefuse: 1 },
      { rule: 'shop.free', limit: 'unlimited', requests: 1, wouldRefuse: 0 },
    ]);

    const text = await page({});
    t.match(text, /^domain shop: 12 requests, would refuse 41\.7 %, today 25\.0 %$/m);
    t.match(text, /^shop\.tenant +2 per hour +7 +57\.1 % +28\.6 % +2 +0$/m);
    const address = `http://127.0.0.1:${ports.debug}`;
    t.equal((await handleArguments(['trial', '--address', address]))?.output, text);
    const json = await handleArguments(['trial', '--address', address, '--json']);
    t.same(JSON.parse(json?.output ?? ''), report);
    const { counters } = stats.takeSnapshot(nowMs);
    t.match(
      counters
        .filter(({ name }) => /trial.+newly_refused/.test(name))
        .map(({ name, delta }) => [name, delta]),
      [
        ['ratelimit.trial.domain.shop.newly_refused', 3],
        ['ratelimit.trial.rule.shop.tenant.newly_refused', 2],
        ['ratelimit.trial.rule.shop.path_/x*.newly_refused', 1],
      ],
    );
    t.match(formatStats(stats), /^ratelimit\.trial\.rule\.shop\.tenant\.would_refuse: 4$/m);
    const families = [...trialMetrics(stats)].flatMap((family) => [...formatFamily(family)]).join('');
    t.match(
      families,
      /^tollgate_ratelimit_trial_rule_requests_total\{domain="shop",rule="shop\.tenant",result="would_refuse"\} 4$/m,
    );
    t.match(
      families,
      /^tollgate_ratelimit_trial_domain_requests_total\{domain="shop",result="requests"\} 12$/m,
    );
    if (redis === undefined) return;
    const keys = await redisCommand(redis, 'KEYS', '*tenant_a*');
    t.match(String(keys), new RegExp(`p_shop_tenant_a_${nowMs / 1000}`));
    t.match(String(keys), new RegExp(`p_tollgate-trial_shop_tenant_a_${nowMs / 1000}`));
  });
}

t.test('in memory, counters of rules on trial evict no counter in force', async (t) => {
  const { ask, compared } = await startTrial(t, { env: { MEMORY_MAX_COUNTERS: '8' } });
  const tenants = Array.from({ length: 8 }, (_, i) => ({ tenant: String(i) }));
  for (const tenant of tenants) t.same(await askAll(ask, tenant, 3), [200, 200, 200]);
  await compared(24);
  for (const tenant of tenants) t.equal(await ask(tenant), 429);
  t.match(await compared(32), { domains: [{ wouldRefuse: 16, refused: 8 }] });
});

t.test('overrides of the counter API apply to rules on trial', async (t) => {
  const { call, decide, stats } = await startCounterApi(t, { rules, candidates, nowMs: () => nowMs });
  const override = { requestsPerUnit: 5, ttlSeconds: 60, reason: 'sale' };
  const entry = { domain: 'shop', descriptors: descriptors('tenant=ann') };
  t.equal((await call('/v1/overrides', { ...entry, ...override }, { method: 'PUT' })).status, 200);
  for (let i = 0; i < 5; i += 1) t.ok(await decide('shop', 'tenant=ann'));
  t.notOk(await decide('shop', 'tenant=ann'));
  const compared = async () => createTrialReport(stats).domains[0]?.requests === 6;
  await awaitUntil(compared, { what: '6 compared requests' });
  const { rules: counts } = createTrialReport(stats);
  t.match(counts, [{ requests: 6, wouldRefuse: 1, refused: 1, newlyRefused: 0, newlyAllowed: 0 }]);
});

t.test('a failing store of rules on trial is counted and changes no answer', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { ask, report, compared } = await startTrial(t, {
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address },
  });
  // INCRBY fails for a key of another type.
  await redisCommand(redis, 'LPUSH', `tollgate-trial_shop_tenant_a_${nowMs / 1000}`, 'x');
  t.same(await askAll(ask, { tenant: 'a' }, 4), [200, 200, 200, 429]);
  await awaitUntil(async () => (await report()).notCompared.failed === 4, { what: 'four failures' });
  await ask({ tenant: 'b' });
  t.match((await compared(1)).rules, [{ rule: 'shop.tenant', requests: 1, refused: 0 }]);
});

t.test('counts start at 0 when candidate rules change, and invalid ones change nothing', async (t) => {
  const { ask, report, compared, candidatesFolder, logLines, app, page } = await startTrial(t, {
    rules: { 'shop.yaml': rulesText('shop', 1) },
    candidates: { 'shop.yaml': rulesText('shop', 2) },
    env: { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' },
  });
  const edit = (text: string): void => writeFileSync(join(candidatesFolder, 'shop.yaml'), text);
  const logged = (message: string) => logLines.filter((line) => line['@message'] === message);
  await ask({ k: '' });
  const { version } = (await compared(1)).trial ?? {};
  t.match(logged('candidate rules loaded'), [{ level: 'info', domains: 1, rules: 1, version }]);

  edit(`${rulesText('shop', 2)}# a comment\n`);
  edit('domain: shop\ndescriptors:\n  - { key: k, rate_limit: { unit: eon } }\n');
  await awaitUntil(() => logged('keeping the last valid candidate rules').length > 0, { what: 'the log' });
  t.match(logged('candidate rules not loaded'), [
    { level: 'error', problem: "config/shop.yaml:3:35: invalid rate limit unit 'eon'" },
  ]);
  t.ok(app.health.isHealthy());
  await ask({ k: '' });
  t.match(await compared(2), { trial: { version }, rules: [{ requests: 2, newlyAllowed: 1 }] });

  edit(rulesText('shop', 0));
  await awaitUntil(async () => (await report()).trial?.version !== version, { what: 'the new set' });
  t.match(await report(), { trial: { rules: 1 }, domains: [], rules: [] });
  t.match(await page({}), /no requests yet/);
  await ask({ k: 'other' });
  t.match(await compared(1), { rules: [{ limit: '0 per hour', newlyRefused: 1 }] });

  edit('domain: shop\n');
  await awaitUntil(async () => (await report()).trial?.rules === 0, { what: 'a set without rules' });
});

t.test('without candidate rules the page and the command say how to have some', async (t) => {
  const { ports } = await startApp(t, { rules });
  const address = `http://127.0.0.1:${ports.debug}`;
  t.match(await handleArguments(['trial', '-address', address]), {
    exitCode: 0,
    output: /^No rules are on trial\. .*CANDIDATE_RUNTIME_SUBDIRECTORY/,
  });
  t.match(await handleArguments(['trial', '-address', `http://127.0.0.1:${ports.http}`]), {
    exitCode: 1,
    errors: /HTTP 404, is this the debug port/,
  });
  t.match(await handleArguments(['trial', '-address', 'localhost']), {
    exitCode: 2,
    errors: /is a URL such as/,
  });
});

t.test('requests that wait and rules with counts are bounded', async (t) => {
  const read = readSettings({ BACKEND_TYPE: 'memory' });
  if (!read.ok) throw new Error('invalid settings');
  const stats = new StatsRegistry();
  const nowSeconds = (): number => nowMs / 1000;
  const store = new MemoryStore({ nowMs: () => nowMs, maxCounters: 10 });
  const trial = new Trial({
    store,
    stopIncrementWhenOverLimit: false,
    options: getDecisionOptions(read.settings),
    stats,
    storeFailures: createStoreFailures(read.settings, {
      logger: createLogger({ level: 'fatal', format: 'json' }),
      nowMs: () => nowMs,
    }),
    nowSeconds,
    random: () => 0,
  });
  const set = { version: 'a', sinceMs: nowMs, domains: 1, rules: 1 };
  const counts = stats.startTrial(set);
  trial.loaded = { rules: rulesOf(rulesText('d', 1)), counts };
  const request = { domain: 'd', hitsAddend: 1, descriptors: [descriptor({ k: '' })] };
  for (let i = 0; i < 10_003; i += 1) trial.observe(request, []);
  const { notCompared } = createTrialReport(stats);
  t.same(notCompared, { dropped: 3, failed: 0 });
  await awaitUntil(() => counts.domain('d').requests === 10_000, { what: 'the comparison of all others' });
  t.equal(counts.domain('d').wouldRefuse, 9_999);

  for (let i = 0; i < 10_001; i += 1) counts.rule('d', `d.${i}`, '').requests += 1;
  const series = [...counts.all()];
  t.equal(series.length, 10_002, 'a domain, 10,000 rules and the others');
  t.match(series.at(-1), { domain: 'd', rule: 'd._other', requests: 2 });
});

t.test('a missing candidate folder stops the start and names the setting', async (t) => {
  await t.rejects(startApp(t, { rules, env: { CANDIDATE_RUNTIME_SUBDIRECTORY: 'next' } }), {
    message:
      /^the rule directory .+\/next\/config cannot be read \(ENOENT\).+CANDIDATE_RUNTIME_SUBDIRECTORY \(next\)/,
  });
  for (const env of [
    { CANDIDATE_RUNTIME_SUBDIRECTORY: '.' },
    { CANDIDATE_RUNTIME_SUBDIRECTORY: 'config' },
    { CANDIDATE_RUNTIME_SUBDIRECTORY: '../candidate' },
    { CANDIDATE_RUNTIME_SUBDIRECTORY: 'next/../../candidate' },
    { CANDIDATE_RUNTIME_SUBDIRECTORY: '/candidate' },
    { CANDIDATE_RUNTIME_SUBDIRECTORY: 'next', CONFIG_TYPE: 'GRPC_XDS_SOTW' },
  ]) {
    await t.rejects(startApp(t, { rules, env }), { message: /CANDIDATE_RUNTIME_SUBDIRECTORY/ });
  }
});
