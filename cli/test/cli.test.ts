import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { adminToken } from '../../services/auth/test/helpers/admin.ts';
import { signUp, startAuthServer } from '../../services/auth/test/helpers/auth-server.ts';
import {
  adminToken as limiterToken,
  startCounterApi,
} from '../../services/ratelimit/test/support/counter-api.ts';
import { cli } from './helpers/tollgate.ts';

const routesFile = `routes:
  - { path: /public/**, access: public }
  - { path: /reports/**, roles: [auditor] }
  - { path: /closed, access: deny }
  - { path: /limited, limit: [[user_id], [method]] }
limit_domain: routes
`;

const routeLimits = `domain: routes
descriptors:
  - { key: user_id, rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: method, rate_limit: { unit: hour, requests_per_unit: 0 } }
`;

const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }]';

t.test('limits are shown, changed for a time, and reset', async (t) => {
  const { base, decide } = await startCounterApi(t, { rules: { 'shop.yaml': rules } });
  const tollgate = cli(t, {}, `${limiterToken}\n`);
  t.match(await tollgate('context', 'set', 'shop', '--limiter-url', base, '--limiter-token-stdin'), {
    exitCode: 0,
    errors: /is the current one/,
  });
  for (const allowed of [true, true, false]) t.equal(await decide('shop', 'user=ann'), allowed);
  t.match(await tollgate('limits', 'peek', '--domain', 'shop', 'user=ann'), {
    exitCode: 0,
    output: /^DESCRIPTOR.*\nuser=ann +user +2 per hour +3 +0 +\d+ s +-\n$/,
    errors: /would be refused now/,
  });
  t.match(await tollgate('explain', 'shop', 'user=ann', 'user=bob'), {
    exitCode: 0,
    output: /^DESCRIPTOR.*\nuser=ann +user +2 per hour +3 +0 .*\nuser=bob +user +2 per hour +0 +2 /,
  });
  t.match(await tollgate('limits', 'refusals'), {
    output: /shop +user=ann +user +2 per hour +OVER_LIMIT\n$/,
  });
  t.match(await tollgate('limits', 'top', '--json'), { output: /"hits": 3/ });
  const override = ['user=ann', '--requests-per-unit', '5', '--for', '1h', '--reason', 'sale'];
  t.match(await tollgate('limits', 'override', '--domain', 'shop', ...override), {
    exitCode: 0,
    errors: /^user=ann has the limit 5 until /,
  });
  t.ok(await decide('shop', 'user=ann'), 'within the override');
  t.match(await tollgate('limits', 'overrides'), { output: /shop +user=ann +5 .* token +sale\n$/ });
  t.match(await tollgate('limits', 'end-override', '--domain', 'shop', 'user=ann'), { exitCode: 0 });
  t.notOk(await decide('shop', 'user=ann'), 'without the override');
  t.match(await tollgate('limits', 'reset', '--domain', 'shop', 'user=ann'), {
    output: /^COUNTER .*\nshop_user_ann_\d+ +\d\n$/,
  });
  t.ok(await decide('shop', 'user=ann'), 'after the reset');
  t.match(await tollgate('limits', 'peek', '--domain', 'shop', 'user'), {
    exitCode: 2,
    errors: /^not a descriptor: user\. Expected key=value/,
  });
  t.match(await tollgate('limits', 'end-override', '--domain', 'shop', 'user=ann'), {
    exitCode: 1,
    errors: /^override_not_found: /,
  });
});

t.test('with an auth server', async (t) => {
  const folder = t.testdir({ 'routes.yaml': routesFile, 'limits.yaml': routeLimits });
  const limiter = await startCounterApi(t, { rules: { 'routes.yaml': routeLimits } });
  const server = await startAuthServer(t, {
    ...{ API_KEYS_ENABLED: 'true', EXT_AUTHZ_ROUTES_FILE: join(folder, 'routes.yaml') },
    ...{
      EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${limiter.ports.grpc}`,
      EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    },
  });

  t.test('explained requests have the answer of the server, and files the same one', async (t) => {
    const { userId } = await signUp(server, { email: 'explained@example.com' });
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    const as = ['--as', `user:${userId}`];
    for (const [url, status, ...caller] of [
      ['https://a.test/public/1', '200,'],
      ['https://a.test/orders', '401 no_authorization'],
      ['https://a.test/orders', '200,', ...as],
      ['https://a.test/reports/1', '403 role_not_allowed', ...as],
      ['https://a.test/closed', '403 route_denied', ...as],
      ['https://a.test/a%2fb', '400 path_not_canonical', ...as],
      ['https://a.test/limited', '429 over_request_rate_limit', ...as],
    ] as const) {
      const answer = new RegExp(`^Answer +${status}`, 'm');
      t.match(await tollgate('explain', 'GET', url, ...caller), { exitCode: 0, output: answer });
      const local = await tollgate('explain', 'GET', url, ...caller, '--policies', folder);
      t.match(local, { exitCode: 0, output: answer });
    }
    t.match(await tollgate('explain', 'GET', 'https://a.test/limited', ...as), {
      output:
        /^Limit +user_id: ok, 9 of 9 per hour left, reset in \d+ s\nLimit +method: exceeded, 0 of 0 per hour left/m,
    });
    const line =
      '[2026-11-28T10:00:00.310Z] "GET /orders HTTP/2" 401 UAEX 0 0 2 - "10.0.35.28" "curl" "cc21" "a.test" "-"';
    t.match(await tollgate('explain', line, ...as), {
      output:
        /^Request +GET https:\/\/a\.test\/orders\nCaller +user_id [\s\S]*^Policy +routes file, rule default/m,
      errors: /response in the log: 401, UAEX: denied by external authorization\. The caller, /,
    });
    const json = await tollgate('explain', 'GET', 'https://a.test/orders', ...as, '--json');
    t.match(JSON.parse(json.output), { caller: { user_id: userId }, decision: { status: 200 } });
    t.match(await tollgate('explain', 'GET', 'https://a.test/', ...as, '--attributes', 'plan=pro'), {
      exitCode: 2,
      errors: /the server knows plan of the caller/,
    });
  });

  t.test('the status names services that do not answer', async (t) => {
    const { url } = server;
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: url });
    t.match(await tollgate('status'), { exitCode: 0, output: /^SERVICE .*\nauth +http\S+ +ok +version / });
    const withLimiter = cli(t, { TOLLGATE_AUTH_URL: url, TOLLGATE_LIMITER_URLS: 'http://127.0.0.1:1' });
    t.match(await withLimiter('status'), {
      exitCode: 3,
      output: /ratelimit +http:\/\/127.0.0.1:1 +FAILED +unreachable: /,
      errors: '1 of 2 services have a problem\n',
    });
  });

  t.test('users are found, banned and signed out', async (t) => {
    await signUp(server, { email: 'ann@example.com' });
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    t.match(await tollgate('users', 'list', '--search', 'ann'), {
      exitCode: 0,
      output: /^ID .*\n\S+ +ann@example.com +- .* active\n$/,
    });
    t.match(await tollgate('users', 'plan', 'ann@example.com', 'pro'), {
      exitCode: 0,
      errors: 'ann@example.com has the plan pro\n',
    });
    t.match(await tollgate('users', 'list', '--plan', 'pro', '--json'), { output: /"plan": "pro"/ });
    t.match(await tollgate('users', 'sessions', 'ann@example.com'), { output: /^ID .*\n\S+ .* aal1 / });
    t.match(await tollgate('users', 'sign-out', 'ann@example.com'), { exitCode: 0 });
    t.match(await tollgate('users', 'sessions', 'ann@example.com'), {
      errors: 'The user is not signed in.\n',
    });
    t.match(await tollgate('users', 'ban', 'ann@example.com', '--for', '24h'), {
      errors: 'ann@example.com is banned\n',
    });
    t.match(await tollgate('users', 'get', 'ann@example.com'), { output: /banned until 20\d\d-/ });
    t.match(await tollgate('users', 'unban', 'ann@example.com'), { exitCode: 0 });
    t.match(await tollgate('users', 'get', 'ann@example.com'), { output: /active\n$/ });
    t.match(await tollgate('users', 'get', 'bob@example.com'), { exitCode: 1, errors: /no user bob@/ });
    const withoutKey = cli(t, { TOLLGATE_AUTH_URL: server.url });
    t.match(await withoutKey('users', 'list'), { exitCode: 1, errors: /^no_authorization: / });
  });

  t.test('keys are created, rotated and revoked, and the audit log names the caller', async (t) => {
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    const created = await tollgate(
      'keys',
      'create',
      'reporting',
      '--admin-scopes',
      'users:read',
      'audit:read',
    );
    t.match(created, { exitCode: 0, output: /^\S{20,}\n$/, errors: /not shown again/ });
    const asKey = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: created.output.trim() });
    t.match(await asKey('users', 'ban', 'ann@example.com'), { exitCode: 1, errors: /^insufficient_scope: / });
    t.match(await asKey('keys', 'list'), { exitCode: 1, errors: /^insufficient_scope: / });
    const listed = await tollgate('keys', 'list');
    t.match(listed, { output: /reporting .* machine +- +users:read audit:read/ });
    const [id = ''] = /[\da-f-]{36}/.exec(listed.output) ?? [];
    t.match(await tollgate('keys', 'rotate', id, '--grace', '1h'), { exitCode: 0, output: /^\S{20,}\n$/ });
    t.match(await tollgate('keys', 'revoke', id), { exitCode: 0 });
    t.match(await asKey('audit', 'list'), { exitCode: 1 });
    t.match(await tollgate('audit', 'list', '--action', 'api_key_revoked'), {
      output: /^TIME .*\n\S+ +api_key_revoked +/,
    });
  });
});

t.test('contexts are kept in a file that only its owner reads', async (t) => {
  const tollgate = cli(t, {}, 'a-secret-key\n');
  const config = join(t.testdirName, 'config.json');
  t.match(await tollgate('status'), { exitCode: 2, errors: /the context has no services/ });
  await tollgate('context', 'set', 'one', '--auth-url', 'https://one.test', '--key-stdin');
  await tollgate('context', 'set', 'two', '--auth-url', 'https://two.test');
  t.equal((await stat(config)).mode & 0o777, 0o600);
  const list = await tollgate('context', 'list');
  t.match(
    list.output,
    /^CURRENT .*\n {9}one +https:\/\/one.test +key +-\n\* +two +https:\/\/two.test +- +-\n$/,
  );
  t.notMatch(list.output, /a-secret-key/);
  t.match(await tollgate('context', 'use', 'three'), { exitCode: 2, errors: /no context three/ });
  t.match(await tollgate('context', 'set', 'bad', '--auth-url', 'https://ann:secret@one.test'), {
    exitCode: 2,
    errors: /without credentials/,
  });
  t.match(await tollgate('context', 'remove', 'two'), { exitCode: 0 });
  t.match((await tollgate('context', 'list', '--json')).output, /"name": "one"/);
});

t.test('help has examples and exit codes, and mistakes a suggestion', async (t) => {
  const tollgate = cli(t);
  t.match(await tollgate('--help'), { exitCode: 0, output: /Exit codes: 0 done; 1 / });
  t.match(await tollgate('limits', 'peek', '--help'), {
    output: /\$ tollgate limits peek --domain shop user=ann/,
  });
  t.match(await tollgate('limit'), { exitCode: 2, errors: /Did you mean limits\?/ });
  t.match(await tollgate('limits', 'peek', 'user=ann'), {
    exitCode: 2,
    errors: /required option '--domain <name>'/,
  });
});
