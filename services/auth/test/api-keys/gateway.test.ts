import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import {
  addOrganization,
  administerKeys,
  checkKey,
  createKeyOf,
  startKeyServer,
} from '../helpers/api-keys.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const wrongKey = 'tgk_0000000000000000000000000000000000000000000000000';

t.test('a key is accepted as bearer token and in its header', async (t) => {
  const server = await startKeyServer(t);
  const { id, key } = await createKeyOf(server, { plan: 'pro', role: 'robot', scopes: ['read', 'write'] });
  for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
    const answer = await checkKey(server, headers);
    t.equal(answer.status, 200);
    const { headers: set } = answer;
    t.match(Object.fromEntries(set), {
      'x-auth-kind': 'api_key',
      'x-auth-key-id': id,
      'x-auth-plan': 'pro',
      'x-auth-role': 'robot',
      'x-auth-scope': 'read%20write',
      'x-auth-aal': 'aal1',
      'x-auth-anonymous': 'false',
    });
    for (const name of ['user-id', 'session-id', 'client-id', 'org-id', 'issuer'])
      t.notOk(set.has(`x-auth-${name}`), name);
  }
});

t.test('a key of a user has the attributes of its owner', async (t) => {
  const server = await startKeyServer(t);
  const ada = await signUp(server);
  await server.call('PUT', `/admin/users/${ada.userId}`, {
    token: adminToken(),
    body: { app_metadata: { plan: 'team' } },
  });
  const { key } = await createKeyOf(server, { owner: { user_id: ada.userId } });
  const { status, headers } = await checkKey(server, { 'x-api-key': key });
  t.equal(status, 200);
  t.match(Object.fromEntries(headers), {
    'x-auth-kind': 'api_key',
    'x-auth-user-id': ada.userId,
    'x-auth-plan': 'team',
    'x-auth-role': 'authenticated',
  });
});

t.test('a key of an organization has its plan, and follows it', async (t) => {
  const server = await startKeyServer(t, { EXT_AUTHZ_MAX_STALENESS: '1m' });
  const orgId = await addOrganization(server, 'team');
  const { key } = await createKeyOf(server, { owner: { org_id: orgId } });
  const check = () => checkKey(server, { 'x-api-key': key });
  await awaitUntil(() => server.logs().includes('opened LISTEN connection'), { what: 'the listener' });
  t.match(Object.fromEntries((await check()).headers), {
    'x-auth-org-id': orgId,
    'x-auth-plan': 'team',
    'x-auth-kind': 'api_key',
  });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`update auth.organizations set plan = 'enterprise' where id = ${orgId}`;
  await awaitUntil(async () => (await check()).headers.get('x-auth-plan') === 'enterprise', {
    what: 'the new plan',
  });
  await sql`delete from auth.organizations where id = ${orgId}`;
  await awaitUntil(async () => (await check()).status === 401, { what: 'the end of the key' });
});

t.test('unknown and misspelt keys are rejected, the latter without the database', async (t) => {
  const server = await startKeyServer(t);
  const { key } = await createKeyOf(server);
  const misspelt = `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`;
  for (const text of [wrongKey, misspelt, 'another', `${key}, ${key}`]) {
    t.match(await checkKey(server, { 'x-api-key': text }), { status: 401, code: 'invalid_api_key' }, text);
  }
  t.match(await checkKey(server, { authorization: `Bearer ${misspelt}` }), {
    status: 401,
    code: 'invalid_api_key',
  });
  t.match(await checkKey(server, {}), { status: 401, code: 'no_authorization' });
});

t.test('a request with several credentials is rejected', async (t) => {
  const server = await startKeyServer(t);
  const { key } = await createKeyOf(server);
  const ada = await signUp(server);
  for (const authorization of [`Bearer ${key}`, `Bearer ${ada.accessToken}`])
    t.match(await checkKey(server, { authorization, 'x-api-key': key }), {
      status: 401,
      code: 'several_credentials',
    });
  const basic = await checkKey(server, { authorization: 'Basic YTpi', 'x-api-key': key });
  t.equal(basic.status, 200, 'other schemes are for the upstream');
});

t.test('a change, a revocation and a ban of the owner take effect at once', async (t) => {
  const server = await startKeyServer(t);
  const ada = await signUp(server);
  const { id, key } = await createKeyOf(server, { owner: { user_id: ada.userId } });
  const check = () => checkKey(server, { 'x-api-key': key });
  t.match(await check(), { status: 200 });
  await administerKeys(server, 'PUT', `/${id}`, { plan: 'pro' });
  t.equal((await check()).headers.get('x-auth-plan'), 'pro');
  await administerKeys(server, 'PUT', `/${id}`, { disabled: true });
  t.match(await check(), { status: 401, code: 'api_key_disabled' });
  await administerKeys(server, 'PUT', `/${id}`, { disabled: false });
  const administer = (body: object) =>
    server.call('PUT', `/admin/users/${ada.userId}`, { token: adminToken(), body });
  await administer({ ban_duration: '1h' });
  t.match(await check(), { status: 401, code: 'user_banned' });
  await administer({ ban_duration: 'none' });
  t.match(await check(), { status: 200 });
  t.equal((await administerKeys(server, 'DELETE', `/${id}`)).status, 204);
  t.match(await check(), { status: 401, code: 'invalid_api_key' });
});

t.test('a key expires, and is rejected outside of its networks', async (t) => {
  const server = await startKeyServer(t, { SECURITY_TRUSTED_PROXIES: 'loopback' });
  const { key } = await createKeyOf(server, {
    expires_at: new Date(server.clock.nowMs() + 5_000).toISOString(),
    allowed_networks: ['192.0.2.0/24', '2001:db8::/32'],
  });
  const from = (address: string) => checkKey(server, { 'x-api-key': key, 'x-forwarded-for': address });
  for (const address of ['192.0.2.7', '2001:db8:1::1', '::ffff:192.0.2.7'])
    t.match(await from(address), { status: 200 }, address);
  for (const address of ['192.0.3.7', '2001:db9::1', 'unknown'])
    t.match(await from(address), { status: 403, code: 'api_key_network_not_allowed' }, address);
  server.clock.advance(5_000);
  t.match(await from('192.0.2.7'), { status: 401, code: 'api_key_expired' });
});

t.test('with API keys disabled their header has no meaning', async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const { status, headers } = await checkKey(server, {
    authorization: `Bearer ${ada.accessToken}`,
    'x-api-key': 'of the upstream',
  });
  t.equal(status, 200);
  t.notMatch(headers.get('x-envoy-auth-headers-to-remove'), /x-api-key/);
  t.match(await administerKeys(server, 'GET'), { status: 404, body: { error_code: 'feature_disabled' } });
});

for (const variant of ['grpc', 'http'] as const)
  t.test(`keys never reach the upstream of a real Envoy over ${variant}`, async (t) => {
    const folder = temporaryFolder();
    t.teardown(folder.remove);
    const file = join(folder.path, 'routes.yaml');
    writeFileSync(file, 'routes: [{ path: /open, access: public }]');
    const server = await startKeyServer(t, { EXT_AUTHZ_ROUTES_FILE: file });
    const { key, id } = await createKeyOf(server);
    const envoy = await startAuthzEnvoy(t, {
      variant,
      port: server.extAuthz[variant],
      allowedHeaders: [{ exact: 'x-api-key' }],
    });
    const sent = [
      { path: '/', headers: ['x-api-key', key], keyId: id },
      { path: '/', headers: ['authorization', `Bearer ${key}`], keyId: id },
      { path: '/open', headers: ['x-api-key', wrongKey] },
      { path: '/open', headers: ['authorization', `Bearer ${wrongKey}`] },
      { path: '/open', headers: ['authorization', `Bearer ${key}`, 'x-api-key', key] },
      { path: '/open', headers: ['authorization', `Bearer ${key} x`] },
      { path: '/open', headers: ['authorization', `Bearer ${key}`, 'authorization', `Bearer ${key}`] },
    ];
    for (const { path, headers, keyId } of sent) {
      const before = envoy.upstream.requests.length;
      t.equal((await rawRequest(envoy.url, path, { headers })).status, 200);
      const seen = envoy.upstream.requests.slice(before)[0];
      t.equal(seen?.headers['x-auth-key-id'], keyId);
      t.notMatch(JSON.stringify(seen), new RegExp(`${key}|${wrongKey}`));
    }
  });
