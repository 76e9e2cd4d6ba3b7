import { HealthCheckResponse_ServingStatus as Serving } from '@tollgate/proto/grpc/health/v1/health';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { type AuthzClient, connectAuthz, summary } from '../helpers/authz-client.ts';

/** Headers that a user does not have; removed whether or not the client sent them. */
const absent = ['x-auth-key-id', 'x-auth-client-id', 'x-auth-org-id', 'x-auth-org-role', 'x-auth-scope'];

async function start(
  t: Test,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ server: AuthServer; client: AuthzClient }> {
  const server = await startAuthServer(t, variables);
  return { server, client: connectAuthz(t, server.extAuthz.grpc) };
}

t.test('a valid token allows the request, with identity headers and metadata', async (t) => {
  const { server, client } = await start(t);
  const { accessToken, userId } = await signUp(server);
  const answer = summary(
    await client.check({
      method: 'GET',
      path: '/cart?size=1',
      headers: { ':path': '/cart?size=1', authorization: `Bearer ${accessToken}`, 'x-user-name': 'root' },
    }),
  );
  t.match(answer, {
    code: 0,
    set: {
      'x-auth-user-id': userId,
      'x-auth-role': 'authenticated',
      'x-auth-plan': 'free',
      'x-auth-aal': 'aal1',
      'x-auth-anonymous': 'false',
      'x-auth-session-id': /^[\da-f-]{36}$/,
    },
    metadata: { user_id: userId, role: 'authenticated', plan: 'free', aal: 'aal1', anonymous: false },
  });
  t.same(answer.remove, [...absent, 'x-user-name']);
});

t.test('without a token the response is JSON with a challenge (RFC 6750)', async (t) => {
  const { client } = await start(t);
  t.same(summary(await client.check({ method: 'GET', path: '/', headers: {} })), {
    code: 16,
    httpStatus: 401,
    headers: { 'content-type': 'application/json', 'www-authenticate': 'Bearer realm="tollgate"' },
    body: { code: 401, error_code: 'no_authorization', msg: 'This endpoint requires a valid Bearer token' },
    metadata: undefined,
    errorCode: 'no_authorization',
  });
});

t.test('raw headers are read separately: a second Authorization header is rejected', async (t) => {
  const { server, client } = await start(t);
  const { accessToken } = await signUp(server);
  const authorization = { key: 'authorization', rawValue: Buffer.from(`Bearer ${accessToken}`) };
  const ask = async (...headers: { key: string; rawValue: Buffer }[]) =>
    summary(await client.check({ method: 'GET', path: '/', headerMap: { headers } }));
  t.match(await ask(authorization), { code: 0, set: { 'x-auth-plan': 'free' } });
  t.match(await ask(authorization, authorization), { httpStatus: 401, body: { error_code: 'bad_jwt' } });
  const strange = { key: 'x_auth_role', rawValue: Buffer.from([0xff]) };
  const answer = await ask(authorization, strange);
  t.same(answer.remove, [...absent, 'x_auth_role']);
});

t.test('a malformed check is denied, not failed', async (t) => {
  const { client } = await start(t);
  for (const bytes of [Uint8Array.of(), Uint8Array.of(0xff), Uint8Array.of(0x0a, 0x7f, 1)])
    t.match(summary(await client.send(bytes)), {
      code: 7,
      httpStatus: 403,
      body: { error_code: 'not_http' },
    });
});

t.test('health checks use the service name', async (t) => {
  const { client } = await start(t);
  t.equal(await client.health('ext_authz'), Serving.SERVING);
  t.equal(await client.health(''), Serving.SERVING);
  await t.rejects(client.health('ratelimit'), { code: 5 });
});

t.test('a stopping server reports NOT_SERVING and ends health watches', async (t) => {
  const { server, client } = await start(t, { SHUTDOWN_DELAY: '1ms' });
  const seen: Serving[] = [];
  const ended = client.watch('ext_authz', (status) => void seen.push(status));
  await awaitUntil(() => seen.length === 1, { what: 'the first status' });
  await server.stop();
  await ended;
  t.same(seen, [Serving.SERVING, Serving.NOT_SERVING]);
});

t.test('no servers are started if ext_authz is disabled', async (t) => {
  const server = await startAuthServer(t, { EXT_AUTHZ_ENABLED: 'false' });
  t.same(server.extAuthz, { grpc: 0, http: 0 });
  t.equal((await server.call('GET', '/health')).status, 200);
});
