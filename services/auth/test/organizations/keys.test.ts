import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { administerKeys, checkKey, createKeyOf } from '../helpers/api-keys.ts';
import { type AuthServer, type SignedIn, startAuthServer } from '../helpers/auth-server.ts';
import { createOrganization, putMember, signUpAs, withOrganizations } from '../helpers/organizations.ts';

const withKeys = { ...withOrganizations, API_KEYS_ENABLED: 'true', API_KEYS_SELF_SERVICE: 'true' };

/** An organization of Ada with the admin Bob, and calls of its keys. */
async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, { ...withKeys, ...variables });
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const id = await createOrganization(server, ada);
  await putMember(server, id, { user: bob, role: 'admin' });
  const call = (user: SignedIn, method: string, path = '', body?: object) =>
    server.call(method, `/organizations/${id}/api-keys${path}`, {
      token: user.accessToken,
      ...(body && { body }),
    });
  return { server, ada, bob, id, call };
}

t.test('members manage the keys of their organization, and the gateway accepts them', async (t) => {
  const { server, ada, bob, id, call } = await start(t, { API_KEYS_SCOPES: 'orders:read' });
  const input = { name: 'reports', scopes: ['orders:read'] };
  const created = await call(bob, 'POST', '', input);
  t.match(created, { status: 201, body: { ...input, owner: { org_id: id }, plan: null, limit: null } });
  const key = String(created.body.key);
  const headers = { 'x-api-key': key };
  await server.call('PUT', `/admin/organizations/${id}`, { token: adminToken(), body: { plan: 'pro' } });
  const seen = await fetch(`http://127.0.0.1:${server.extAuthz.http}/`, { headers });
  const read = ['org-id', 'plan', 'scope', 'user-id'].map((name) => seen.headers.get(`x-auth-${name}`));
  t.same([seen.status, ...read], [200, id, 'pro', 'orders:read', null]);

  const one = `/${created.body.id}`;
  server.clock.advance(1000);
  const { key: _text, ...shown } = created.body;
  t.match((await call(ada, 'GET')).body, { api_keys: [{ id: shown.id }] });
  t.match((await call(ada, 'GET', one)).body, { id: shown.id });
  t.notOk('key' in (await call(ada, 'GET', one)).body);
  t.match(await call(ada, 'PATCH', one, { name: 'orders' }), { status: 200, body: { name: 'orders' } });
  server.clock.advance(1000);
  const rotated = await call(ada, 'POST', `${one}/rotate`, { grace: '1h' });
  t.match(rotated, { status: 201, body: { name: 'orders', rotated_from: shown.id, owner: { org_id: id } } });
  for (const text of [key, String(rotated.body.key)])
    t.match(await checkKey(server, { 'x-api-key': text }), { status: 200 });
  server.clock.advance(1000);
  t.equal((await call(bob, 'DELETE', `/${rotated.body.id}`)).status, 204);
  t.match(await checkKey(server, { 'x-api-key': String(rotated.body.key) }), { status: 401 });

  const { body: log } = await server.call('GET', `/admin/audit`, { token: adminToken() });
  const entries = (log as unknown as { payload: { action: string; actor_id: string; traits: object } }[]) // a list
    .map(({ payload }) => payload)
    .filter(({ action }) => action.startsWith('api_key_'));
  t.match(
    entries.map(({ action, actor_id: actor, traits }) => [action, actor, traits]),
    [
      ['api_key_revoked', bob.userId, { org_id: id, key_name: 'orders' }],
      ['api_key_rotated', ada.userId, { org_id: id, rotated_from: shown.id }],
      ['api_key_updated', ada.userId, { org_id: id }],
      ['api_key_created', bob.userId, { org_id: id, key_name: 'reports' }],
    ],
  );
});

t.test('members set neither plan, limit, role nor rights', async (t) => {
  const { ada, call } = await start(t);
  const given = {
    ...{ plan: 'pro', limit: { requests_per_unit: 5, unit: 'day' }, role: 'admin' },
    ...{ admin_scopes: ['users:read'], metadata: { vip: true } },
  };
  const created = await call(ada, 'POST', '', { name: 'reports', ...given });
  const none = { plan: null, limit: null, role: null, metadata: {} };
  t.match(created, { status: 201, body: none });
  t.match(await call(ada, 'PATCH', `/${created.body.id}`, given), { status: 200, body: none });
  t.match(await call(ada, 'POST', '', { name: 'reports', scopes: ['orders:read'] }), { status: 400 });
});

t.test('keys that administrators issued, limited or blocked can only be revoked', async (t) => {
  const { server, ada, id, call } = await start(t);
  const create = async () => String((await call(ada, 'POST', '', { name: 'own' })).body.id);
  const changes: Readonly<Record<string, () => Promise<string>>> = {
    issued: async () => (await createKeyOf(server, { owner: { org_id: id } })).id,
    limited: async () => {
      const key = await create();
      await administerKeys(server, 'PUT', `/${key}`, { plan: 'pro' });
      return key;
    },
    blocked: async () => {
      const key = await create();
      await administerKeys(server, 'PUT', `/${key}`, { disabled: true });
      return key;
    },
    rotated: async () => {
      const key = await create();
      return String((await administerKeys(server, 'POST', `/${key}/rotate`, {})).body.id);
    },
  };
  for (const [what, prepare] of Object.entries(changes)) {
    const key = await prepare();
    const refused = { status: 403, body: { error_code: 'not_admin' } };
    t.match(await call(ada, 'PATCH', `/${key}`, { disabled: false }), refused, `${what}: change`);
    t.match(await call(ada, 'POST', `/${key}/rotate`, {}), refused, `${what}: rotation`);
    t.equal((await call(ada, 'DELETE', `/${key}`)).status, 204, `${what}: revocation`);
  }
});

t.test('a key stays with the organization when the member who created it leaves', async (t) => {
  const { server, ada, bob, id, call } = await start(t);
  const { body: created } = await call(bob, 'POST', '', { name: 'reports' });
  await server.call('DELETE', `/organizations/${id}/members/${bob.userId}`, { token: ada.accessToken });
  t.equal((await call(bob, 'DELETE', `/${created.id}`)).status, 404);
  t.match(await checkKey(server, { 'x-api-key': String(created.key) }), { status: 200 });
  t.match(await call(ada, 'POST', `/${created.id}/rotate`, {}), { status: 201 });
});

t.test('an organization has at most the number of keys of the settings, also concurrently', async (t) => {
  const { ada, bob, call } = await start(t, { API_KEYS_PER_ORGANIZATION: '3' });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => call(index % 2 ? ada : bob, 'POST', '', { name: `${index}` })),
  );
  t.equal(answers.filter(({ status }) => status === 201).length, 3);
  t.match(
    answers.find(({ status }) => status === 422),
    { body: { error_code: 'too_many_api_keys' } },
  );
});

t.test('keys of users, of machines and of other organizations are not found', async (t) => {
  const { server, ada, call } = await start(t);
  const other = await createOrganization(server, ada);
  for (const owner of [{ user_id: ada.userId }, { org_id: other }, undefined]) {
    const { id } = await createKeyOf(server, owner && { owner });
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { name: 'mine' }],
      ['DELETE', '', undefined],
      ['POST', '/rotate', {}],
    ] as const)
      t.match(
        await call(ada, method, `/${id}${path}`, body),
        { status: 404, body: { error_code: 'api_key_not_found' } },
        `${method} ${JSON.stringify(owner)}`,
      );
  }
});

t.test('without keys, self-service or organizations there are no such routes', async (t) => {
  for (const variables of [
    { API_KEYS_SELF_SERVICE: 'false' },
    { API_KEYS_SELF_SERVICE: 'false', API_KEYS_ENABLED: 'false' },
  ]) {
    const { ada, call } = await start(t, variables);
    t.match(await call(ada, 'GET'), { status: 404, body: { error_code: 'feature_disabled' } });
    t.match(await call(ada, 'POST', '', { name: 'x' }), { status: 404 });
  }
});

t.test('creating keys needs the assurance of the settings', async (t) => {
  const { ada, call } = await start(t, { API_KEYS_AAL: 'aal2' });
  t.match(await call(ada, 'POST', '', { name: 'x' }), {
    status: 401,
    body: { error_code: 'insufficient_aal' },
  });
  t.equal((await call(ada, 'GET')).status, 200);
});

/** Sends a request that waits for the lock on the organization while its sender is removed. */
async function removedMeanwhile(
  { databaseUrl }: AuthServer,
  {
    id,
    user,
    send,
  }: { readonly id: string; readonly user: SignedIn; send(): ReturnType<AuthServer['call']> },
) {
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
  const { answer } = await sql.begin(async (transaction) => {
    await transaction`select from auth.organizations where id = ${id} for update`;
    const answer = send();
    const isBlocked = async () =>
      (
        await sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length > 0;
    await awaitUntil(isBlocked, { what: 'the request to wait for the lock' });
    await transaction`delete from auth.organization_members where user_id = ${user.userId}`;
    return { answer };
  });
  await sql.end();
  return answer;
}

t.test('a member who was removed meanwhile changes no key', async (t) => {
  const { server, ada, bob, id, call } = await start(t);
  const { body: key } = await call(ada, 'POST', '', { name: 'reports' });
  for (const [method, path, body] of [
    ['POST', '', { name: 'mine' }],
    ['PATCH', `/${key.id}`, { name: 'mine' }],
    ['POST', `/${key.id}/rotate`, {}],
    ['DELETE', `/${key.id}`, undefined],
  ] as const) {
    await putMember(server, id, { user: bob, role: 'admin' });
    const answer = await removedMeanwhile(server, {
      id,
      user: bob,
      send: () => call(bob, method, path, body),
    });
    t.equal(answer.status, 404, `${method} ${path}`);
  }
  t.match((await call(ada, 'GET')).body, { api_keys: [{ name: 'reports' }] });
  t.match(await checkKey(server, { 'x-api-key': String(key.key) }), { status: 200 });
});
