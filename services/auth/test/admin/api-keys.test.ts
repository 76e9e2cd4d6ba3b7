import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { addOrganization, administerKeys, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';
import { signUp } from '../helpers/auth-server.ts';

t.test('a key is created, read, changed and revoked', async (t) => {
  const server = await startKeyServer(t);
  const { body: created } = await administerKeys(server, 'POST', '', {
    name: ' build ',
    scopes: ['read', 'write', 'read'],
    admin_scopes: ['users:read'],
    plan: 'pro',
    role: 'robot',
    limit: { requests_per_unit: 5, unit: 'MINUTE' },
    allowed_networks: ['10.0.0.0/8', '2001:db8::1'],
    metadata: { team: 'a' },
  });
  const { key, ...shown } = created;
  t.match(key, /^tgk_[0-9A-Za-z]{49}$/);
  t.match(shown, {
    name: 'build',
    prefix: 'tgk',
    last4: String(key).slice(-4),
    owner: null,
    scopes: ['read', 'write'],
    admin_scopes: ['users:read'],
    plan: 'pro',
    role: 'robot',
    limit: { requests_per_unit: 5, unit: 'minute' },
    expires_at: null,
    allowed_networks: ['10.0.0.0/8', '2001:db8::1'],
    metadata: { team: 'a' },
    disabled: false,
    last_used_at: null,
    rotated_from: null,
  });
  const path = `/${shown.id}`;
  t.strictSame((await administerKeys(server, 'GET', path)).body, shown, 'the key is shown once');
  server.clock.advance(1_000);
  const { body: changed } = await administerKeys(server, 'PUT', path, {
    plan: '',
    limit: {},
    metadata: { crm: { token: 'hush' } },
    disabled: true,
  });
  t.match(changed, {
    ...shown,
    metadata: { crm: { token: 'hush' } },
    plan: null,
    limit: null,
    disabled: true,
    updated_at: /./,
  });
  t.not(changed.updated_at, shown.updated_at);
  server.clock.advance(1_000);
  t.equal((await administerKeys(server, 'DELETE', path)).status, 204);
  for (const method of ['GET', 'PUT', 'DELETE'])
    t.match(await administerKeys(server, method, path, method === 'PUT' ? {} : undefined), {
      status: 404,
      body: { error_code: 'api_key_not_found' },
    });
  const { text } = await server.call('GET', '/admin/audit', { token: adminToken() });
  // Parsed boundary: entries of the audit log.
  const entries = JSON.parse(text) as { payload: { action: string; traits?: unknown } }[];
  t.match(
    entries.map(({ payload }) => payload),
    [
      { action: 'api_key_revoked', traits: { key_id: shown.id, key_name: 'build' } },
      {
        action: 'api_key_updated',
        traits: {
          changed: [
            ...['plan', 'limit.unit', 'limit.requests_per_unit', 'metadata.team'],
            ...['metadata.crm.token', 'disabled'],
          ],
          changes: { plan: { old: 'pro', new: null }, disabled: { old: false, new: true } },
        },
      },
      { action: 'api_key_created', event: 'api_key.created', actor_kind: 'service_token' },
    ],
  );
  t.notMatch(text + server.logs(), String(key).slice(4, 30));
  t.notMatch(text + server.logs(), 'hush');
});

t.test('invalid values of keys are rejected', async (t) => {
  const server = await startKeyServer(t);
  const invalid = [
    { name: '' },
    { name: 'x'.repeat(101) },
    { scopes: ['a b'] },
    { scopes: ['x'.repeat(1025)] },
    { admin_scopes: ['everything'] },
    { plan: 'x'.repeat(256) },
    { role: 'x'.repeat(256) },
    { limit: { requests_per_unit: 0, unit: 'day' } },
    { limit: { requests_per_unit: 5 } },
    { expires_at: 'tomorrow' },
    { expires_at: '2020-01-01T00:00:00Z' },
    { allowed_networks: ['10.0.0.0/33'] },
    { allowed_networks: ['example.com'] },
    { allowed_networks: Array.from({ length: 51 }, (_, index) => `10.0.0.${index}`) },
    { metadata: { text: 'x'.repeat(2048) } },
    { owner: { user_id: 'ada' } },
    { owner: { user_id: crypto.randomUUID(), org_id: crypto.randomUUID() } },
  ];
  for (const values of invalid)
    t.match(
      await administerKeys(server, 'POST', '', { name: 'test', ...values }),
      { status: 400, body: { error_code: 'validation_failed' } },
      JSON.stringify(values).slice(0, 80),
    );
  for (const [owner, code] of [
    [{ user_id: crypto.randomUUID() }, 'user_not_found'],
    [{ org_id: crypto.randomUUID() }, 'organization_not_found'],
  ])
    t.match(await administerKeys(server, 'POST', '', { name: 'test', owner }), {
      status: 404,
      body: { error_code: code },
    });
});

t.test('keys are listed by owner, plan and their visible characters, page by page', async (t) => {
  const server = await startKeyServer(t);
  const ada = await signUp(server);
  const owner = { user_id: ada.userId };
  const org = await addOrganization(server);
  const keys = [];
  for (const values of [{ owner }, { owner, plan: 'pro' }, { owner: { org_id: org } }, {}]) {
    keys.push(await createKeyOf(server, values));
    server.clock.advance(1_000);
  }
  const ids = keys.map(({ id }) => id).reverse();
  const list = async (query: string) => {
    const { body } = await administerKeys(server, 'GET', `?${query}`);
    // The form of the OpenAPI document, which `call` has compared.
    return body as { api_keys: { id: string }[]; pagination: { next_cursor?: string; has_more: boolean } };
  };
  const listed = async (query: string) => (await list(query)).api_keys.map(({ id }) => id);
  t.same(await listed(''), ids);
  t.same(await listed(`user_id=${ada.userId}`), ids.slice(2));
  t.same(await listed(`org_id=${org}`), [ids[1]]);
  t.same(await listed('plan=pro'), [ids[2]]);
  t.same(await listed(`prefix=tgk&last4=${keys[0]?.last4}`), [ids[3]]);
  t.same(await listed('prefix=other'), []);
  const first = await list('limit=3');
  t.match(first.pagination, { has_more: true });
  t.same(
    first.api_keys.map(({ id }) => id),
    ids.slice(0, 3),
  );
  t.same(await listed(`limit=3&cursor=${first.pagination.next_cursor}`), ids.slice(3));
  t.match(await administerKeys(server, 'GET', '?user_id=ada'), { status: 400 });
});

t.test('only administrators use the admin API of keys', async (t) => {
  const server = await startKeyServer(t);
  const ada = await signUp(server);
  const { id, key } = await createKeyOf(server, { owner: { user_id: ada.userId } });
  const requests = [
    ['GET', ''],
    ['POST', ''],
    ['GET', `/${id}`],
    ['PUT', `/${id}`],
    ['DELETE', `/${id}`],
  ] as const;
  for (const [method, path] of requests)
    for (const [token, status] of [
      [ada.accessToken, 403],
      [key, 403],
      [undefined, 401],
    ] as const) {
      const answer = await server.call(method, `/admin/api-keys${path}`, {
        ...(token !== undefined && { token }),
        ...(method === 'POST' || method === 'PUT' ? { body: { name: 'mine' } } : {}),
      });
      t.equal(answer.status, status, `${method} ${path}`);
    }
});
