import { createHash } from 'node:crypto';
import { hasAdminScope } from '@tollgate/admin-clients/admin-scopes';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { requiredScope } from '../../src/app/admin-access.ts';
import { operations } from '../../src/app/operations.ts';
import { adminScopes } from '../../src/sessions/admin-scopes.ts';
import { adminToken } from '../helpers/admin.ts';
import { checkKey } from '../helpers/api-keys.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';

const token = adminToken({ email: 'root@example.com' });
const anyId = '11111111-2222-4333-8444-555555555555';

interface Key {
  readonly id: string;
  readonly key: string;
}

function start(t: Test, settings: Readonly<Record<string, string>> = {}) {
  return startAuthServer(t, {
    API_KEYS_ENABLED: 'true',
    OAUTH_SERVER_ENABLED: 'true',
    EVENT_WEBHOOKS_ENABLED: 'true',
    CUSTOM_OAUTH_ENABLED: 'true',
    ...settings,
  });
}

async function newKey(
  server: AuthServer,
  admin_scopes: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
  by = token,
): Promise<Key> {
  const body = { name: `key ${admin_scopes.join(' ')}`, admin_scopes, ...more };
  const created = await server.call('POST', '/admin/api-keys', { token: by, body });
  if (created.status !== 201) throw new Error(created.text);
  return { id: String(created.body.id), key: String(created.body.key) };
}

interface Entry {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly ip_address: string;
}

async function audit(server: AuthServer, query: string): Promise<readonly Entry[]> {
  const { text } = await server.call('GET', `/admin/audit?${query}`, { token });
  return JSON.parse(text) as Entry[]; // as the route answers it
}

t.test('each route of administrators accepts the keys with its scope, and no other', async (t) => {
  const server = await start(t);
  const keys = new Map<string, Key>();
  for (const scope of adminScopes) keys.set(scope, await newKey(server, [scope]));
  const plain = await newKey(server, []);
  const routes = Object.entries(operations).filter(([, { caller }]) => caller === 'admin');
  t.ok(routes.length > 30);
  for (const [route, { scope = '' }] of routes) {
    const [method = '', pattern = ''] = route.split(' ');
    const path = pattern.replaceAll(/\{\w+\}/g, anyId);
    const options = method === 'GET' ? {} : { body: {} };
    const status = async ({ key }: Key) => {
      const { status, body } = await server.call(method, path, { token: key, ...options });
      return { status, code: body.error_code, message: body.msg };
    };
    const refused = {
      status: 403,
      code: 'insufficient_scope',
      message: `The API key or access token lacks the scope ${scope}`,
    };
    for (const [held, key] of keys) {
      // A key that revokes or removes itself would end the test.
      const answer = await status(key);
      if (hasAdminScope(new Set([held]), scope)) {
        t.not(answer.code, 'insufficient_scope', `${route} with ${held}`);
        t.not(answer.status, 401, `${route} with ${held}`);
      } else t.same(answer, refused, `${route} with ${held}`);
    }
    t.same(await status(plain), refused, `${route} without a scope`);
  }
});

t.test('an admin key without the scope gets 403, and the audit names it', async (t) => {
  const server = await start(t);
  const { userId } = await signUp(server);
  const reader = await newKey(server, ['users:read'], { name: 'reporting' });
  const path = `/admin/users/${userId}`;
  t.equal((await server.call('GET', path, { token: reader.key })).status, 200);
  t.equal((await server.call('HEAD', path, { token: reader.key })).status, 200);
  const ban = { token: reader.key, body: { ban_duration: '1h' } };
  t.match(await server.call('PUT', path, ban), {
    status: 403,
    body: {
      error_code: 'insufficient_scope',
      msg: 'The API key or access token lacks the scope users:write',
    },
  });
  const by = { actor_id: reader.id, actor_kind: 'api_key', actor_username: 'reporting' };
  t.match(await audit(server, `actor_id=${reader.id}`), [
    {
      payload: {
        ...by,
        actor_name: /^reporting \(…\w{4}\)$/,
        action: 'admin_request_denied',
        traits: { method: 'PUT', path: '/admin/users/:user_id', scope: 'users:write' },
      },
      ip_address: '127.0.0.1',
    },
  ]);
  for (let attempt = 0; attempt < 30; attempt++) await server.call('PUT', path, ban);
  t.equal((await audit(server, 'action=admin_request_denied&per_page=100')).length, 20, 'bounded');

  const support = await newKey(server, ['users:write'], { name: 'support' });
  t.equal((await server.call('PUT', path, { ...ban, token: support.key })).status, 200);
  t.match(await audit(server, `kind=api_key&action=user_modified`), [
    {
      payload: {
        actor_id: support.id,
        actor_username: 'support',
        traits: { user_id: userId, changed: ['banned_until'], changes: { banned_until: { old: null } } },
      },
    },
  ]);
  t.equal((await server.call('GET', path, { token: support.key })).status, 200, 'write includes read');
});

t.test('a key cannot give itself or another key more than it has', async (t) => {
  const server = await start(t);
  const powerful = await newKey(server, ['keys:write', 'users:write']);
  const writer = await newKey(server, ['keys:write']);
  const call = (method: string, path: string, body?: object) =>
    server.call(method, path, { token: writer.key, ...(body && { body }) });
  const lacks = (scope: string) => ({
    status: 403,
    body: { error_code: 'insufficient_scope', msg: `The API key or access token lacks the scope ${scope}` },
  });
  const more = { name: 'more', admin_scopes: ['keys:write', 'users:read'] };
  t.match(await call('POST', '/admin/api-keys', more), lacks('users:read'));
  const itself = { status: 403, body: { error_code: 'insufficient_scope' } };
  t.match(await call('PUT', `/admin/api-keys/${writer.id}`, more), itself);
  t.match(await call('PUT', `/admin/api-keys/${powerful.id}`, { name: 'mine' }), lacks('users:write'));
  t.match(await call('DELETE', `/admin/api-keys/${powerful.id}`), lacks('users:write'));
  t.match(await call('POST', `/admin/api-keys/${powerful.id}/rotate`), lacks('users:write'));
  const digest = createHash('sha256').update('known').digest('hex');
  const imported = await server.call('POST', '/admin/api-keys/import', {
    token: writer.key,
    body: `${JSON.stringify({ digest, name: 'imported', admin_scopes: ['users:write'] })}\n`,
    headers: { 'content-type': 'application/x-ndjson' },
  });
  t.match(imported, { status: 200, body: { imported: 0, errors: [{ code: 'insufficient_scope' }] } });
  t.equal(
    (await call('POST', '/admin/api-keys', { name: 'same', admin_scopes: ['keys:write'] })).status,
    201,
  );
  t.equal((await call('POST', '/admin/api-keys', { name: 'customer' })).status, 201);
  t.match(await audit(server, `actor_id=${writer.id}&action=api_key_created`), { length: 2 });
});

t.test('a key does not become an administrator at the gateway, or widen itself', async (t) => {
  const server = await start(t);
  const writer = await newKey(server, ['keys:write']);
  const root = await signUp(server, { email: 'root@example.com' });
  await server.call('PUT', `/admin/users/${root.userId}`, { token, body: { role: 'supabase_admin' } });
  const call = (method: string, path: string, body?: object) =>
    server.call(method, path, { token: writer.key, ...(body && { body }) });
  const refused = { status: 403, body: { error_code: 'insufficient_scope' } };
  const owner = { user_id: root.userId };
  t.match(await call('POST', '/admin/api-keys', { name: 'a', role: 'supabase_admin' }), refused);
  t.match(await call('POST', '/admin/api-keys', { name: 'a', owner }), refused);
  const own = await server.call('POST', '/admin/api-keys', { token, body: { name: 'root', owner } });
  t.match(await call('POST', `/admin/api-keys/${own.body.id}/rotate`), refused);
  t.match(await call('PUT', `/admin/api-keys/${own.body.id}`, { name: 'b' }), refused);
  const lines = [{ role: 'supabase_admin' }, { owner }, {}].map((more, index) =>
    JSON.stringify({ digest: createHash('sha256').update(`${index}`).digest('hex'), name: 'a', ...more }),
  );
  const imported = await server.call('POST', '/admin/api-keys/import', {
    token: writer.key,
    body: `${lines.join('\n')}\n`,
    headers: { 'content-type': 'application/x-ndjson' },
  });
  const code = 'insufficient_scope';
  const errors = [
    { line: 1, code },
    { line: 2, code },
  ];
  t.match(imported, { status: 200, body: { imported: 1, failed: 2, errors } });

  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const body = { name: 'short', admin_scopes: ['keys:write'], expires_at, allowed_networks: ['127.0.0.0/8'] };
  const short = await server.call('POST', '/admin/api-keys', { token, body });
  const byShort = (method: string, path: string, given?: object) =>
    server.call(method, path, { token: String(short.body.key), ...(given && { body: given }) });
  t.match(await byShort('PUT', `/admin/api-keys/${short.body.id}`, { expires_at: '' }), refused);
  t.match(await byShort('POST', `/admin/api-keys/${short.body.id}/rotate`), refused);
  for (const { name, ...wider } of [
    { ...body, expires_at: '' },
    { ...body, allowed_networks: [] },
    { ...body, allowed_networks: ['0.0.0.0/0'] },
  ])
    t.match(await byShort('POST', '/admin/api-keys', { name, ...wider }), refused, JSON.stringify(wider));
  t.match(await byShort('POST', '/admin/api-keys', body), { status: 201 });
});

t.test('a key does not reach administrators, or make them', async (t) => {
  const server = await start(t);
  const { key } = await newKey(server, ['users:write']);
  const root = await signUp(server, { email: 'root@example.com' });
  const { userId } = await signUp(server);
  const role = 'supabase_admin';
  await server.call('PUT', `/admin/users/${root.userId}`, { token, body: { role } });
  const refused = { status: 403, body: { error_code: 'insufficient_scope' } };
  const call = (method: string, path: string, body: object) =>
    server.call(method, path, { token: key, body });
  const sessions = `/admin/users/${root.userId}/sessions`;
  const { body: listed } = await server.call('GET', sessions, { token });
  const { id } = Object(listed).sessions[0];
  for (const path of [sessions, `${sessions}/${id}`, `/admin/users/${root.userId}`])
    t.match(await server.call('DELETE', path, { token: key }), refused, path);
  t.match(await call('PUT', `/admin/users/${userId}`, { role }), refused);
  t.match(await call('POST', '/admin/users', { email: 'eve@example.com', role }), refused);
  t.match(await call('PUT', `/admin/users/${root.userId}`, { password: 'of the attacker' }), refused);
  t.match(
    await call('POST', '/admin/generate_link', { type: 'recovery', email: 'root@example.com' }),
    refused,
  );
  t.match(await call('POST', '/invite', { email: 'root@example.com' }), refused);
  const line = `${JSON.stringify({ email: 'eve@example.com', role })}\n`;
  const imported = await server.call('POST', '/admin/users/import', {
    token: key,
    body: line,
    headers: { 'content-type': 'application/x-ndjson' },
  });
  t.match(imported, {
    status: 200,
    body: { imported: 0, errors: [{ line: 1, code: 'insufficient_scope' }] },
  });
  t.equal((await call('PUT', `/admin/users/${userId}`, { role: 'editor' })).status, 200);
});

t.test('a key that ended, or is used from elsewhere, is rejected at once', async (t) => {
  const server = await start(t);
  const status = async ({ key }: Key, headers = {}) => {
    const answer = await server.call('GET', '/admin/users', { token: key, headers });
    return [answer.status, answer.body.error_code];
  };
  const key = await newKey(server, ['users:read']);
  t.same(await status(key), [200, undefined]);
  const used = async () => {
    const { body } = await server.call('GET', `/admin/api-keys/${key.id}`, { token });
    return body.last_used_at ?? undefined;
  };
  t.equal(await awaitUntil(used, { what: 'its last use' }), new Date(server.clock.nowMs()).toISOString());
  const header = await server.call('GET', '/admin/users', { headers: { 'x-api-key': key.key } });
  t.equal(header.status, 200);
  t.same(await status(key, { 'x-api-key': key.key }), [401, 'several_credentials']);
  await server.call('PUT', `/admin/api-keys/${key.id}`, { token, body: { disabled: true } });
  t.same(await status(key), [401, 'api_key_disabled']);
  await server.call('DELETE', `/admin/api-keys/${key.id}`, { token });
  t.same(await status(key), [401, 'invalid_api_key']);
  t.same(await status({ ...key, key: key.key.replace(/.$/, (last) => (last === '0' ? '1' : '0')) }), [
    401,
    'invalid_api_key',
  ]);
  const network = await newKey(server, ['users:read'], { allowed_networks: ['192.0.2.0/24'] });
  t.same(await status(network), [403, 'api_key_network_not_allowed']);
  const { userId } = await signUp(server);
  const owned = await newKey(server, ['users:read'], { owner: { user_id: userId } });
  t.same(await status(owned), [200, undefined]);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  t.same(await status(owned), [403, 'user_banned']);
  const expires_at = new Date(server.clock.nowMs() + 60_000).toISOString();
  const expiring = await newKey(server, ['users:read'], { expires_at });
  t.same(await status(expiring), [200, undefined]);
  server.clock.advance(60_000);
  t.same(await status(expiring), [401, 'api_key_expired']);
});

t.test('wrong keys count against the address, and keys that were right before are accepted', async (t) => {
  const server = await startAuthServer(t, {
    API_KEYS_ENABLED: 'true',
    RATE_LIMIT_API_KEYS: '3',
    RATE_LIMIT_HEADER: 'x-client',
  });
  const [used, unused] = [await newKey(server, ['users:read']), await newKey(server, ['users:read'])];
  const call = (key: string, client = 'a') =>
    server.call('GET', '/admin/users', { token: key, headers: { 'x-client': client } });
  t.match(await call(used.key), { status: 200 });
  const wrong = (letter: string) => `tgk_${letter.repeat(49)}`;
  for (const letter of ['a', 'b', 'c']) t.match(await call(wrong(letter)), { status: 401 }, letter);
  const limited = { status: 429, body: { error_code: 'over_request_rate_limit' } };
  const refused = await call(wrong('d'));
  t.match(refused, limited);
  t.equal(refused.headers.get('retry-after'), '20');
  t.match(await call(unused.key), limited, 'no other key is read');
  t.match(await call(unused.key, 'b'), { status: 200 }, 'another client');
  t.match(await call(used.key), { status: 200 });
  t.match(await server.call('GET', '/admin/users', { token }), { status: 200 });
  server.clock.advance(20_000);
  t.match(await call(wrong('e')), { status: 401 }, 'one more after a while');
});

t.test('headers for keys may have any name', async (t) => {
  const server = await startAuthServer(t, {
    API_KEYS_ENABLED: 'true',
    EXT_AUTHZ_API_KEY_HEADERS: 'constructor,x-key',
  });
  const { accessToken } = await signUp(server);
  t.match(await server.call('GET', '/admin/users', { token }), { status: 200 });
  t.match(await checkKey(server, { authorization: `Bearer ${accessToken}` }), { status: 200 });
  const { key } = await newKey(server, ['users:read']);
  for (const name of ['constructor', 'x-key']) {
    t.match(await checkKey(server, { [name]: key }), { status: 200 }, name);
    t.match(await server.call('GET', '/admin/users', { headers: { [name]: key } }), { status: 200 }, name);
  }
});

t.test('a key with keys:verify learns name and admin scopes of a key, for the counter API', async (t) => {
  const server = await start(t);
  const limiter = await newKey(server, ['keys:verify']);
  const checked = await newKey(server, ['limits:read'], { name: 'dashboard' });
  const verify = (key: string) =>
    server.call('POST', '/admin/api-keys/verify', { token: limiter.key, body: { key } });
  t.match(await verify(checked.key), {
    status: 200,
    body: { valid: true, key: { id: checked.id, name: 'dashboard', admin_scopes: ['limits:read'] } },
  });
  await server.call('DELETE', `/admin/api-keys/${checked.id}`, { token });
  t.same((await verify(checked.key)).body, { valid: false, code: 'invalid_api_key' });
});

t.test('a route of administrators without a scope fails the start', (t) => {
  t.throws(
    () => requiredScope({ method: 'GET', url: '/admin/other', schema: {} }),
    /GET \/admin\/other has no scope/,
  );
  t.throws(() => requiredScope({ method: 'GET', url: '/user', schema: {} }), /has no scope/);
  t.equal(requiredScope({ method: 'PUT', url: '/admin/users/:user_id', schema: {} }), 'users:write');
  t.end();
});

t.test('the token of the settings checks credentials, and does nothing else', async (t) => {
  const verifier = 'of-the-limiter-and-the-xds-server';
  const server = await start(t, { ADMIN_VERIFIER_TOKEN: verifier });
  const verify = (by: string) =>
    server.call('POST', '/admin/credentials/verify', { token: by, body: { credential: token } });
  t.match(await verify(verifier), { status: 200, body: { valid: true, code: 'ok' } });
  t.match(await verify(verifier.toUpperCase()), { status: 403, body: { error_code: 'bad_jwt' } });
  const users = await server.call('GET', '/admin/users', { token: verifier });
  t.match(users, { status: 403, body: { error_code: 'insufficient_scope' } });
});

t.test('another service checks the credentials that administrators send it', async (t) => {
  const server = await start(t);
  const verifier = await newKey(server, ['keys:verify']);
  const verify = async (credential: string, by = verifier.key, address?: string) => {
    const body = { credential, ...(address && { address }) };
    return (await server.call('POST', '/admin/credentials/verify', { token: by, body })).body;
  };
  const reader = await newKey(server, ['limits:read'], { allowed_networks: ['10.0.0.0/8'] });
  t.same(await verify(reader.key, verifier.key, '10.1.2.3'), {
    valid: true,
    code: 'ok',
    administrator: {
      kind: 'api_key',
      id: reader.id,
      name: 'key limits:read',
      admin_scopes: ['limits:read'],
    },
  });
  const refused = (code: string) => ({ valid: false, code });
  t.same(await verify(reader.key, verifier.key, '192.0.2.1'), refused('api_key_network_not_allowed'));
  t.same(await verify(token), {
    ...{ valid: true, code: 'ok' },
    administrator: {
      kind: 'service_token',
      id: '1234567890',
      name: 'root@example.com',
      admin_scopes: adminScopes,
    },
  });

  const { accessToken, userId } = await signUp(server);
  t.same(await verify(accessToken), refused('not_admin'));
  const setRole = (role: string) => server.call('PUT', `/admin/users/${userId}`, { token, body: { role } });
  const signIn = async (): Promise<string> => {
    const body = { email: 'ada@example.com', password: 'correct horse' };
    const answer = await server.call('POST', '/token?grant_type=password', { body });
    return String(answer.body.access_token);
  };
  await setRole('supabase_admin');
  t.same(await verify(accessToken), refused('not_admin'), 'the token is older than the role');
  const first = await signIn();
  const person = { kind: 'administrator', id: userId, name: 'ada@example.com', admin_scopes: adminScopes };
  t.same(await verify(first), { valid: true, code: 'ok', administrator: person });
  await server.call('POST', '/logout?scope=local', { token: first });
  t.same(await verify(first), refused('session_not_found'));
  const second = await signIn();
  await setRole('authenticated');
  t.same(await verify(second), refused('not_admin'), 'the role is that of now');
  await setRole('supabase_admin');
  const third = await signIn();
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  t.same(await verify(third), refused('user_banned'));
  for (const text of [`${third}x`, 'a.b.c', '..', 'tgk_x.y.z'])
    t.match(await verify(text), { valid: false }, text);
  server.clock.advance(3_601_000);
  t.same(await verify(third), refused('bad_jwt'));
});
