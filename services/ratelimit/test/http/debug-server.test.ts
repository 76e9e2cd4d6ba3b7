import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { type StartAppOptions, startApp } from '../support/start-app.ts';

const shopRules = `
domain: shop
descriptors:
  - key: path
    value: /login
    rate_limit: { unit: minute, requests_per_unit: 5 }
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 7, name: by_user }
  - key: path
    value: /health
    rate_limit: { unlimited: true }
  - key: "it's"
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 9 }
`;

async function startDebug(t: Test, options: StartAppOptions = { rules: { 'shop.yaml': shopRules } }) {
  const started = await startApp(t, options);
  const base = `http://127.0.0.1:${started.ports.debug}`;
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(base + path, init);
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
      response,
    };
  };
  return { ...started, base, ask };
}

const text = 'text/plain; charset=utf-8';
const asJson = { accept: 'application/json' };

t.test('the index lists every page with its description, sorted', async (t) => {
  const { ask } = await startDebug(t);
  const { status, type, text: index } = await ask('/');
  t.equal(status, 200);
  t.equal(type, text);
  const lines = index.trimEnd().split('\n');
  t.strictSame(
    lines.map((line) => line.split(': ')[0]),
    [
      '/debug/pprof/',
      '/debug/pprof/heap',
      '/debug/pprof/profile',
      '/debug/pprof/trace',
      '/explain',
      '/rlconfig',
      '/stats',
      '/trial',
    ],
  );
  t.ok(lines.every((line) => /^\/\S+: .+/.test(line)));
});

t.test('unknown paths are a 404 with the list of pages, for every method', async (t) => {
  const { ask } = await startDebug(t);
  const { text: index } = await ask('/');
  for (const [path, method] of [
    ['/nope', 'GET'],
    ['/rlconfig/more', 'GET'],
    ['/stats', 'POST'],
    ['/', 'DELETE'],
  ] as const) {
    const answer = await ask(path, { method });
    t.strictSame([answer.status, answer.text], [404, `404 page not found\n\n${index}`], `${method} ${path}`);
  }
});

t.test('/rlconfig shows the active rules, one per line and sorted', async (t) => {
  const { ask } = await startDebug(t);
  const { status, type, text: rules } = await ask('/rlconfig');
  t.equal(status, 200);
  t.equal(type, text);
  t.equal(
    rules,
    [
      "shop.it's: unit=DAY requests_per_unit=9, shadow_mode: true, quota_mode: false",
      'shop.path_/health: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false',
      'shop.path_/login.user: unit=HOUR requests_per_unit=7, shadow_mode: false, quota_mode: false',
      'shop.path_/login: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false',
      '',
    ].join('\n'),
  );
});

t.test('/stats shows all statistics', async (t) => {
  const { ask, ports } = await startDebug(t);
  const question = { domain: 'shop', descriptors: [{ entries: [{ key: 'path', value: '/login' }] }] };
  await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body: JSON.stringify(question) });
  const { status, type, text: stats } = await ask('/stats');
  t.equal(status, 200);
  t.equal(type, text);
  t.match(stats, /^ratelimit\.service\.rate_limit\.shop\.path_\/login\.total_hits: 1$/m);
  t.match(stats, /^ratelimit\.service\.config_load_success: 1$/m);
});

t.test('/explain without a query shows its usage with an example that matches a rule', async (t) => {
  const { ask, base } = await startDebug(t);
  const { status, text: usage } = await ask('/explain');
  t.equal(status, 200);
  const [, url = ''] = /curl '(http[^']+\?[^']+)'/.exec(usage) ?? [];
  t.ok(url.startsWith(base), 'the command has the address of this server');
  t.match(await (await fetch(url)).text(), 'limited to 5 per minute');
});

t.test('the example command is safe in shell quotes', async (t) => {
  const rules = { 'a.yaml': 'domain: a\'b\ndescriptors: [{key: "it\'s", rate_limit: {unlimited: true}}]' };
  const { ask } = await startDebug(t, { rules });
  const { text: usage } = await ask('/explain', { headers: { host: "x';rm -rf y" } });
  const [, url = ''] = /curl '(http[^']+\?[^']+)'\n/.exec(usage) ?? [];
  t.equal(new URL(url).searchParams.get('domain'), "a'b");
  t.equal(new URL(url).searchParams.get('descriptor'), "it's=value");
});

t.test('/explain shows the rule of each descriptor of a query', async (t) => {
  const { ask } = await startDebug(t);
  const {
    status,
    type,
    text: explanation,
  } = await ask('/explain?domain=shop&descriptor=path=/login,user=7&descriptor=path=/cart');
  t.equal(status, 200);
  t.equal(type, text);
  t.match(explanation, '(path=/login, user=7): limited to 7 per hour');
  t.match(explanation, 'rule shop.path_/login.user (name by_user)');
  t.match(explanation, '(path=/cart): no limit');
  t.match(explanation, "key matches but value '/cart' is not '/login'");
});

t.test('/explain accepts the JSON of /json, and returns JSON for Accept', async (t) => {
  const { ask } = await startDebug(t);
  const entries = [{ key: 'path', value: '/login' }];
  const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries }], hits_addend: 2 });
  const {
    status,
    type,
    text: explanation,
  } = await ask('/explain', { method: 'POST', body, headers: asJson });
  t.equal(status, 200);
  t.match(type, 'application/json');
  t.match(JSON.parse(explanation), {
    domain: 'shop',
    domainFound: true,
    descriptors: [{ entries, outcome: 'limited', rule: { path: 'shop.path_/login', requestsPerUnit: 5 } }],
    overrides: [],
  });
});

t.test('/explain shows overrides', async (t) => {
  const { ask } = await startDebug(t);
  const entries = [{ key: 'path', value: '/login' }];
  const limit = { requests_per_unit: 3, unit: 'MINUTE' };
  const question = { domain: 'shop', descriptors: [{ entries }, { entries, limit }] };
  const post = { method: 'POST', body: JSON.stringify(question) };
  t.match(
    (await ask('/explain', post)).text,
    'descriptors[1]: its own limit of 3 per minute instead of that of rule shop.path_/login, which says how it is counted',
  );
  const explanation = JSON.parse((await ask('/explain', { ...post, headers: asJson })).text);
  t.match(explanation.overrides, [{ index: 1, requestsPerUnit: 3, unit: 'minute' }]);
  t.equal(explanation.descriptors.length, 1);
});

t.test('/explain shows counter, limit and reset', async (t) => {
  const { ask, ports } = await startDebug(t, {
    rules: { 'shop.yaml': shopRules },
    env: { CACHE_KEY_PREFIX: 'p:' },
    nowMs: () => 1_000_000_000,
  });
  const entries = [{ key: 'path', value: '/login' }];
  const limit = { requests_per_unit: 3, unit: 'HOUR' };
  const descriptors = [{ entries }, { entries, limit }, { entries: [{ key: 'path', value: '/health' }] }];
  const body = JSON.stringify({ domain: 'shop', descriptors });
  for (let i = 0; i < 4; i += 1) {
    await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body });
  }
  const post = { method: 'POST', body };
  const explanation = JSON.parse((await ask('/explain', { ...post, headers: asJson })).text);
  t.strictSame(explanation.descriptors[0].counter, {
    rule: 'path_/login',
    algorithm: 'fixed_window',
    unit: 'minute',
    requestsPerUnit: 5,
    shadowMode: false,
    key: 'p:shop_path_/login_999960',
    count: 4,
    remaining: 1,
    over: false,
    resetSeconds: 20,
  });
  const own = { key: 'p:shop_path_/login_997200', count: 4, remaining: 0, resetSeconds: 800 };
  t.match(explanation.overrides[0].counter, { ...own, unit: 'hour', requestsPerUnit: 3 });
  t.equal(explanation.descriptors[1].counter, undefined, 'unlimited');
  const { text: read } = await ask('/explain', post);
  t.match(read, 'counter p:shop_path_/login_999960: 4 now, limit 5, 1 remaining, reset in 20 s');
  t.match(read, /descriptors\[1\].*\n {4}counter p:shop_path_\/login_997200: 4 now, limit 3, 0 remaining/);
});

t.test('/explain says whether the request would be refused now', async (t) => {
  const rules = `domain: d
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: bucket, rate_limit: { unit: hour, requests_per_unit: 2, algorithm: token_bucket } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: one, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: other, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 9 } }
`;
  const { ask, ports } = await startDebug(t, { rules: { 'd.yaml': rules }, nowMs: () => 1_000_000_000 });
  const bodyOf = (keys: readonly string[], hitsAddend = 1) => {
    const descriptors = keys.map((key) => ({ entries: [{ key, value: 'x' }] }));
    return JSON.stringify({ domain: 'd', descriptors, hitsAddend });
  };
  const wouldBeRefused = async (keys: readonly string[], hitsAddend?: number) => {
    const post = { method: 'POST', body: bodyOf(keys, hitsAddend) };
    const { text: shown } = await ask('/explain', post);
    const explanation = JSON.parse((await ask('/explain', { ...post, headers: asJson })).text);
    const word = explanation.wouldBeRefused === true ? 'refused' : 'allowed';
    t.match(shown, `\n  the request would be ${word} now\n`);
    return explanation.wouldBeRefused;
  };
  const all = ['user', 'bucket', 'shadow', 'one', 'other'];
  t.equal(await wouldBeRefused(all), false);
  t.equal(await wouldBeRefused(['bucket'], 3), true, 'more hits than are left');
  await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body: bodyOf(all) });
  t.equal(await wouldBeRefused(['bucket']), false);
  t.equal(await wouldBeRefused(['user']), true);
  t.equal(await wouldBeRefused(['shadow']), false, 'shadow mode');
  t.equal(await wouldBeRefused(['one', 'other']), false, 'a quota is left');
  t.equal(await wouldBeRefused(['one']), true);
  const { text: shown } = await ask('/explain?domain=d&descriptor=shadow=x');
  t.match(shown, /0 remaining, reset in \d+ s; over the limit now/);
});

t.test('/explain shows the counters of periods and calendars', async (t) => {
  const periods = `domain: d
descriptors:
  - key: five
    rate_limit: { period: 5m, requests_per_unit: 9 }
  - key: day
    rate_limit: { unit: day, time_zone: Asia/Tokyo, requests_per_unit: 9 }
`;
  const { ask, ports } = await startDebug(t, { rules: { 'd.yaml': periods }, nowMs: () => 1_000_000_000 });
  const descriptors = ['five', 'day'].map((key) => ({ entries: [{ key, value: 'x' }] }));
  const body = JSON.stringify({ domain: 'd', descriptors });
  await fetch(`http://127.0.0.1:${ports.http}/json`, { method: 'POST', body });
  const { text: shown } = await ask('/explain?domain=d&descriptor=five=x&descriptor=day=x');
  t.match(shown, /limited to 9 per 300 s[\s\S]*counter d_five_x_5m_999900: 1 now.*reset in 200 s/);
  t.match(shown, /9 per day of Asia\/Tokyo[\s\S]*counter d_day_x_day_Asia\/Tokyo_918000: 1 now.*in 4400 s/);
});

t.test('/explain without a counter store shows its error', async (t) => {
  const redis = await startRedis();
  const { ask } = await startDebug(t, {
    rules: { 'shop.yaml': shopRules },
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address },
  });
  await redis.stop();
  const { status, text: explanation } = await ask('/explain?domain=shop&descriptor=path=/login');
  t.equal(status, 200);
  t.match(explanation, /limited to 5 per minute[\s\S]*\n {2}counters cannot be read: \w/);
});

t.test('/explain counts nothing', async (t) => {
  const { ask } = await startDebug(t);
  for (let i = 0; i < 10; i += 1) await ask('/explain?domain=shop&descriptor=path=/login');
  t.notMatch((await ask('/stats')).text, 'rate_limit.shop');
});

t.test('invalid requests to /explain are rejected with the reason', async (t) => {
  const { ask } = await startDebug(t);
  const refused = async (path: string, init: RequestInit, why: RegExp) => {
    const answer = await ask(path, init);
    t.equal(answer.status, 400, path);
    t.equal(answer.type, text);
    t.match(answer.text, why);
  };
  const post = (body: string) => ({ method: 'POST', body });
  await refused('/explain?descriptor=a=b', {}, /exactly one domain/);
  await refused('/explain?domain=a&domain=b&descriptor=a=b', {}, /exactly one domain/);
  await refused('/explain?domain=shop', {}, /at least one descriptor/);
  await refused('/explain?domain=shop&descriptor=a=b=c', {}, /'a=b=c' is not an entry.*POST/);
  await refused('/explain?domain=shop&descriptor==b', {}, /'=b' is not an entry/);
  await refused('/explain?domain=shop&descriptors=a=b', {}, /unknown parameter 'descriptors'/);
  await refused('/explain', post(''), /not a RateLimitRequest/);
  await refused('/explain', post('{"domain":"shop","descripto":[]}'), /"descripto" is unknown/);
  await refused('/explain', post('{"domain":"shop"}'), /descriptor list must not be empty/);
  const many = Array.from({ length: 101 }, () => ({ entries: [{ key: 'a', value: 'b' }] }));
  await refused(
    '/explain',
    post(JSON.stringify({ domain: 'shop', descriptors: many })),
    /at most 100 descriptors/,
  );
});

t.test('an error is JSON for Accept: application/json', async (t) => {
  const { ask } = await startDebug(t);
  const { status, text: explanation } = await ask('/explain?domain=shop', { headers: asJson });
  t.equal(status, 400);
  t.match(JSON.parse(explanation), { code: 'malformed_request', message: /at least one descriptor/ });
});

t.test('a body or a query that is too large is rejected', async (t) => {
  const { ask } = await startDebug(t);
  t.equal((await ask('/explain', { method: 'POST', body: 'x'.repeat(65 * 1024) })).status, 413);
  t.equal((await ask(`/explain?domain=${'x'.repeat(20_000)}`)).status, 431);
});

t.test('pages are plain text with nosniff', async (t) => {
  const { ask } = await startDebug(t);
  for (const path of ['/', '/rlconfig', '/explain', '/explain?domain=<script>&descriptor=a=b', '/nope']) {
    t.equal((await ask(path)).response.headers.get('x-content-type-options'), 'nosniff', path);
  }
});

t.test('no page shows a secret of the settings', async (t) => {
  const env = { KVSTORE_AUTH: 'hunter2', KVSTORE_URL: 'redis://user:hunter2@127.0.0.1:6379' };
  const { ask } = await startDebug(t, { env });
  for (const path of ['/', '/rlconfig', '/stats', '/explain', '/debug/pprof/']) {
    t.notMatch((await ask(path)).text, 'hunter2', path);
  }
});

t.test('before a first configuration /rlconfig is empty and /explain says so', async (t) => {
  const { ask } = await startDebug(t, { rules: { 'broken.yaml': 'domain: ""' } });
  const rules = await ask('/rlconfig');
  t.strictSame([rules.status, rules.text], [200, '']);
  const explanation = await ask('/explain?domain=shop&descriptor=a=b');
  t.equal(explanation.status, 400);
  t.match(explanation.text, 'no rate limit configuration loaded');
});

t.test('idle connections and slow readers do not make the liveness probe fail', async (t) => {
  const { ask, ports } = await startDebug(t);
  for (let i = 0; i < 40; i += 1) {
    const socket = connect(ports.debug, '127.0.0.1').on('error', () => undefined);
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    if (i % 2 === 0) socket.write('GET /debug/pprof/profile?seconds=5 HTTP/1.1\r\nHost: a\r\n\r\n');
  }
  t.equal((await ask('/')).status, 200);
});

t.test('a debug port in use is logged, and the service starts', async (t) => {
  const squatter = createServer().listen(0, '127.0.0.1');
  t.teardown(() => squatter.close());
  await once(squatter, 'listening');
  const address = squatter.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  const { ports, logLines } = await startApp(t, { env: { DEBUG_PORT: String(taken) } });
  t.equal((await fetch(`http://127.0.0.1:${ports.http}/healthcheck`)).status, 200);
  t.match(
    logLines.find((line) => line['@message'] === 'debug server not started'),
    { level: 'error', port: taken },
  );
});

t.test('the debug port is open while the start waits for the counter backend', async (t) => {
  const env = { BACKEND_TYPE: 'redis', KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: '127.0.0.1:1' };
  const { app, ports } = await startApp(t, { env, start: false });
  const starting = app.lifecycle.start();
  await awaitUntil(() => ports.debug !== 0, { what: 'the debug port' });
  t.equal((await fetch(`http://127.0.0.1:${ports.debug}/stats`)).status, 200);
  await app.lifecycle.stop('seen enough');
  await t.rejects(starting, { name: 'StoppedWhileStarting' });
});
