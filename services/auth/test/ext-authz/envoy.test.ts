import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { type AuthzEnvoy, startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const routes = `
routes:
  - path: /open/**
    access: public
  - path: /secret/**
    access: deny
  - path: /staff/**
    roles: [staff]
`;

type Variant = 'grpc' | 'http';

async function platform(
  t: Test,
  variant: Variant,
  filter?: Readonly<Record<string, unknown>>,
  timeout?: string,
) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'routes.yaml');
  writeFileSync(file, routes);
  const server = await startAuthServer(t, { EXT_AUTHZ_ROUTES_FILE: file });
  const envoy = await startAuthzEnvoy(t, {
    variant,
    port: server.extAuthz[variant],
    ...(filter && { filter }),
    ...(timeout && { timeout }),
  });
  return { server, envoy };
}

/** Sends a request and answers what the upstream saw, if it saw it. */
async function send(
  { url, upstream }: AuthzEnvoy,
  path: string,
  headers: readonly string[] = [],
  method = 'GET',
) {
  const before = upstream.requests.length;
  const { status, text } = await rawRequest(url, path, { headers, method });
  return { status, text, seen: upstream.requests.slice(before)[0] };
}

const bearer = (token: string): string[] => ['authorization', `Bearer ${token}`];

async function setAppMetadata(server: AuthServer, userId: string, metadata: object): Promise<void> {
  const { status } = await server.call('PUT', `/admin/users/${userId}`, {
    token: adminToken(),
    body: { app_metadata: metadata },
  });
  if (status !== 200) throw new Error(`not updated: ${status}`);
}

for (const variant of ['grpc', 'http'] as const) {
  t.test(`Envoy with ${variant}`, async (t) => {
    const { server, envoy } = await platform(t, variant);
    const { accessToken, userId } = await signUp(server);

    t.test('a signed-in user is allowed, with identity headers', async (t) => {
      const { status, seen } = await send(envoy, '/cart?size=1', bearer(accessToken));
      t.equal(status, 200);
      t.equal(seen?.path, '/cart?size=1');
      t.match(seen?.headers, {
        'x-auth-user-id': userId,
        'x-auth-role': 'authenticated',
        'x-auth-plan': 'free',
        'x-auth-aal': 'aal1',
        'x-auth-anonymous': 'false',
        [variant === 'grpc' ? 'x-metadata-plan' : 'x-metadata-http-plan']: 'free',
      });
    });

    t.test('requests without a token are denied with a challenge', async (t) => {
      const response = await fetch(`${envoy.url}/cart`);
      t.equal(response.status, 401);
      t.equal(response.headers.get('www-authenticate'), 'Bearer realm="tollgate"');
      t.equal(response.headers.get('content-type'), 'application/json');
      t.match(await response.json(), { code: 401, error_code: 'no_authorization' });
      t.equal((await fetch(`${envoy.url}/cart`, { method: 'HEAD' })).status, 401);
    });

    t.test('all methods are checked', async (t) => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE']) {
        t.equal((await send(envoy, '/cart', [], method)).status, 401, `${method} without a token`);
        const { status } = await send(envoy, '/secret/plan', bearer(accessToken), method);
        t.equal(status, 403, `${method} on a denied route`);
      }
      t.equal((await send(envoy, '/cart', bearer(accessToken), 'DELETE')).status, 200);
    });

    t.test('requests with a body are checked', async (t) => {
      const response = await fetch(`${envoy.url}/cart`, {
        method: 'POST',
        headers: { authorization: `Bearer ${accessToken}` },
        body: 'x'.repeat(100_000),
      });
      t.equal(response.status, 200);
      t.equal(((await response.json()) as { body: string }).body.length, 100_000); // what the upstream answers
    });

    t.test('a role that is not allowed is denied', async (t) => {
      const { status, text, seen } = await send(envoy, '/staff/list', bearer(accessToken));
      t.equal(status, 403);
      t.match(JSON.parse(text), { code: 403, error_code: 'role_not_allowed' });
      t.equal(seen, undefined);
    });

    t.test('several Authorization headers are denied', async (t) => {
      for (const headers of [
        [...bearer(accessToken), ...bearer('x.y.z')],
        [...bearer('x.y.z'), ...bearer(accessToken)],
        ['authorization', `Bearer ${accessToken}, Bearer x.y.z`],
      ]) {
        const { status, seen } = await send(envoy, '/cart', headers);
        t.equal(status, 401);
        t.equal(seen, undefined);
      }
    });

    t.test('spoofed identity headers do not reach the upstream', async (t) => {
      const spoofed = [
        ...['x-auth-user-id', 'root', 'X-Auth-User-Id', 'root', 'x-auth-role', 'service_role'],
        ...[
          'X-Auth-Plan',
          'enterprise',
          'x_auth_user_id',
          'root',
          'x.auth.role',
          'service_role',
          'x-user-id',
          'root',
          'x-auth-other',
          'root',
        ],
      ];
      const asUser = await send(envoy, '/cart', [...spoofed, ...bearer(accessToken)]);
      t.equal(asUser.status, 200);
      t.match(asUser.seen?.headers, { 'x-auth-user-id': userId, 'x-auth-role': 'authenticated' });
      const asAnonymous = await send(envoy, '/open/page', spoofed);
      t.equal(asAnonymous.status, 200);
      for (const { headers } of [asUser, asAnonymous].flatMap(({ seen }) => seen ?? []))
        t.notMatch(JSON.stringify(headers), /root|service_role|enterprise/);
    });

    t.test('ambiguous paths do not reach the upstream', async (t) => {
      for (const path of [
        '/open/../secret/plan',
        '/open/%2e%2e/secret/plan',
        '/open/.%2E/secret/plan',
        '/open/..;/secret/plan',
        '/open/%252e%252e/secret/plan',
        '/open//secret/plan',
        '//secret/plan',
        '/open/..%2fsecret/plan',
        '/open%2f..%2fsecret/plan',
        '/open/..\\secret/plan',
        '/open/%5c..%5csecret',
        '/open/%00',
        '/open/%zz',
        '/open/page#/../../secret',
      ]) {
        const { status, seen } = await send(envoy, path);
        t.equal(status, 400, path);
        t.equal(seen, undefined, path);
      }
      t.equal((await send(envoy, '/%73ecret/plan', bearer(accessToken))).status, 403, 'decoded, then judged');
      t.equal((await send(envoy, '/open/..page/%20?/../secret')).status, 200, 'what has one reading passes');
    });

    t.test('requests with headers up to the limit of Envoy are checked', async (t) => {
      const large = Array.from({ length: 8 }, (_, index) => [`x-user-${index}`, 'a'.repeat(6_000)]).flat();
      t.equal((await send(envoy, '/cart', [...large, ...bearer(accessToken)])).status, 200);
    });

    t.test('a user who has signed out is denied', async (t) => {
      const { accessToken: token } = await signUp(server, { email: 'eve@example.com' });
      t.equal((await send(envoy, '/cart', bearer(token))).status, 200);
      await server.call('POST', '/logout', { token });
      await awaitUntil(async () => (await send(envoy, '/cart', bearer(token))).status === 401, {
        what: 'the end of the session to be seen',
      });
      const { text } = await send(envoy, '/cart', bearer(token));
      t.match(JSON.parse(text), { error_code: 'session_not_found' });
    });

    t.test('without the auth server all requests are denied', async (t) => {
      await server.stop();
      for (const path of ['/cart', '/open/page'])
        t.match(await send(envoy, path, bearer(accessToken)), { status: 503, seen: undefined });
    });
  });
}

t.test('with gRPC plan and limit of a user are dynamic metadata', async (t) => {
  const { server, envoy } = await platform(t, 'grpc');
  const { userId } = await signUp(server);
  await setAppMetadata(server, userId, { plan: 'pro', limit: { requests_per_unit: 7, unit: 'minute' } });
  const session = await server.call('POST', '/token?grant_type=password', {
    body: { email: 'ada@example.com', password: 'correct horse' },
  });
  const { seen } = await send(envoy, '/cart', bearer(String(session.body.access_token)));
  t.match(seen?.headers, { 'x-auth-plan': 'pro', 'x-metadata-plan': 'pro' });
  t.same(JSON.parse(String(seen?.headers['x-metadata-limit'])), { requests_per_unit: 7, unit: 'MINUTE' });
});

for (const [variant, status] of [
  ['grpc', 503],
  ['http', 403],
] as const)
  t.test(`with ${variant} a database that hangs is denied before Envoy times out`, async (t) => {
    const { server, envoy } = await platform(t, variant, { failure_mode_allow: true }, '10s');
    const { accessToken } = await signUp(server);
    const sql = postgres(server.databaseUrl, { max: 1 });
    t.teardown(() => sql.end());
    const done = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const lock = sql.begin(async (transaction) => {
      await transaction`lock table auth.users`;
      locked.resolve();
      await done.promise;
    });
    await locked.promise;
    const [refused, open] = await Promise.all([
      rawRequest(envoy.url, '/cart', { headers: bearer(accessToken) }),
      rawRequest(envoy.url, '/open/page', { headers: bearer(accessToken) }),
    ]);
    t.equal(refused.status, status);
    t.match(JSON.parse(refused.text), { error_code: 'authorization_unavailable' });
    t.equal(open.status, 200, 'who calls need not be known here');
    t.match(envoy.upstream.requests, [{ path: '/open/page', headers: { 'x-auth-user-id': undefined } }]);
    done.resolve();
    await lock;
    t.equal((await send(envoy, '/cart', bearer(accessToken))).status, 200, 'and then it goes on');
  });

/** A user's state is read again once it is older than this. */
const staleMs = 11_000;

for (const [variant, status] of [
  ['grpc', 503],
  ['http', 403],
] as const)
  t.test(`with ${variant} requests are denied during an outage, even with failure_mode_allow`, async (t) => {
    const { server, envoy } = await platform(t, variant, { failure_mode_allow: true });
    const { accessToken } = await signUp(server);
    t.equal((await send(envoy, '/cart', bearer(accessToken))).status, 200);
    const sql = postgres(server.databaseUrl, { max: 1 });
    t.teardown(() => sql.end());
    await sql`alter schema auth rename to elsewhere`;
    server.clock.advance(staleMs);
    const refused = await send(envoy, '/cart', bearer(accessToken));
    t.equal(refused.status, status);
    t.match(JSON.parse(refused.text), { code: status, error_code: 'authorization_unavailable' });
    t.equal(refused.seen, undefined);
    await sql`alter schema elsewhere rename to auth`;
    t.equal((await send(envoy, '/cart', bearer(accessToken))).status, 200, 'asked again at once');
    await server.stop();
    t.equal((await send(envoy, '/cart')).status, 200, 'what failure_mode_allow is about');
  });
