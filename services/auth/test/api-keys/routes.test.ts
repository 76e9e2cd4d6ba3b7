// Keys of the user API, `/user/api-keys`.
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import {
  addOrganization,
  administerKeys,
  checkKey,
  createKeyOf,
  startKeyServer,
} from '../helpers/api-keys.ts';
import { type AuthServer, type SignedIn, signedIn, signUp } from '../helpers/auth-server.ts';
import { enrollTotp } from '../helpers/totp.ts';

function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  return startKeyServer(t, { API_KEYS_SELF_SERVICE: 'true', API_KEYS_SCOPES: 'read,write', ...variables });
}

function call(
  server: Pick<AuthServer, 'call'>,
  { accessToken: token }: Pick<SignedIn, 'accessToken'>,
  method: string,
  path = '',
  body?: unknown,
) {
  return server.call(method, `/user/api-keys${path}`, { token, ...(body !== undefined && { body }) });
}

t.test('a user creates, lists, changes and revokes keys', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const { status, body: created } = await call(server, ada, 'POST', '', {
    name: 'laptop',
    scopes: ['read'],
    allowed_networks: ['127.0.0.0/8'],
  });
  t.equal(status, 201);
  const { key, ...shown } = created;
  t.match(shown, { name: 'laptop', scopes: ['read'], owner: { user_id: ada.userId }, plan: null });
  t.notOk('admin_scopes' in shown);
  t.strictSame((await call(server, ada, 'GET')).body, { api_keys: [shown] });
  t.strictSame((await call(server, ada, 'GET', `/${shown.id}`)).body, shown);
  server.clock.advance(1_000);
  t.match(await call(server, ada, 'PATCH', `/${shown.id}`, { name: 'desktop', allowed_networks: [] }), {
    status: 200,
    body: { name: 'desktop', allowed_networks: [], scopes: ['read'] },
  });
  const headers = { 'x-api-key': String(key) };
  t.match(await checkKey(server, headers), { status: 200 });
  t.equal((await call(server, ada, 'DELETE', `/${shown.id}`)).status, 204);
  t.match(await checkKey(server, headers), { status: 401 });
  t.same((await call(server, ada, 'GET')).body, { api_keys: [] });
});

t.test('users can only revoke keys that an administrator issued, limited or blocked', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const token = adminToken();
  const issue = async (more: object) => {
    const body = { name: 'issued', owner: { user_id: ada.userId }, ...more };
    return (await server.call('POST', '/admin/api-keys', { token, body })).body.id;
  };
  const own = async (change: object) => {
    const { id } = (await call(server, ada, 'POST', '', { name: 'own' })).body;
    await server.call('PUT', `/admin/api-keys/${id}`, { token, body: change });
    return id;
  };
  for (const id of [
    await issue({}),
    await issue({ admin_scopes: ['keys:write'] }),
    await own({ disabled: true }),
    await own({ plan: 'pro' }),
    await own({ role: 'authenticated' }),
    await own({ limit: { requests_per_unit: 1, unit: 'hour' } }),
    await own({ scopes: ['other'] }),
  ]) {
    t.match(await call(server, ada, 'PATCH', `/${id}`, { disabled: false, expires_at: '' }), { status: 403 });
    t.match(await call(server, ada, 'POST', `/${id}/rotate`), { status: 403 });
    t.match(await call(server, ada, 'DELETE', `/${id}`), { status: 204 });
  }
  const { id } = (await call(server, ada, 'POST', '', { name: 'own' })).body;
  t.match(await call(server, ada, 'PATCH', `/${id}`, { disabled: true }), { status: 200 });
});

t.test('users cannot give rights to their keys', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const rights = {
    plan: 'enterprise',
    role: 'admin',
    limit: { requests_per_unit: 1_000_000, unit: 'second' },
    admin_scopes: ['users:write'],
    metadata: { tier: 1 },
    owner: {},
  };
  const answer = await call(server, ada, 'POST', '', { name: 'mine', ...rights });
  t.equal(answer.status, 201, answer.text);
  const { body: created } = answer;
  server.clock.advance(1_000);
  await call(server, ada, 'PATCH', `/${created.id}`, rights);
  t.match((await administerKeys(server, 'GET', `/${created.id}`)).body, {
    owner: { user_id: ada.userId },
    plan: null,
    role: null,
    limit: null,
    admin_scopes: [],
    metadata: {},
  });
  for (const method of ['POST', 'PATCH'])
    t.match(
      await call(server, ada, method, method === 'POST' ? '' : `/${created.id}`, {
        scopes: ['read', 'root'],
      }),
      { status: 400, body: { error_code: 'validation_failed', msg: /"root"/ } },
    );
});

t.test('no user sees or changes the keys of another, whatever the endpoint', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const bob = await signUp(server, { email: 'bob@example.com' });
  const keys = {
    'of Ada': await createKeyOf(server, { owner: { user_id: ada.userId } }),
    'of a machine': await createKeyOf(server),
    'of an organisation': await createKeyOf(server, { owner: { org_id: await addOrganization(server) } }),
  };
  const requests = [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
  ] as const;
  for (const [owner, { id, key }] of Object.entries(keys)) {
    for (const [method, path] of requests) {
      const body = method === 'PATCH' ? { disabled: true } : undefined;
      t.match(
        await call(server, bob, method, `/${id}${path}`, body),
        { status: 404, body: { error_code: 'api_key_not_found' } },
        `${method} ${path} ${owner}`,
      );
      t.equal((await server.call(method, `/user/api-keys/${id}${path}`, { body })).status, 401);
      // A service token and an API key are no user.
      for (const token of [adminToken(), key])
        t.match(
          await server.call(method, `/user/api-keys/${id}${path}`, { token, body }),
          { body: { error_code: 'bad_jwt' } },
          `${method} ${path} ${owner} with another credential`,
        );
    }
    t.match((await administerKeys(server, 'GET', `/${id}`)).body, { disabled: false, expires_at: null });
  }
  t.same((await call(server, bob, 'GET')).body, { api_keys: [] });
});

t.test('a rotated key is valid for the grace, and its successor has the same values', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const lifeMs = 3_600_000;
  const { body: old } = await call(server, ada, 'POST', '', {
    name: 'laptop',
    scopes: ['read'],
    expires_at: new Date(server.clock.nowMs() + lifeMs).toISOString(),
  });
  server.clock.advance(1_000);
  const rotated = await call(server, ada, 'POST', `/${old.id}/rotate`, { grace: '10s' });
  t.equal(rotated.status, 201);
  t.match(rotated.body, {
    name: 'laptop',
    scopes: ['read'],
    rotated_from: old.id,
    expires_at: new Date(server.clock.nowMs() + lifeMs).toISOString(),
  });
  const oldKey = { 'x-api-key': String(old.key) };
  const newKey = { 'x-api-key': String(rotated.body.key) };
  t.match(await checkKey(server, oldKey), { status: 200 });
  t.match(await checkKey(server, newKey), { status: 200 });
  t.match(await call(server, ada, 'POST', `/${old.id}/rotate`, {}), { status: 409 }, 'it has a successor');
  server.clock.advance(10_000);
  t.match(await checkKey(server, oldKey), { status: 401, code: 'api_key_expired' });
  const last = await call(server, ada, 'POST', `/${rotated.body.id}/rotate`);
  t.equal(last.status, 201);
  t.match(await checkKey(server, newKey), { status: 401, code: 'api_key_expired' }, 'no grace by default');
  for (const grace of ['721h', '-1s', 'soon'])
    t.match(await call(server, ada, 'POST', `/${last.body.id}/rotate`, { grace }), { status: 400 }, grace);
});

t.test('a key counts until it has been expired for a day, unless it is revoked', async (t) => {
  const server = await start(t, { API_KEYS_PER_USER: '2' });
  const ada = await signUp(server);
  const create = (lifeMs: number) => {
    const expires_at = new Date(server.clock.nowMs() + lifeMs).toISOString();
    return call(server, ada, 'POST', '', { name: 'short', expires_at });
  };
  const { id } = (await create(1_000)).body;
  server.clock.advance(1);
  await create(60_000);
  server.clock.advance(2_000);
  t.match(await create(1_000), { status: 422, body: { error_code: 'too_many_api_keys' } });
  t.match((await call(server, ada, 'GET')).body.api_keys, [{ name: 'short' }, { id }], 'still shown');
  t.match(await call(server, ada, 'PATCH', `/${id}`, { expires_at: '' }), { status: 403 }, 'not revived');
  t.match(await call(server, ada, 'DELETE', `/${id}`), { status: 204 });
  t.match(await create(1_000), { status: 201 });
});

t.test('a key that lives for too long is rejected, and rotations have an end', async (t) => {
  const server = await start(t);
  const ada = await signUp(server);
  const far = { name: 'far', expires_at: '9999-12-31T23:59:59Z' };
  const tooFar = { status: 400, body: { error_code: 'validation_failed', msg: /100 years/ } };
  t.match(await call(server, ada, 'POST', '', far), tooFar);
  t.match(await administerKeys(server, 'POST', '', far), tooFar);
  const { id } = (await call(server, ada, 'POST', '', { name: 'near' })).body;
  t.match(await call(server, ada, 'PATCH', `/${id}`, { expires_at: far.expires_at }), tooFar);
  // A key of an earlier version.
  const sql = postgres(server.databaseUrl, { max: 1 });
  await sql`update auth.api_keys set expires_at = ${far.expires_at}`;
  await sql.end();
  const rotated = await call(server, ada, 'POST', `/${id}/rotate`);
  t.equal(rotated.status, 201, rotated.text);
  t.match(rotated.body, { expires_at: /^21\d\d-/ });
});

t.test('concurrent requests do not exceed the number of keys of a user', async (t) => {
  const server = await start(t, { API_KEYS_PER_USER: '3' });
  const ada = await signUp(server);
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => call(server, ada, 'POST', '', { name: 'one' })),
  );
  t.equal(answers.filter(({ status }) => status === 201).length, 3);
  t.match(
    answers.find(({ status }) => status !== 201),
    { status: 422, body: { error_code: 'too_many_api_keys' } },
  );
  let id = answers.find(({ status }) => status === 201)?.body.id;
  const statuses: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    server.clock.advance(1_000);
    const { status, body } = await call(server, ada, 'POST', `/${id}/rotate`, { grace: '1h' });
    statuses.push(status);
    id = body.id ?? id;
  }
  t.same(statuses, [201, 201, 201, 422, 422], 'keys in their grace count');
  server.clock.advance(25 * 3_600_000);
  const again = signedIn(
    await server.call('POST', '/token?grant_type=password', {
      body: { email: 'ada@example.com', password: 'correct horse' },
    }),
  );
  t.equal(
    (await call(server, again, 'POST', `/${id}/rotate`, {})).status,
    201,
    'keys that expired a day ago do not',
  );
});

t.test('self-service is off by default, and guests have none', async (t) => {
  const off = await startKeyServer(t);
  const ada = await signUp(off);
  for (const [method, path] of [
    ['GET', ''],
    ['POST', ''],
    ['DELETE', `/${crypto.randomUUID()}`],
  ] as const)
    t.match(await call(off, ada, method, path, method === 'POST' ? { name: 'x' } : undefined), {
      status: 404,
      body: { error_code: 'feature_disabled' },
    });
  const server = await start(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const guest = await signUp(server, { email: undefined, password: undefined });
  t.match(await call(server, guest, 'POST', '', { name: 'x' }), { status: 403 });
});

t.test('keys need the assurance of the settings, and that of a second factor', async (t) => {
  const strict = await start(t, { API_KEYS_AAL: 'aal2' });
  const ada = await signUp(strict);
  t.match(await call(strict, ada, 'POST', '', { name: 'x' }), {
    status: 401,
    body: { error_code: 'insufficient_aal' },
  });
  const raised = await enrollTotp(strict, ada);
  t.equal((await call(strict, raised, 'POST', '', { name: 'x' })).status, 201);

  const server = await start(t);
  const bob = await signUp(server);
  const { body: key } = await call(server, bob, 'POST', '', { name: 'x' });
  await enrollTotp(server, bob);
  const { accessToken } = signedIn(
    await server.call('POST', '/token?grant_type=password', {
      body: { email: 'ada@example.com', password: 'correct horse' },
    }),
  );
  t.match(await call(server, { accessToken }, 'POST', '', { name: 'y' }), { status: 401 });
  t.match(await call(server, { accessToken }, 'POST', `/${key.id}/rotate`), { status: 401 });
  t.match(await call(server, { accessToken }, 'DELETE', `/${key.id}`), { status: 204 }, 'it may stop a key');
});
