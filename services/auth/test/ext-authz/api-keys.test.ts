// API keys on several replicas, and their limits behind a real Envoy.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { administerKeys, checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';
import { type AuthServer, signUp } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { rawRequest } from '../helpers/raw-request.ts';
import { assertPromptRevocation } from '../helpers/replica-delay.ts';

t.setTimeout(120_000);

/** Cached states do not expire during the tests. */
const stale = { EXT_AUTHZ_MAX_STALENESS: '1m' };

async function startReplicas(t: Test): Promise<readonly [AuthServer, AuthServer]> {
  const one = await startKeyServer(t, stale);
  const other = await startKeyServer(t, { ...stale, DB_DATABASE_URL: one.databaseUrl });
  for (const server of [one, other])
    await awaitUntil(() => server.logs().includes('opened LISTEN connection'), { what: 'the listeners' });
  return [one, other];
}

t.test('a revocation, a change and the end of the owner take effect on all replicas', async (t) => {
  const [one, other] = await startReplicas(t);
  const ada = await signUp(one);
  const owner = { user_id: ada.userId };
  const administer = (body: object) =>
    one.call('PUT', `/admin/users/${ada.userId}`, { token: adminToken(), body });
  const ends = {
    revoked: (id: string) => administerKeys(one, 'DELETE', `/${id}`),
    disabled: (id: string) => administerKeys(one, 'PUT', `/${id}`, { disabled: true }),
    rotated: (id: string) => administerKeys(one, 'POST', `/${id}/rotate`, {}),
    'banned with its owner': () => administer({ ban_duration: '24h' }),
  };
  const codes = {
    revoked: 'invalid_api_key',
    disabled: 'api_key_disabled',
    rotated: 'api_key_expired',
    'banned with its owner': 'user_banned',
  };
  for (const [what, end] of Object.entries(ends)) {
    const { id, key } = await createKeyOf(one, { owner });
    const check = (server: AuthServer) => checkKey(server, { 'x-api-key': key });
    for (const server of [one, other]) t.match(await check(server), { status: 200 });
    await end(id);
    const expected = { status: 401, code: codes[what as keyof typeof codes] };
    t.match(await check(one), expected, `${what}: the replica of the request`);
    await awaitUntil(async () => (await check(other)).status === 401, { what });
    t.match(await check(other), expected);
  }
});

t.test('a revocation is notified before its answer, and takes effect within 50 ms', async (t) => {
  const [one, other] = await startReplicas(t);
  await assertPromptRevocation(t, other.databaseUrl, async () => {
    const { id, key } = await createKeyOf(one);
    return {
      id,
      revoke: async () => t.equal((await administerKeys(one, 'DELETE', `/${id}`)).status, 204),
      isRevoked: async () => (await checkKey(other, { 'x-api-key': key })).status === 401,
    };
  });
});

const routes = `
routes:
  - { path: /key, limit: [[plan, key_id]] }
  - { path: /plan, limit: [[plan]] }
`;

const rules = `
domain: ext_authz
descriptors:
  - key: plan
    value: pro
    rate_limit: { unit: day, requests_per_unit: 4 }
    descriptors:
      - { key: key_id, rate_limit: { unit: day, requests_per_unit: 3 } }
  - key: plan
    rate_limit: { unit: day, requests_per_unit: 2 }
    descriptors:
      - { key: key_id, rate_limit: { unit: day, requests_per_unit: 1 } }
`;

t.test('a real Envoy answers 429 by key, by plan, and by the limit of a key', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  folder.write('config/limits.yaml', rules);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const server = await startKeyServer(t, {
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const envoy = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  /** How many of six requests pass. */
  const passing = async (key: string, path: string) => {
    const statuses: number[] = [];
    for (let count = 0; count < 6; count += 1)
      statuses.push((await rawRequest(envoy.url, path, { headers: ['x-api-key', key] })).status);
    t.same(new Set(statuses), new Set([200, 429]), `${path}: ${statuses}`);
    return statuses.filter((status) => status === 200).length;
  };
  const [one, two] = [await createKeyOf(server, { plan: 'pro' }), await createKeyOf(server, { plan: 'pro' })];
  const free = await createKeyOf(server);
  const limited = await createKeyOf(server, { plan: 'pro', limit: { requests_per_unit: 5, unit: 'day' } });
  t.equal(await passing(one.key, '/key'), 3);
  t.equal(await passing(two.key, '/key'), 3, 'each key has a counter');
  t.equal(await passing(free.key, '/key'), 1, 'by plan');
  t.equal(await passing(limited.key, '/key'), 5, 'its own limit');
  t.equal(await passing(one.key, '/plan'), 4, 'keys of a plan share the limit of the plan');
  t.same((await rawRequest(envoy.url, '/plan', { headers: ['x-api-key', two.key] })).status, 429);
  t.equal(await passing(free.key, '/plan'), 2);
});
