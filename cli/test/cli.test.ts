import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { adminToken } from '../../services/auth/test/helpers/admin.ts';
import { signUp } from '../../services/auth/test/helpers/auth-server.ts';
import { startMailingServer } from '../../services/auth/test/helpers/mail-server.ts';
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
  const { base, decide } = await startCounterApi(t, {
    rules: { 'shop.yaml': rules },
    candidates: { 'shop.yaml': rules.replace('per_unit: 2', 'per_unit: 1') },
  });
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
  const compared = /^RULE .*\nshop\.user +1 per hour +3 +2 +1 +1 +0 +shop\n$/;
  // Rules on trial are decided after the responses.
  await awaitUntil(async () => compared.test((await tollgate('limits', 'trial')).output), {
    what: 'the trial',
  });
  t.match(await tollgate('limits', 'trial', 'list', '--domain', 'shop', '--json'), {
    output: /"newlyRefused": 1,/,
  });
  t.match(await tollgate('limits', 'trial', '--domain', 'none'), { errors: /No request has matched/ });
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
  const { server, smtp } = await startMailingServer(t, {
    ...{
      API_KEYS_ENABLED: 'true',
      MAILER_AUTOCONFIRM: 'true',
      EXT_AUTHZ_ROUTES_FILE: join(folder, 'routes.yaml'),
    },
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
    t.match(await tollgate('status'), { exitCode: 0, output: /^SERVICE .*\nauth +http\S+ +ok +version \d/ });
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
    t.match(await tollgate('users', 'set', 'ann@example.com', '--plan', 'none', '--limit', '5/hour'), {
      output: /ann@example.com +- +5 per hour /,
    });
    t.match(await tollgate('users', 'set', 'ann@example.com', '--limit', 'none'), { output: /com +- +- / });
    t.match(await tollgate('users', 'set', 'ann@example.com'), { exitCode: 2, errors: /nothing to change/ });
    t.match(await tollgate('users', 'recover', 'ann@example.com'), {
      errors: 'ann@example.com gets a mail with a link\n',
    });
    t.match(await smtp.mailTo('ann@example.com'), { subject: /password/i });
    t.match(await tollgate('users', 'factors', 'ann@example.com'), { errors: /has no second factor/ });
    const missing = ['ann@example.com', '5f1c8f7e-8f3b-4a37-9d6c-0d7f7c1f3f10'];
    t.match(await tollgate('users', 'remove-factor', ...missing), {
      exitCode: 1,
      errors: /^mfa_factor_not_found: /,
    });
    t.match(await tollgate('users', 'delete', 'ann@example.com'), { errors: 'ann@example.com is deleted\n' });
    t.match(await tollgate('users', 'get', 'ann@example.com'), { exitCode: 1, errors: /no user ann@/ });
    await signUp(server, { email: 'ann@example.com' });
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
    const page = await tollgate('audit', 'list', '--limit', '1');
    const [, cursor = ''] = /^More follow: --cursor (\S+)\n$/.exec(page.errors) ?? [];
    t.not((await tollgate('audit', 'list', '--limit', '1', '--cursor', cursor)).output, page.output);
  });

  t.test('a key that is disabled is rejected until it is enabled', async (t) => {
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    const created = await tollgate('keys', 'create', 'nightly', '--admin-scopes', 'audit:read', '--json');
    const { id, key } = JSON.parse(created.output);
    const asKey = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: key });
    t.match(await tollgate('keys', 'disable', id), { exitCode: 0, errors: `the key ${id} is disabled\n` });
    t.match(await tollgate('keys', 'list'), { output: /nightly .* disabled\n/ });
    t.match(await asKey('audit', 'list'), { exitCode: 1 });
    t.match(await tollgate('keys', 'enable', id), { exitCode: 0, errors: `the key ${id} is enabled\n` });
    t.match(await asKey('audit', 'list'), { exitCode: 0 });
    const again = await tollgate('keys', 'enable', id, '--json');
    t.match(JSON.parse(again.output), { id, disabled: false, admin_scopes: ['audit:read'] });
    t.match(await tollgate('keys', 'disable', randomUUID()), {
      exitCode: 1,
      errors: /^api_key_not_found: /,
    });
  });

  t.test('the audit log is followed', async (t) => {
    const stop = new AbortController();
    let shown = '';
    const env = { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() };
    const tollgate = cli(t, env, '', { signal: stop.signal, onOutput: (text) => (shown += text) });
    const ended = tollgate('audit', 'tail', '--json', '--since', '1h', '--interval', '500ms');
    await awaitUntil(() => shown.includes('api_key_revoked'), { what: 'entries of the last hour' });
    shown = '';
    await cli(t, env)('users', 'plan', 'ann@example.com', 'basic');
    await awaitUntil(() => shown.includes('user_modified'), { what: 'a new entry' });
    stop.abort();
    t.match(await ended, { exitCode: 0, errors: '' });
    const actions = shown
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).payload.action);
    t.same(actions, ['user_modified'], 'each entry once');
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

t.test('what is wrong with a context is said, without its secrets', async (t) => {
  const config = join(t.testdir(), 'config.json');
  const url = 'http://127.0.0.1:9';
  for (const [variables, errors] of [
    [
      { TOLLGATE_AUTH_URL: 'localhost:9999' },
      /^TOLLGATE_AUTH_URL is not an http or https URL .*localhost:9999\. Exp/,
    ],
    [
      { TOLLGATE_AUTH_URL: 'https://ann:sesame@a.test' },
      /^TOLLGATE_AUTH_URL is not .* credentials\. Expected/,
    ],
    [{ TOLLGATE_AUTH_URL: url, TOLLGATE_LIMITER_URLS: 'a, b' }, /^TOLLGATE_LIMITER_URLS is not .*: a\./],
    [{ TOLLGATE_AUTH_URL: url, TOLLGATE_KEY: 'sesame\nsesame' }, /^TOLLGATE_KEY has no secret: one line/],
    [
      { TOLLGATE_AUTH_URL: url, TOLLGATE_KEY: 'sesame\r', TOLLGATE_LIMITER_URLS: ', ' },
      /^unreachable: http:\S+: .*\ntollgate doctor checks /,
    ],
  ] as const) {
    const result = await cli(t, variables)('users', 'list');
    t.match(result, { errors });
    t.notMatch(result.errors, 'sesame');
  }
  for (const [content, errors] of [
    ['{"contexts": {"a": ', /is no file of contexts: correct or remove it/],
    ['{"contexts":{"a":{"authUrl":"a.test"}},"current":"a"}', /^authUrl of the context is not an http/],
    ['{"contexts":{},"current":"gone"}', /^there is no context gone/],
    ['\uFEFF{"contexts":{}}\r\n', /^the context has no auth server: run tollgate context set default --auth/],
  ] as const) {
    await writeFile(config, content);
    t.match(await cli(t)('users', 'list'), { exitCode: 2, errors });
  }
});

t.test('a certificate that is not trusted is named, with what to do', async (t) => {
  const { server: certificate } = makeCertificates();
  const server = createTlsServer({ key: certificate.key, cert: certificate.cert }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`; // Typed for sockets of files, too.
  t.match(await cli(t, { TOLLGATE_AUTH_URL: url })('users', 'list'), {
    exitCode: 1,
    errors: /^unreachable: https:\S+: .*certificate.*\ntollgate doctor checks /,
  });
});

t.test('audit tail goes on after an outage', async (t) => {
  const answers = [
    [200, '[]'],
    [503, '{"code":"unavailable","message":"no database\\u001b[2J"}'],
    [
      200,
      '[{"id":"1","created_at":"2026-01-01T00:00:00.000Z","payload":{"action":"login"},"ip_address":"::1"}]',
    ],
    [403, '{"code":"insufficient_scope","message":"audit:read is missing"}'],
  ] as const;
  let next = 0;
  const { port } = await startWebServer(t, (_, response) => {
    const [status, body] = answers[next++] ?? [500, ''];
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  const url = `http://127.0.0.1:${port}`;
  t.same(await cli(t, { TOLLGATE_AUTH_URL: url })('audit', 'tail', '--interval', '500ms'), {
    exitCode: 1,
    output: '2026-01-01T00:00:00.000Z  login  -  ::1\n',
    errors:
      'unavailable: no database\\u{1b}[2J; trying again\nthe auth server answers again\ninsufficient_scope: audit:read is missing\n',
  });
});

t.test('help has examples and exit codes, and mistakes a suggestion', async (t) => {
  const tollgate = cli(t);
  t.match(await tollgate('--help'), { exitCode: 0, output: /Exit codes: 0 done; 1 / });
  t.match(await tollgate('limits', 'peek', '--help'), {
    output: /\$ tollgate limits peek --domain shop user=ann/,
  });
  t.match(await tollgate('limit'), {
    exitCode: 2,
    errors: /Did you mean limits\?\)\n+\(tollgate --help has all commands/,
  });
  t.match(await tollgate('limits', 'peek', 'user=ann'), {
    exitCode: 2,
    errors: /required option '--domain <name>'/,
  });
});
