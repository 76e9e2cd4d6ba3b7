import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { httpRoute, startPolicyServer } from '../helpers/policy-server.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'orders' }];
const gatewayRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'main' }];
const type = (name: string) => ({ access: { type: name } });

/** The error code of a denial, whose body has this form. */
const codeOf = (body: unknown): string => (body as { readonly error_code: string }).error_code;

const prefix = (value: string) => [JSON.stringify({ path: { type: 'PathPrefix', value } })];

/** The route of a check as Envoy Gateway sends it. */
const routeOf = (name: string, sectionName?: string) => ({
  ...{ kind: 'HTTPRoute', namespace: 'shop', name, ...(sectionName && { sectionName }) },
});

/** Policies of a namespace with a route that has two rules. */
const shop = {
  name: 'shop',
  policies: {
    orders: { targetRefs },
    public: { targetRefs, ...type('Public') },
    closed: { targetRefs, ...type('Denied') },
    broken: undefined,
  },
  routes: [
    httpRoute('orders', [
      { matches: prefix('/orders'), policy: 'shop/orders' },
      { sectionName: 'health', matches: prefix('/health'), policy: 'shop/public' },
      { sectionName: 'broken', matches: prefix('/broken'), policy: 'shop/broken' },
    ]),
    httpRoute('none', [{ matches: prefix('/none') }]),
    httpRoute('closed', [{ matches: prefix('/orders/caf%C3%A9'), policy: 'shop/closed' }]),
  ],
};

async function startChecks(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const policies = await startPolicyServer(t, shop);
  const server = await startAuthServer(t, {
    EXT_AUTHZ_POLICY_SERVER: policies.url,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1',
    ...settings,
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (
    path: string,
    { token, route, host = 'api.example.com', headers = {}, method = 'GET' }: CheckOptions = {},
  ): Promise<string> => {
    const all = { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    const { httpStatus, body } = summary(
      await client.check({ method, path, host, headers: all }, { ...(route && { route }) }),
    );
    return httpStatus === undefined ? 'allowed' : `${httpStatus} ${codeOf(body)}`;
  };
  await awaitUntil(async () => (await check('/health')) === 'allowed', { what: 'the policies' });
  return { policies, server, client, check };
}

interface CheckOptions {
  readonly token?: string;
  readonly route?: ReturnType<typeof routeOf>;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
}

t.test('a check has the policy of the route that the gateway has matched', async (t) => {
  const { check, server } = await startChecks(t);
  const { accessToken: token } = await signUp(server);
  t.equal(await check('/any', { route: routeOf('orders', 'health') }), 'allowed');
  t.equal(await check('/health', { route: routeOf('orders') }), '401 no_authorization', 'not by the path');
  t.equal(await check('/health', { route: routeOf('orders'), token }), 'allowed');
  t.equal(await check('/any', { route: routeOf('orders', 'broken'), token }), '503 policy_invalid');
  t.equal(await check('/any', { route: routeOf('none') }), '401 no_authorization', 'the default');
  t.equal(await check('/health', { route: routeOf('new') }), '503 authorization_unavailable');
  t.equal(await check('/health', { route: routeOf('orders', 'new') }), '503 authorization_unavailable');
  t.match(server.logs(), /"name":"new".*route unknown, request denied/);
});

t.test('without the route of the gateway, it is found by host, path and method', async (t) => {
  const { check, server } = await startChecks(t);
  const { accessToken: token } = await signUp(server);
  t.equal(await check('/orders/1'), '401 no_authorization');
  t.equal(await check('/orders/1', { token }), 'allowed');
  t.equal(await check('/broken', { token }), '503 policy_invalid');
  t.equal(await check('/other', { token }), 'allowed', 'no route: the default');
  t.equal(await check('/orders/caf%C3%A9', { token }), '403 route_denied');
  t.equal(await check('/orders/x%7e1', { token }), 'allowed', 'both readings have the same policy');
  t.equal(
    await check('/orders/caf%c3%a9', { token }),
    '400 path_not_canonical',
    'other gateways may not match',
  );
  t.equal(await check('/h%65%61%6c%74%68'), '400 path_not_canonical');
  t.equal(await check('/health;/../orders'), '400 path_not_canonical');
});

t.test('methods are compared in upper case only, as gateways do', async (t) => {
  const { check, policies } = await startChecks(t);
  const get = [JSON.stringify({ path: { type: 'PathPrefix', value: '/orders' }, methods: ['GET'] })];
  await policies.apply({
    ...{ name: 'shop', policies: { public: { targetRefs, ...type('Public') } } },
    routes: [httpRoute('get', [{ matches: get, policy: 'shop/public' }])],
  });
  t.equal(await check('/orders'), 'allowed');
  for (const method of ['get', 'Get', 'pOST'])
    t.equal(await check('/orders', { method }), '400 method_not_upper_case', method);
  t.equal(await check('/orders', { method: 'M-SEARCH' }), '401 no_authorization');
});

t.test('a path that only a gateway which compares it literally matches is refused', async (t) => {
  const { check, policies } = await startChecks(t, { EXT_AUTHZ_DEFAULT_ACCESS: 'public' });
  await policies.apply({
    ...{ name: 'shop', policies: { closed: { targetRefs, ...type('Denied') } } },
    routes: [httpRoute('closed', [{ matches: prefix('/caf%c3%a9'), policy: 'shop/closed' }])],
  });
  t.equal(await check('/caf%C3%A9'), 'allowed', 'no route matches it');
  t.equal(await check('/caf%c3%a9/menu'), '400 path_not_canonical');
  t.equal(await check('/%63af%c3%a9s'), 'allowed', 'no reading has a route');
});

t.test('headers cannot say which route was matched', async (t) => {
  const { check, server } = await startChecks(t);
  const json = JSON.stringify({ resources: [routeOf('orders', 'health')] });
  const headers = {
    'envoy-gateway': json,
    'x-envoy-route-metadata': json,
    'x-envoy-original-path': '/health',
    'x-forwarded-uri': '/health',
    'x-forwarded-host': 'health',
  };
  t.equal(await check('/orders', { headers }), '401 no_authorization');
  const url = `http://127.0.0.1:${server.extAuthz.http}`;
  const status = async (path: string, more: readonly string[] = []): Promise<number> =>
    (await rawRequest(url, path, { headers: more })).status;
  t.equal(await status('/orders', Object.entries(headers).flat()), 401);
  t.equal(await status('/health'), 200, 'over HTTP, the route is found by host and path');
});

t.test('overrides of a Gateway hold in addition, and their limits are counted, too', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('config/a.yaml', domain('policy/shop/orders', 'per-user', 2));
  folder.write('config/b.yaml', domain('policy/infra/main', 'cap', 3));
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const { check, policies, server, client } = await startChecks(t, {
    ...{ EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address, EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s' },
  });
  const limit = (name: string) => [{ name, by: ['Method'], requests: 9, per: 'Hour' }];
  await policies.apply(
    {
      ...{ name: 'shop', policies: { orders: { targetRefs, ...type('Public'), limits: limit('per-user') } } },
      routes: [
        httpRoute('orders', [{ policy: 'shop/orders', overrides: ['infra/main'] }]),
        httpRoute('closed', [{ policy: 'shop/orders', overrides: ['infra/closed'] }]),
        httpRoute('users', [{ policy: 'shop/orders', overrides: ['infra/users'] }]),
      ],
    },
    {
      name: 'infra',
      policies: {
        main: { targetRefs: gatewayRefs, overrides: { limits: limit('cap') } },
        closed: { targetRefs: gatewayRefs, overrides: type('Denied') },
        users: { targetRefs: gatewayRefs, overrides: { access: { roles: ['admin'] } } },
      },
    },
  );
  const { accessToken: token } = await signUp(server);
  t.equal(await check('/', { route: routeOf('closed'), token }), '403 route_denied');
  t.equal(await check('/', { route: routeOf('users') }), '401 no_authorization');
  t.equal(await check('/', { route: routeOf('users'), token }), '403 role_not_allowed');
  const route = routeOf('orders');
  const response = summary(await client.check({ method: 'GET', path: '/' }, { route })).response;
  t.match(response, { 'ratelimit-limit': '2', 'ratelimit-remaining': '1' }, 'the one with the least left');
  t.equal(await check('/', { route }), 'allowed');
  t.equal(await check('/', { route }), '429 over_request_rate_limit', 'the limit of the route');
  t.equal(await check('/', { route, method: 'POST' }), 'allowed', 'another counter of both');
  const only = routeOf('only');
  await policies.apply(
    { name: 'shop', policies: {}, routes: [httpRoute('only', [{ overrides: ['infra/main'] }])] },
    { name: 'infra', policies: { main: { targetRefs: gatewayRefs, overrides: { limits: limit('cap') } } } },
  );
  t.equal(await check('/', { route: only, token }), '429 over_request_rate_limit', 'counted three times');
  t.equal(await check('/', { route: only, token, method: 'POST' }), 'allowed');
});

/** Rules of a limiter for a limit by Method. */
function domain(name: string, limit: string, requests: number): string {
  return `domain: ${name}
descriptors:
  - key: limit
    value: ${limit}
    descriptors:
      - { key: method, rate_limit: { unit: year, requests_per_unit: ${requests} } }
`;
}
