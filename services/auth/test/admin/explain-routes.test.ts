import { randomUUID } from 'node:crypto';
import { emptyMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import { withFreePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { type ExplainCallerContext, identifyExplained } from '../../src/ext-authz/explain-caller.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { httpRoute, startPolicyServer } from '../helpers/policy-server.ts';
import { rawRequest } from '../helpers/raw-request.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'orders' }];
const limits = [
  { name: 'per-user', by: ['User'], requests: 2, per: 'Hour' },
  { name: 'watched', by: ['Method'], requests: 1, per: 'Hour', mode: 'Shadow' },
  { name: 'per-key', by: ['ApiKey'], requests: 1, per: 'Hour' },
  { name: 'planned', by: ['User'], requests: 1, per: 'Hour', mode: 'Trial' },
];
const shop = {
  name: 'shop',
  policies: {
    orders: {
      targetRefs,
      limits,
      rules: [
        { matches: [{ path: { value: '/orders/admin' } }], access: { roles: ['admin'] } },
        { matches: [{ headers: [{ name: 'x-region', value: 'eu' }] }], access: { type: 'Denied' } },
      ],
    },
    open: { targetRefs, access: { type: 'Public' } },
    closed: { targetRefs, access: { type: 'Denied' } },
    mcp: { hosts: ['mcp.test'], access: { resource: { name: 'Orders' } } },
  },
  routes: [
    httpRoute('orders', [
      {
        policy: 'shop/orders',
        matches: [JSON.stringify({ path: { type: 'PathPrefix', value: '/orders' } })],
      },
      { sectionName: 'open', policy: 'shop/open' },
    ]),
  ],
};

/** The rules that a limiter gets of the policy. */
const rules = `domain: policy/shop/orders
descriptors:
  - key: limit
    value: per-user
    descriptors: [{ key: user_id, rate_limit: { unit: year, requests_per_unit: 2 } }]
  - key: limit
    value: watched
    descriptors: [{ key: method, rate_limit: { unit: year, requests_per_unit: 1 }, shadow_mode: true }]
  - key: limit
    value: per-key
    descriptors: [{ key: key_id, rate_limit: { unit: year, requests_per_unit: 1 } }]
`;

interface Explanation {
  readonly route?: { readonly found_by: string; readonly hits: readonly { readonly name: string }[] };
  readonly caller?: Readonly<Record<string, unknown>>;
  readonly policies: readonly {
    readonly name: string;
    readonly rule: string;
    readonly allows: boolean;
    readonly limits: readonly {
      readonly name: string;
      readonly state: string;
      readonly remaining?: number;
    }[];
  }[];
  readonly decision: { readonly allowed: boolean; readonly status: number; readonly error_code?: string };
}

async function startExplained(t: Test, { hasPage = false } = {}) {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', rules);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const policies = await startPolicyServer(t, shop);
  let page = '';
  const start = (adminPort: number) => {
    page = `http://127.0.0.1:${adminPort}/explain`;
    return startAuthServer(t, {
      ...{ EXT_AUTHZ_POLICY_SERVER: policies.url, EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address },
      ...{ EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s', API_KEYS_ENABLED: 'true' },
      EXT_AUTHZ_ADMIN_PORT: String(adminPort),
    });
  };
  const server = hasPage ? await withFreePort(start) : await start(0);
  const explain = async (url: string, more: object = {}): Promise<Explanation> => {
    const body = { method: 'GET', url, ...more };
    const answer = await server.call('POST', '/admin/policies/explain', { token: adminToken(), body });
    // The document describes the body, which is compared with it.
    return answer.body as unknown as Explanation;
  };
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (path: string, token: string) =>
    summary(
      await client.check({
        ...{ method: 'GET', path, host: 'a.test', headers: { authorization: `Bearer ${token}` } },
      }),
    ).httpStatus ?? 200;
  const ready = async () => (await explain('http://a.test/')).decision.allowed;
  await awaitUntil(ready, { what: 'the policies' });
  return { server, explain, check, page };
}

/** Seconds may pass between two answers. */
const withoutClock = (explanation: unknown): unknown =>
  JSON.parse(JSON.stringify(explanation, (key, value) => (key === 'reset_seconds' ? undefined : value)));

const states = ({ policies }: Explanation) =>
  policies.flatMap(({ limits }) => limits.map(({ name, state, remaining }) => [name, state, remaining]));

t.test('a check is explained with its policy, limits and answer, and nothing is counted', async (t) => {
  const { server, explain, check } = await startExplained(t);
  const { accessToken, userId } = await signUp(server);
  const url = 'https://a.test/orders/1';
  const as = `user:${userId}`;
  const first = await explain(url, { as });
  t.same(withoutClock(await explain(url, { as })), withoutClock(first), 'twice the same');
  t.match(first, {
    request: { method: 'GET', host: 'a.test', path: '/orders/1' },
    route: { found_by: 'host and match', hits: [{ kind: 'HTTPRoute', namespace: 'shop', name: 'orders' }] },
    caller: { user_id: userId, role: 'authenticated' },
    policies: [
      {
        ...{ name: 'shop/orders', reason: 'it applies to HTTPRoute shop/orders', rule: 'default' },
        ...{ access: { type: 'Authenticated' }, allows: true },
      },
    ],
    decision: { allowed: true, status: 200, upstream_headers: { 'x-auth-user-id': userId } },
  });
  t.same(states(first), [
    ['per-user', 'ok', 2],
    ['watched', 'ok', 1],
    ['per-key', 'not_counted', undefined],
    ['planned', 'on_trial', undefined],
  ]);
  t.equal(await check('/orders/1', accessToken), 200);
  t.match(states(await explain(url, { as })), [
    ['per-user', 'ok', 1],
    ['watched', 'ok', 0],
  ]);
  t.equal(await check('/orders/1', accessToken), 200);
  const over = await explain(url, { credential: accessToken });
  t.match(states(over), [
    ['per-user', 'exceeded', 0],
    ['watched', 'ok', 0],
  ]);
  t.match(over.decision, { allowed: false, status: 429, error_code: 'over_request_rate_limit' });
  t.equal(await check('/orders/1', accessToken), 429, 'the gateway gets the same answer');
  t.equal(JSON.stringify(over).includes(accessToken), false, 'no secret is shown');
  t.notOk(server.logs().includes(accessToken));
});

t.test('callers without access, routes of a gateway and other policies are explained', async (t) => {
  const { server, explain } = await startExplained(t);
  const { userId } = await signUp(server);
  const url = 'https://a.test/orders/admin';
  const as = `user:${userId}`;
  t.match(await explain(url), { caller: { problem: 'no_authorization' }, decision: { status: 401 } });
  t.match(await explain(url, { as }), {
    policies: [{ rule: '/orders/admin', allows: false, error_code: 'role_not_allowed' }],
    decision: { status: 403, error_code: 'role_not_allowed' },
  });
  const route = { kind: 'HTTPRoute', namespace: 'shop', name: 'orders', section_name: 'open' };
  t.match(await explain(url, { route }), {
    route: { found_by: 'gateway', hits: [{ section_name: 'open' }] },
    policies: [{ name: 'shop/open', reason: 'it applies to HTTPRoute shop/orders, section open' }],
    decision: { allowed: true },
  });
  t.match(await explain(url, { route: { ...route, name: 'new' } }), {
    reason: 'the route that the gateway has matched is not known yet',
    decision: { status: 503 },
  });
  t.match(await explain(url, { policy: 'shop/closed', as }), {
    route: { found_by: 'policy', hits: [] },
    decision: { status: 403, error_code: 'route_denied' },
  });
  t.match(await explain('https://a.test/orders//x'), { decision: { status: 400 } });
  t.match(await explain(url, { method: 'get' }), { request: { method: 'get' } }, 'as a client has sent it');
  t.match(await explain('https://mcp.test/.well-known/oauth-protected-resource'), {
    reason: /metadata of the resource/,
    decision: { allowed: false, status: 200, headers: { 'content-type': 'application/json' } },
  });
  t.match(await explain(url, { as: `user:${randomUUID()}` }), {
    caller: { problem: 'user_not_found' },
  });
  const created = await createKey(server, { owner: { user_id: userId } });
  for (const caller of [{ as: `key:${created.id}` }, { credential: created.key }])
    t.match(await explain('https://a.test/orders/1', caller), {
      caller: { key_id: created.id, user_id: userId },
      policies: [
        {
          limits: [
            { name: 'per-user' },
            { name: 'watched', mode: 'Shadow' },
            { name: 'per-key', state: 'ok', remaining: 1 },
            { name: 'planned', mode: 'Trial' },
          ],
        },
      ],
    });
  const wrong = created.key.replace(/...$/, 'abc');
  t.match(await explain('https://a.test/orders/1', { credential: wrong }), {
    caller: { problem: 'invalid_api_key' },
  });
  const { body: stored } = await server.call('GET', `/admin/api-keys/${created.id}`, { token: adminToken() });
  t.notOk(stored.last_used_at, 'no use is recorded');
});

t.test('without API keys, none is explained', async (t) => {
  // Nothing else is read before.
  const context = { keySettings: { apiKeysEnabled: false } } as unknown as ExplainCallerContext;
  await t.rejects(identifyExplained(context, { as: `key:${randomUUID()}` }, emptyMapping), {
    message: /^checks accept no API keys: set \w*API_KEYS_ENABLED$/,
  });
});

async function createKey({ call }: AuthServer, fields: object) {
  const body = { name: 'ci', ...fields };
  const { body: created } = await call('POST', '/admin/api-keys', { token: adminToken(), body });
  return { id: String(created.id), key: String(created.key) };
}

t.test('only administrators may ask, and questions must be complete', async (t) => {
  const { server } = await startExplained(t);
  const { accessToken } = await signUp(server);
  const ask = (token: string | undefined, body: object) =>
    server.call('POST', '/admin/policies/explain', { ...(token && { token }), body });
  const question = { method: 'GET', url: 'https://a.test/' };
  t.match(await ask(undefined, question), { status: 401 });
  t.match(await ask(accessToken, question), { status: 403 });
  for (const wrong of [{ url: '/orders' }, { as: 'ada' }, { as: 'user:1' }, { policy: 'shop/missing' }])
    t.match(await ask(adminToken(), { ...question, ...wrong }), {
      body: { error_code: 'validation_failed' },
    });
});

t.test('an API key needs the scopes that the caller would need elsewhere', async (t) => {
  const { server } = await startExplained(t);
  const question = { method: 'GET', url: 'https://shop.test/orders' };
  const ask = (key: string, body: object) =>
    server.call('POST', '/admin/policies/explain', { token: key, body: { ...question, ...body } });
  const reader = await createKey(server, { admin_scopes: ['policies:read'] });
  t.match(await ask(reader.key, {}), { status: 200 });
  for (const [caller, scope] of [
    [{ credential: reader.key }, 'keys:verify'],
    [{ as: `user:${randomUUID()}` }, 'users:read'],
    [{ as: `key:${reader.id}` }, 'keys:write'],
    [{ as: `client:${randomUUID()}` }, 'clients:write'],
  ] as const) {
    t.match(
      await ask(reader.key, caller),
      { status: 403, body: { error_code: 'insufficient_scope', msg: new RegExp(scope) } },
      scope,
    );
    const both = await createKey(server, { admin_scopes: ['policies:read', scope] });
    t.match(await ask(both.key, caller), { status: 200 }, scope);
  }
});

t.test('the page of the admin port explains without a script, and is for local callers', async (t) => {
  const { server, explain, page } = await startExplained(t, { hasPage: true });
  const { accessToken, userId } = await signUp(server);
  const url = 'https://a.test/orders/1';
  const as = `user:${userId}`;
  const get = async (query: Readonly<Record<string, string>>, headers = {}) => {
    const response = await fetch(`${page}?${new URLSearchParams(query)}`, { headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const form = await (await fetch(page)).text();
  for (const name of ['method', 'url', 'headers', 'as'])
    t.match(form, `<label for="field-${name}">`, 'an empty form');
  const shown = await get({ method: 'GET', url, as });
  t.equal(shown.status, 200);
  t.match(shown.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/);
  t.equal(shown.headers.get('cache-control'), 'no-store');
  t.match(shown.text, '200 allowed</strong> GET a.test/orders/1');
  t.match(shown.text, '<h3>shop/orders</h3>');
  t.match(shown.text, 'it applies to HTTPRoute shop/orders');
  t.match(shown.text, '<td>per-user<td>user_id<td>Enforce<td>ok<td>2 per year<td>2<td>');
  t.match(shown.text, '<td>planned<td>user_id<td>Trial<td>on trial<td><td><td>');
  t.match(shown.text, `value="${as}"`, 'the form keeps its values');
  const json = await get({ method: 'GET', url, as }, { accept: 'application/json' });
  const ofApi = await explain(url, { as });
  t.same(withoutClock(JSON.parse(json.text)), withoutClock(ofApi), 'JSON as the API has it');

  const denied = await get({ method: 'GET', url: 'https://a.test/orders/admin', as });
  t.match(denied.text, '403 denied</strong>');
  t.match(denied.text, 'role_not_allowed');
  const header = await get({ method: 'GET', url, headers: 'Accept: */*\r\nX-Region: eu', as });
  t.match(header.text, 'route_denied');
  const routed = await get({ method: 'GET', url, route: 'HTTPRoute/shop/orders/open' });
  t.match(routed.text, 'Found by gateway.');
  t.match(routed.text, '<h3>shop/open</h3>');
  const markup = await get({ method: 'GET', url: 'https://a.test/"><script>x</script>', as });
  t.notMatch(markup.text, '<script>');
  for (const [query, problem] of [
    [{ method: 'GET', url: '' }, 'url is required'],
    [{ method: 'GET', url: '/orders' }, 'url must be a complete URL'],
    [{ method: 'GET', url, as: 'ada' }, 'as must be user:'],
    [{ method: 'GET', url, route: 'shop/orders' }, 'route is not kind/namespace/name'],
    [{ method: 'GET', url, headers: 'x' }, 'line 1 of headers is not'],
    [
      { method: 'GET', url, headers: `Authorization: Bearer ${accessToken}` },
      'line 1 of headers may be a credential',
    ],
    [{ method: 'GET', url: `https://a.test/${'x'.repeat(4096)}` }, 'url has more than 4096 characters'],
  ] as const) {
    const { status, text } = await get(query);
    t.equal(status, 400, problem);
    t.match(text, `<p class="notice">${problem}`);
    const { text: body } = await get(query, { accept: 'application/json' });
    t.match(JSON.parse(body), { code: 400, error_code: 'validation_failed', msg: new RegExp(`^${problem}`) });
  }
  t.notOk(server.logs().includes(accessToken));
  const { status } = await rawRequest(page, '/explain', { headers: ['X-Forwarded-For', '192.0.2.1'] });
  t.equal(status, 403, 'through a proxy');
});

t.test('the command prints the explanation of a running server', async (t) => {
  const { server } = await startExplained(t);
  const { accessToken, userId } = await signUp(server);
  const args = ['explain', 'GET', 'https://a.test/orders/1', '--server', server.url];
  const byId = await runOperatorCommand(server.databaseUrl, [...args, '--as', `user:${userId}`]);
  t.match(JSON.parse(byId.output), { caller: { user_id: userId }, decision: { allowed: true } });
  const byToken = await runOperatorCommand(server.databaseUrl, [...args, '--credential'], accessToken);
  t.match(JSON.parse(byToken.output), { caller: { user_id: userId } });
  const byHeader = await runOperatorCommand(server.databaseUrl, [...args, '--headers', 'x-region: eu']);
  t.match(JSON.parse(byHeader.output), { decision: { error_code: 'route_denied' } });
  const routed = await runOperatorCommand(server.databaseUrl, [
    ...args,
    '--route',
    'HTTPRoute/shop/orders/open',
  ]);
  t.match(JSON.parse(routed.output), { route: { found_by: 'gateway' }, policies: [{ name: 'shop/open' }] });
  const malformed = await runOperatorCommand(server.databaseUrl, [...args, '--headers', 'x-region=eu']);
  t.match(malformed, { exitCode: 1, errors: 'line 1 of headers is not `name: value`\n' });
  const refused = await runOperatorCommand(server.databaseUrl, [...args, '--as', 'ada']);
  t.equal(refused.exitCode, 1);
  t.match(refused.errors, 'as must be user:<id>');
});
