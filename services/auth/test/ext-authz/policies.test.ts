import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { startPlatform } from '../helpers/policy-platform.ts';
import { rawRequest } from '../helpers/raw-request.ts';

/** One object: callers must be signed in, and each has 60 requests, 600 on the plan pro. */
const orders = `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: orders, namespace: shop }
spec:
  hosts: [127.0.0.1]
  limits:
    - name: per-user
      by: [User]
      requests: 60
      per: Year
      plans: { pro: { requests: 600 } }
`;

/** Would allow less, for the plan pro, too. */
const onTrial = `    - { name: tight, by: [User], requests: 50, per: Year, mode: Trial }
`;

/** The error code of a denial, whose body has this form. */
const codeOf = (body: unknown): string => (body as { readonly error_code: string }).error_code;

t.test('one object behind a plain Envoy: who may call, and how much by plan', async (t) => {
  const { folder, limiter, server } = await startPlatform(t, orders + onTrial);
  const { url } = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  const status = async (token?: string): Promise<number> => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(`${url}/orders/1`, { headers })).status;
  };
  const statuses = async (token: string, count: number): Promise<ReadonlyMap<number, number>> => {
    const seen = new Map<number, number>();
    for (let sent = 0; sent < count; sent += 20) {
      const batch = await Promise.all(
        Array.from({ length: Math.min(20, count - sent) }, () => status(token)),
      );
      for (const one of batch) seen.set(one, (seen.get(one) ?? 0) + 1);
    }
    return seen;
  };
  await awaitUntil(async () => (await status()) === 401, { what: 'the policies' });

  const ada = await signUp(server);
  t.same([...(await statuses(ada.accessToken, 60))], [[200, 60]], 'the plan free');
  t.notMatch(server.logs(), 'has no effect', 'the rate limit service is for policies');
  t.equal(await status(ada.accessToken), 429);
  const compared = async () => {
    const headers = { accept: 'application/json' };
    const response = await fetch(`${limiter.debugUrl}/trial`, { headers });
    // Parsed boundary: the expectation compares the form.
    const { rules } = (await response.json()) as { readonly rules: readonly { readonly requests: number }[] };
    return rules[0]?.requests === 61 ? rules : undefined;
  };
  t.match(await awaitUntil(compared, { what: 'the comparison' }), [
    { rule: 'policy/shop/orders.limit_tight.user_id', limit: '50 per year', wouldRefuse: 11, refused: 0 },
  ]);

  await server.call('PUT', `/admin/users/${ada.userId}`, {
    token: adminToken(),
    body: { app_metadata: { plan: 'pro' } },
  });
  await awaitUntil(async () => (await status(ada.accessToken)) === 200, { what: 'the plan pro' });
  t.same([...(await statuses(ada.accessToken, 599))], [[200, 599]], 'the plan pro');
  t.equal(await status(ada.accessToken), 429);

  const ben = await signUp(server, { email: 'ben@example.com' });
  t.same([...(await statuses(ben.accessToken, 50))], [[200, 50]]);
  folder.write(
    'policies.yaml',
    orders + onTrial.replace('requests: 50', 'requests: 0').replace('Trial', 'Enforce'),
  );
  await awaitUntil(async () => (await status(ben.accessToken)) === 429, { what: 'the limit in force' });
});

const rules = `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: api, namespace: shop }
spec:
  hosts: [api.example.com]
  access: { plans: [free], credentials: [User], issuers: [tollgate] }
  rules:
    - { matches: [{ path: { value: /health } }], access: { type: Public } }
    - { matches: [{ path: { value: /closed } }], access: { type: Denied } }
    - { matches: [{ path: { value: /admin } }], access: { roles: [admin] } }
    - { matches: [{ path: { value: /scoped } }], access: { scopes: [orders.read, orders.write] } }
    - { matches: [{ path: { value: /paid } }], access: { plans: [pro] } }
    - { matches: [{ path: { value: /machines } }], access: { credentials: [Client, ApiKey] } }
    - { matches: [{ path: { value: /foreign } }], access: { issuers: [keycloak] } }
    - { matches: [{ path: { value: /strong } }], access: { assurance: AAL2 } }
    - { matches: [{ path: { value: /audience } }], access: { audiences: ["https://api.example.com"] } }
    - { matches: [{ path: { value: /anyone } }], access: { anonymousUsers: true } }
    - { matches: [{ headers: [{ name: X-Region, value: eu }], queryParams: [{ name: debug, value: "1" }] }], access: { type: Denied } }
`;

t.test('conditions on callers, headers and query parameters are checked', async (t) => {
  const { server } = await startPlatform(t, rules);
  const client = connectAuthz(t, server.extAuthz.grpc);
  const { accessToken } = await signUp(server);
  const authorization = `Bearer ${accessToken}`;
  const check = async (
    path: string,
    headers: Readonly<Record<string, string>> = {},
    host = 'api.example.com',
  ) => {
    const { httpStatus, body } = summary(await client.check({ method: 'GET', path, host, headers }));
    return httpStatus === undefined ? 'allowed' : `${httpStatus} ${codeOf(body)}`;
  };
  await awaitUntil(async () => (await check('/health')) === 'allowed', { what: 'the policies' });
  t.equal(await check('/'), '401 no_authorization');
  const expected: Readonly<Record<string, string>> = {
    '/': 'allowed',
    '/closed/x': '403 route_denied',
    '/admin': '403 role_not_allowed',
    '/scoped': '403 insufficient_scope',
    '/paid': '403 plan_not_allowed',
    '/machines': '403 credential_not_allowed',
    '/foreign': '403 issuer_not_allowed',
    '/strong': '401 insufficient_aal',
    '/audience': '401 bad_jwt',
    '/anyone': 'allowed',
    '/closed/x;v=1': '403 route_denied',
    '/closed;v=1': '400 path_not_canonical',
    '/closed;/..;/x': '400 path_not_canonical',
  };
  for (const [path, outcome] of Object.entries(expected))
    t.equal(await check(path, { authorization }), outcome, path);
  t.equal(await check('/?debug=1', { authorization, 'x-region': 'eu' }), '403 route_denied');
  t.equal(await check('/?debug=1', { authorization, 'x-region': 'us' }), 'allowed');
  t.equal(await check('/?debug=2', { authorization, 'x-region': 'eu' }), 'allowed');
  t.equal(await check('/closed', { authorization }, 'API.example.com:443'), '403 route_denied');
  t.equal(
    await check('/closed', { authorization }, 'other.example.com'),
    'allowed',
    'a host without a policy',
  );
  t.equal(await check('/health', {}, 'other.example.com'), '401 no_authorization', 'must be signed in');
});

t.test('hosts without a policy have the access of SVC_EXT_AUTHZ_DEFAULT_ACCESS', async (t) => {
  const policy = orders.replace('127.0.0.1', 'a.test');
  const expected = { authenticated: '401 no_authorization', public: 'allowed', denied: '403 route_denied' };
  for (const [access, answer] of Object.entries(expected)) {
    const { server } = await startPlatform(t, policy, { EXT_AUTHZ_DEFAULT_ACCESS: access });
    const client = connectAuthz(t, server.extAuthz.grpc);
    const check = async (host: string) => {
      const { httpStatus, body } = summary(await client.check({ method: 'GET', path: '/', host }));
      return httpStatus === undefined ? 'allowed' : `${httpStatus} ${codeOf(body)}`;
    };
    await awaitUntil(async () => (await check('a.test')) === '401 no_authorization', { what: 'the policy' });
    t.equal(await check('b.test'), answer);
  }
});

t.test('a limiter that does not know the policy has failed', async (t) => {
  const other = makeTextFolder(t);
  other.write('policies.yaml', orders.replace('name: orders', 'name: other'));
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: other.path });
  t.teardown(xds.stop);
  const limiter = await startRateLimitService({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xds.address,
  });
  t.teardown(limiter.stop);
  const lenient = orders
    .replace('name: orders', 'name: lenient')
    .replace('127.0.0.1', 'lenient.test')
    .replaceAll('- name', '- mode: Shadow\n      name');
  const { server } = await startPlatform(t, `${orders}---\n${lenient}${onTrial}`, {
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const { accessToken } = await signUp(server);
  const headers = { authorization: `Bearer ${accessToken}` };
  const check = async (host = '127.0.0.1') =>
    summary(await client.check({ method: 'GET', path: '/', host, headers }));
  // EXT_AUTHZ_RATE_LIMIT_ON_FAILURE is deny.
  await awaitUntil(
    async () => {
      const { httpStatus, body } = await check();
      return httpStatus === 503 && codeOf(body) === 'rate_limit_unavailable';
    },
    { what: 'the denial' },
  );
  t.equal((await check('lenient.test')).code, 0, 'a limit that never denies cannot fail');
});

t.test('behind gateways that forward, the policy is that of X-Forwarded-Host only', async (t) => {
  const { server } = await startPlatform(t, rules, { EXT_AUTHZ_HTTP_FORWARDED: 'true' });
  const url = `http://127.0.0.1:${server.extAuthz.http}`;
  const status = async (...hosts: string[]): Promise<number> => {
    const headers = ['X-Forwarded-Method', 'GET', 'X-Forwarded-Uri', '/health'];
    for (const host of hosts) headers.push('X-Forwarded-Host', host);
    return (await rawRequest(url, '/', { headers })).status;
  };
  await awaitUntil(async () => (await status('api.example.com')) === 200, { what: 'the policies' });
  t.equal(await status('other.example.com'), 401, 'a host without a policy');
  t.equal(await status(), 400);
  t.equal(await status('api.example.com', 'other.example.com'), 400);
});

t.test('an invalid policy denies its hosts, and an invalid edit keeps the last valid version', async (t) => {
  const broken = rules.replace('plans: [free]', 'plan: [free]');
  const { folder, xds, server } = await startPlatform(t, broken);
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (path: string) => {
    const { httpStatus, body } = summary(
      await client.check({ method: 'GET', path, host: 'api.example.com', headers: {} }),
    );
    return httpStatus === undefined ? 'allowed' : `${httpStatus} ${codeOf(body)}`;
  };
  await awaitUntil(async () => (await check('/health')) === '503 policy_invalid', { what: 'the denial' });
  t.match(xds.logs(), 'spec.access.plan: unknown field (did you mean plans?)');
  folder.write('policies.yaml', rules);
  await awaitUntil(async () => (await check('/health')) === 'allowed', { what: 'the valid version' });
  folder.write('policies.yaml', rules.replace('/health', 'health'));
  await awaitUntil(() => xds.logs().includes('must start with a slash'), { what: 'the problem' });
  t.equal(await check('/health'), 'allowed');
  t.equal(await check('/other'), '401 no_authorization');
});

t.test(
  'without policies of the server all checks are denied, and the last ones stay during an outage',
  async (t) => {
    const { xds, server } = await startPlatform(t, rules);
    const client = connectAuthz(t, server.extAuthz.grpc);
    const check = async (port: { readonly extAuthz: { readonly grpc: number } }, path: string) => {
      const own = port === server ? client : connectAuthz(t, port.extAuthz.grpc);
      const { httpStatus } = summary(
        await own.check({ method: 'GET', path, host: 'api.example.com', headers: {} }),
      );
      return httpStatus ?? 200;
    };
    await awaitUntil(async () => (await check(server, '/health')) === 200, { what: 'the policies' });
    await xds.stop();
    t.equal(await check(server, '/health'), 200);
    const late = await startAuthServer(t, {
      EXT_AUTHZ_POLICY_SERVER: xds.address,
      EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1',
    });
    t.equal(await check(late, '/health'), 503);
  },
);

t.test('TLS files of the policy client that cannot be used fail the start', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('ca.pem', 'no certificate');
  const settings = {
    ...{ EXT_AUTHZ_POLICY_SERVER: '127.0.0.1:1', EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1' },
    ...{ EXT_AUTHZ_POLICY_SERVER_TLS: 'true', EXT_AUTHZ_POLICY_SERVER_TLS_CA: `${folder.path}/ca.pem` },
  };
  await t.rejects(startAuthServer(t, settings), { message: /ca\.pem/ });
});
