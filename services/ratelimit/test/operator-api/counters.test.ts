import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startMemcached } from '@tollgate/testkit/memcached';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { getOwnAddress } from '../../src/cli/counter-client.ts';
import { runCounters } from '../../src/cli/counters.ts';
import { adminToken, descriptors, startCounterApi } from '../support/counter-api.ts';
import { runCommand } from '../support/run-command.ts';

const rules = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2, name: by_user }
  - key: bucket
    rate_limit: { unit: hour, requests_per_unit: 3, algorithm: token_bucket, burst: 2 }
  - key: sliding
    rate_limit: { unit: hour, requests_per_unit: 3, algorithm: sliding_window }
  - key: slots
    rate_limit: { unit: hour, requests_per_unit: 1, algorithm: concurrency }
  - key: health
    rate_limit: { unlimited: true }
`;
const windowsOnly = rules.replaceAll(/, algorithm: \w+(, burst: 2)?/g, '');

const redis = await startRedis();
t.teardown(redis.stop);
const memcached = await startMemcached();
t.teardown(memcached.stop);

const stores = {
  memory: {},
  redis: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' },
  memcache: { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: memcached.address },
};

for (const [store, env] of Object.entries(stores)) {
  const isMemcache = store === 'memcache';
  t.test(`${store}: peek counts nothing, reset allows requests again`, async (t) => {
    const { call, decide, explain, logLines } = await startCounterApi(t, {
      rules: { 'shop.yaml': isMemcache ? windowsOnly : rules },
      env: { ...env, LOCAL_CACHE_SIZE_IN_BYTES: '600000' },
    });
    const keys = ['user=ann', 'bucket=ann', 'sliding=ann', 'slots=ann'];
    const peek = async () => {
      const { status, json } = await call('/v1/counters/peek', {
        domain: 'shop',
        descriptors: descriptors(...keys, 'health=1', 'other=1'),
      });
      t.equal(status, 200);
      return json.descriptors as { outcome: string; counter?: Record<string, unknown> }[];
    };
    const counts = async () => (await peek()).map(({ counter }) => counter?.count);
    t.strictSame(await counts(), [0, 0, 0, 0, undefined, undefined]);
    for (const key of keys) {
      while (await decide('shop', key));
    }
    const before = await peek();
    t.match(before, [
      {
        outcome: 'limited',
        counter: {
          rule: 'user',
          name: 'by_user',
          algorithm: 'fixed_window',
          unit: 'hour',
          requestsPerUnit: 2,
          shadowMode: false,
          key: /^shop_user_ann_\d+$/,
          count: 3,
          remaining: 0,
        },
      },
      isMemcache ? {} : { counter: { algorithm: 'token_bucket', burst: 2, count: 2, remaining: 0 } },
      isMemcache ? {} : { counter: { algorithm: 'sliding_window', count: 3, remaining: 0 } },
      isMemcache ? {} : { counter: { algorithm: 'concurrency', count: 1, remaining: 0 } },
      { outcome: 'unlimited' },
      { outcome: 'none' },
    ]);
    const explained = (await explain('shop', ...keys)).descriptors as typeof before;
    t.strictSame(
      explained.map(({ counter }) => counter?.count),
      before.slice(0, keys.length).map(({ counter }) => counter?.count),
      '/explain shows the same counters',
    );
    t.strictSame(await counts(), await counts(), 'peek changes nothing');
    const reset = await call('/v1/counters/reset', { domain: 'shop', descriptors: descriptors(...keys) });
    t.match(reset, { status: 200, json: { counters: [{ key: /^shop_user_ann_/, count: 3 }, {}, {}, {}] } });
    t.strictSame(await counts(), [0, 0, 0, 0, undefined, undefined]);
    t.ok(await decide('shop', 'user=ann'), 'the over-limit cache has forgotten the counter');
    t.match(
      logLines.find(({ audit }) => audit === true),
      { '@message': 'counters changed by the counter API', action: 'reset', caller: 'token', domain: 'shop' },
    );
  });
}

t.test('requests without the token, or that are invalid, are refused', async (t) => {
  const { base, call } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: `Basic ${adminToken}` }]) {
    const response = await fetch(`${base}/v1/counters/peek`, { method: 'POST', headers, body: '{}' });
    t.equal(response.status, 401);
    t.equal(response.headers.get('www-authenticate'), 'Bearer');
    t.match(await response.json(), { code: 'caller_not_authenticated' });
  }
  const peeked = await call('/v1/counters/peek/domains', {
    requests: ['shop', 'other'].map((domain) => ({ domain, descriptors: descriptors('user=ann') })),
  });
  t.match(peeked.json.peeks, [
    { domain: 'shop', descriptors: [{ outcome: 'limited', counter: { count: 0 } }] },
    { domain: 'other', descriptors: [{ outcome: 'none' }] },
  ]);
  const refused = async (path: string, body: unknown, expected: unknown) =>
    t.match(await call(path, body), expected);
  await refused('/v1/other', {}, { status: 404, json: { code: 'path_not_found' } });
  await refused('/v1/counters/peek', undefined, { status: 404 });
  await refused('/v1/counters/peek', {}, { status: 400, json: { code: 'empty_domain' } });
  await refused('/v1/counters/peek', { domain: 'shop', more: 1 }, { json: { code: 'malformed_request' } });
  await refused(
    '/v1/counters/peek',
    { domain: 'shop', descriptors: Array(101).fill({}) },
    { status: 400, json: { code: 'too_many_descriptors' } },
  );
  await refused(
    '/v1/counters/peek/domains',
    { requests: [51, 50].map((count) => ({ domain: 'shop', descriptors: Array(count).fill({}) })) },
    { status: 400, json: { code: 'too_many_descriptors' } },
  );
  for (const body of [{}, { requests: [{}] }, { requests: [], domain: 'shop' }, { requests: [null] }])
    await refused('/v1/counters/peek/domains', body, { status: 400 });
  await refused(
    '/v1/counters/reset',
    { domain: 'shop', descriptors: descriptors('other=1') },
    { status: 404, json: { code: 'descriptor_not_limited' } },
  );
});

t.test('the command prints tables or JSON, and what is wrong', async (t) => {
  const { base, decide, ports } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  await decide('shop', 'user=bob');
  const run = (...args: string[]) =>
    runCounters([...args, '-domain', 'shop', '-address', base], { ADMIN_TOKEN: adminToken });
  const table =
    /^DESCRIPTOR +RULE +LIMIT +COUNT +REMAINING +RESET\nuser=bob +user +2 per hour +1 +1 +\d+s\nslots=1 +slots +1 at once +0 +1 +\d+s\nhealth=1 +unlimited\n$/;
  const args = ['peek', '-descriptors', 'user=bob', '-descriptors', 'slots=1', '-descriptors', 'health=1'];
  t.match(await run(...args), { exitCode: 0, output: table });
  // In the container of the service, its environment says where to call.
  const env = { ADMIN_PORT: String(ports.admin), ADMIN_TOKEN: adminToken };
  t.match(await runCommand('main.ts', ['counters', ...args, '-domain', 'shop'], env), {
    exitCode: 0,
    output: table,
  });
  const reset = await run('reset', '-descriptors', 'user=bob', '-json');
  t.match(JSON.parse(reset.output ?? ''), { domain: 'shop', counters: [{ count: 1 }] });
  t.match(await run('reset', '-descriptors', 'other=1'), {
    exitCode: 1,
    errors: 'descriptor_not_limited: no rule limits this descriptor\n',
  });
  t.match(await run('peak'), { exitCode: 2, errors: /unknown command 'peak': expected one of peek, reset/ });
  t.match(await run('peek'), { exitCode: 2, errors: /-descriptors is needed/ });
  t.match(await runCounters(['top'], {}), { exitCode: 2, errors: /-address is needed/ });
  t.match(await runCounters(['top', '-address', `http://127.0.0.1:${ports.http}`], {}), {
    exitCode: 1,
    errors: /failed: the response is not JSON: check that this is the port of the counter API/,
  });
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'token');
  writeFileSync(file, `${adminToken}\n`);
  t.match(await runCounters(['top', '-address', base, '-token-file', file], {}), { exitCode: 0 });
  t.match(await runCounters(['top', '-address', base], { ADMIN_TOKEN: 'wrong' }), {
    exitCode: 1,
    errors: /^caller_not_authenticated: /,
  });
  t.match(await runCounters(['-help'], {}), { exitCode: 0, output: / {2}remove-override\n/ });
});

t.test('with client certificates, the name in the certificate is the caller', async (t) => {
  const { ca, server, client, issue, remove } = makeCertificates();
  t.teardown(remove);
  const { base, logLines, stats } = await startCounterApi(t, {
    rules: { 'shop.yaml': rules },
    env: {
      ADMIN_TOKEN: '',
      ADMIN_HOST: '0.0.0.0',
      ADMIN_TLS_CERT: server.certFile,
      ADMIN_TLS_KEY: server.keyFile,
      ADMIN_TLS_CLIENT_CACERT: ca.certFile,
      ADMIN_TLS_CLIENT_SAN: 'client.test',
    },
  });
  const call = (args: readonly string[], { certFile, keyFile }: { certFile: string; keyFile: string }) =>
    runCounters(
      [
        ...[...args, '-ca-file', ca.certFile, '-address', base.replace('http:', 'https:')],
        ...['-cert-file', certFile, '-key-file', keyFile],
      ],
      {},
    );
  const run = (files: { certFile: string; keyFile: string }) =>
    call(['reset', '-domain', 'shop', '-descriptors', 'user=eve'], files);
  t.match(await run(client), { exitCode: 0, output: /^RESET +COUNT BEFORE\nshop_user_eve_\d+ +0\n$/ });
  t.match(
    logLines.find(({ audit }) => audit === true),
    { caller: 'spiffe://test/client' },
  );
  const other = issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  t.match(await run(other), { exitCode: 1, errors: /^certificate_not_accepted: / });
  t.match(await run({ certFile: '', keyFile: '' }), { exitCode: 1, errors: /^the call to https.* failed/ });
  // Without a token, nothing could sign their ids.
  const unsigned = { exitCode: 1, errors: /^reservations_need_token: / };
  const reserve = ['reserve', '-domain', 'shop', '-descriptors', 'user=eve', '-hits', '1'];
  t.match(await call(reserve, client), unsigned);
  t.match(await call(['commit', '-id', 'x.y', '-hits', '1'], client), unsigned);
  const failures = [...stats.counters()].find(({ tags }) => tags?.listener === 'admin');
  t.equal(failures?.value, 1);
});

t.test('in the container, the settings say how to call; elsewhere flags do', async (t) => {
  const { ca, server, issue, remove } = makeCertificates();
  t.teardown(remove);
  const pod = issue({ name: 'pod', subjectAltNames: ['DNS:limiter.test'] });
  const env = {
    ADMIN_TOKEN: adminToken,
    ADMIN_HOST: '0.0.0.0',
    ADMIN_TLS_CERT: pod.certFile,
    ADMIN_TLS_KEY: pod.keyFile,
  };
  const { ports } = await startCounterApi(t, { env });
  const inside = { ...env, ADMIN_PORT: String(ports.admin) };
  t.match(await runCounters(['top'], inside), { exitCode: 0 });
  const failure = { exitCode: 1, errors: /^the call to https:\/\/127\.0\.0\.1:\d+ failed: .*cert/ };
  t.match(await runCounters(['top'], { ...inside, ADMIN_TLS_CERT: server.certFile }), failure);
  const address = `https://127.0.0.1:${ports.admin}`;
  const outside = ['top', '-address', address, '-ca-file', ca.certFile];
  t.match(await runCounters(outside, inside), failure);
  t.match(await runCounters([...outside, '-server-name', 'limiter.test'], inside), { exitCode: 0 });
  t.match(await runCounters([...outside, '-server-name', '127.0.0.1'], inside), { exitCode: 2 });

  const mutual = { ...env, ADMIN_TOKEN: '', ADMIN_TLS_CLIENT_CACERT: ca.certFile };
  const other = await startCounterApi(t, { env: mutual });
  const ownCertificate = { ...mutual, ADMIN_PORT: String(other.ports.admin) };
  t.match(await runCounters(['top'], ownCertificate), { exitCode: 0 });

  t.equal(getOwnAddress({ ADMIN_PORT: '6071', ADMIN_HOST: '::1' }), 'http://[::1]:6071');
  t.equal(getOwnAddress({ ADMIN_PORT: '6071', ADMIN_HOST: '::' }), 'http://[::1]:6071');
  t.equal(getOwnAddress({ ADMIN_PORT: '6071', ADMIN_HOST: '10.0.0.1' }), 'http://10.0.0.1:6071');
});

t.test('numbers that are none are rejected, and entries in JSON may have any text', async (t) => {
  const { base, decide } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  const run = (...args: string[]) =>
    runCounters([...args, '-domain', 'shop', '-address', base], { ADMIN_TOKEN: adminToken });
  const override = ['override', '-descriptors', 'bucket=a', '-ttl', '1m', '-reason', 'sale'];
  t.match(await run(...override, '-requests-per-unit', '9', '-burst', '1oo'), {
    exitCode: 2,
    errors: /^-burst is a whole number, not '1oo'$/m,
  });
  t.match(await run('reserve', '-descriptors', 'user=a', '-hits', '-1', '-ttl', 'soon'), {
    exitCode: 2,
    errors: /-hits is a whole number.*\n-ttl is a duration/,
  });
  await decide('shop', 'user=YQ');
  const entries = '[{"key":"user","value":"/a,b=YQ=="}]';
  t.match(await run('peek', '-descriptors', entries, '-json'), {
    exitCode: 0,
    output: /"key": "shop_user_\/a,b=YQ==_\d+"/,
  });
  t.match(await run('reset', '-prefix', entries), { output: /shop_user_\/a,b=YQ==_/ });
  t.match(await run('reset', '-prefix', '[{"key":"user"}]', '-json'), { output: /"deleted": 1/ });
  t.match(await run('reset', '-prefix', '[]', '-json'), { output: /"prefixes": \[\s+"shop_"/ });
  for (const wrong of [
    '[{"key":"user"',
    '[{"keys":"user"}]',
    '[{"key":""}]',
    '[{"key":"a","value":1}]',
    '[]',
  ]) {
    t.match(await run('peek', '-descriptors', wrong), { exitCode: 2, errors: /is not a list of entries in/ });
  }
  const closed = ['top', '-address', 'http://localhost:1'];
  t.match(await runCounters(closed, {}), { exitCode: 1, errors: /failed: .*ECONNREFUSED/ });
});

t.test('a reset by prefix deletes the counters below entries', async (t) => {
  const { base, call, decide, logLines } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  const counts = async () => {
    const body = { domain: 'shop', descriptors: descriptors('user=ann', 'user=bob', 'bucket=ann') };
    const { json } = await call('/v1/counters/peek', body);
    return (json.descriptors as { counter: { count: number } }[]).map(({ counter }) => counter.count);
  };
  const fill = () => Promise.all(['user=ann', 'user=bob', 'bucket=ann'].map((key) => decide('shop', key)));
  await fill();
  const body = { domain: 'shop', prefix: [{ key: 'user', value: 'ann' }] };
  t.match(await call('/v1/counters/reset', body), {
    status: 200,
    json: { domain: 'shop', prefixes: ['shop_user_ann_'], deleted: 1 },
  });
  t.strictSame(await counts(), [0, 1, 1]);
  await fill();
  const run = (prefix: string) =>
    runCounters(['reset', '-domain', 'shop', '-address', base, '-prefix', prefix], {
      ADMIN_TOKEN: adminToken,
    });
  t.match(await run('user'), { output: '2 counters were deleted that begin with shop_user_\n' });
  t.strictSame(await counts(), [0, 0, 2]);
  t.match(await run(''), { output: '1 counters were deleted that begin with shop_\n' });
  t.equal(logLines.filter(({ action }) => action === 'reset by prefix').length, 3);
  for (const prefix of [{}, [{ value: 'x' }], [{ key: 'a' }, { key: 'b' }], [{ key: 'a', value: 1 }]]) {
    t.match(await call('/v1/counters/reset', { domain: 'shop', prefix }), {
      status: 400,
      json: { code: 'malformed_request', message: /prefix/ },
    });
  }
  t.match(await call('/v1/counters/reset', { domain: 'shop', prefix: [], more: 1 }), { status: 400 });
});
