// Clients that administrators manage.
import { AuthAdminApi } from '@supabase/auth-js';
import { exportJWK, generateKeyPair } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { createGotrueSchema, readGotrueSchema } from '../helpers/gotrue-schema.ts';
import { createMachine, machineToken, oauthServer, requestToken } from '../helpers/oauth-clients.ts';
import { emptyDatabase } from '../helpers/test-database.ts';

const path = '/admin/oauth/clients';
const token = adminToken();
const unknownId = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d';

function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  return startAuthServer(t, { ...oauthServer, ...variables });
}

t.test('auth.admin.oauth of auth-js manages clients', async (t) => {
  const server = await start(t);
  const { oauth } = new AuthAdminApi({ url: server.url, headers: { Authorization: `Bearer ${token}` } });
  const created = await oauth.createClient({
    client_name: 'Shop',
    client_uri: 'https://shop.example',
    redirect_uris: ['https://shop.example/callback', 'http://localhost:3000/cb', 'com.example.shop:/cb'],
  });
  t.equal(created.error, null);
  const id = created.data?.client_id ?? '';
  t.match(created.data, {
    client_id: /^[0-9a-f-]{36}$/,
    client_secret: /^[\w-]{43}$/,
    client_type: 'confidential',
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    registration_type: 'manual',
    client_name: 'Shop',
  });
  if (created.data === null) throw new Error('no client');
  const { client_secret: secret, ...shown } = created.data;
  t.same((await oauth.getClient(id)).data, shown, 'the secret is shown once');
  server.clock.advance(1_000);
  const other = await oauth.createClient({ client_name: 'App', redirect_uris: ['https://app.example/cb'] });
  const listed = await oauth.listClients();
  t.same(
    listed.data.clients.map(({ client_id }) => client_id),
    [other.data?.client_id, id],
    'newest first',
  );
  const second = await oauth.listClients({ page: 2, perPage: 1 });
  t.match(second.data, { clients: [{ client_id: id }], total: 2, lastPage: 2 });

  const updated = await oauth.updateClient(id, { client_name: 'Store', client_uri: '' });
  t.match(updated.data, { client_name: 'Store', client_uri: undefined, redirect_uris: shown.redirect_uris });
  const regenerated = await oauth.regenerateClientSecret(id);
  t.match(regenerated.data, { client_id: id, client_secret: /^[\w-]{43}$/ });
  t.not(regenerated.data?.client_secret, secret);
  t.same(await oauth.deleteClient(id), { data: null, error: null });
  t.match(await oauth.getClient(id), { error: { status: 404, code: 'oauth_client_not_found' } });
  t.match(await oauth.deleteClient(id), { error: { status: 404, code: 'oauth_client_not_found' } });
  t.equal((await oauth.listClients()).data.clients.length, 1);

  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const rows = await sql`select client_secret_hash, redirect_uris, grant_types, deleted_at is null as is_left
    from auth.oauth_clients where id = ${id}`;
  t.match(rows, [
    {
      client_secret_hash: /^[\w-]{43}$/,
      redirect_uris: 'https://shop.example/callback,http://localhost:3000/cb,com.example.shop:/cb',
      grant_types: 'authorization_code,refresh_token',
      is_left: false,
    },
  ]);
});

t.test('members of our own are kept, changed and removed', async (t) => {
  const server = await start(t);
  const own = {
    scopes: ['orders:read', 'orders:write'],
    audiences: ['https://orders.example'],
    plan: 'pro',
    role: 'reporter',
    limit: { requests_per_unit: 5, unit: 'minute' },
    org_id: unknownId,
  };
  const { client_id: id } = await createMachine(server, own);
  const one = `${path}/${id}`;
  t.match((await server.call('GET', one, { token })).body, { ...own, redirect_uris: [], response_types: [] });
  const change = { scopes: [], plan: '', limit: {}, disabled: true };
  const changed = await server.call('PUT', one, { token, body: change });
  t.match(changed.body, { role: 'reporter', audiences: own.audiences, org_id: unknownId, disabled: true });
  for (const member of ['scopes', 'plan', 'limit']) t.notOk(member in changed.body, member);
  t.same((await server.call('GET', one, { token })).body, changed.body);
});

const privateJwk = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', d: 'd' };
const invalid: Readonly<Record<string, readonly [members: object, message: RegExp]>> = {
  'no redirect URI': [{ redirect_uris: undefined, grant_types: undefined }, /redirect_uris is required/],
  'eleven redirect URIs': [{ redirect_uris: Array(11).fill('https://a.example') }, /cannot exceed 10/],
  'a relative redirect URI': [{ redirect_uris: ['/callback'] }, /not an absolute URI/],
  'a redirect URI with a fragment': [{ redirect_uris: ['https://a.example/#x'] }, /fragment/],
  'a redirect URI with a comma': [{ redirect_uris: ['https://a.example/?x=1,2'] }, /comma/],
  'a redirect URI with a control character': [{ redirect_uris: ['com.app:/\u0001'] }, /visible ASCII/],
  'a redirect URI with another alphabet': [
    { redirect_uris: ['https://a.example/\u00e9'] },
    /percent-encoded/,
  ],
  'a redirect URI with http': [{ redirect_uris: ['http://a.example'] }, /http is only allowed/],
  'a script as redirect URI': [{ redirect_uris: ['javascript:alert(1)'] }, /scheme javascript: is not/],
  'a data URI': [{ redirect_uris: ['data:text/html,x'] }, /comma|scheme data:/],
  'an unknown grant': [{ grant_types: ['password'] }, /must only contain/],
  'no grant': [{ grant_types: [] }, /cannot be empty/],
  'an unknown type': [{ client_type: 'secret' }, /client_type must be/],
  'an unknown method': [{ token_endpoint_auth_method: 'tls' }, /must be one of/],
  'a public client with a secret': [
    { client_type: 'public', token_endpoint_auth_method: 'client_secret_post' },
    /inconsistent/,
  ],
  'a public machine': [{ client_type: 'public' }, /a public client cannot have/],
  'a long name': [{ client_name: 'x'.repeat(1025) }, /client_name cannot exceed 1024/],
  'a logo that is no URL': [{ logo_uri: 'javascript:x' }, /logo_uri must be a valid URL/],
  'an admin role': [{ role: 'service_role' }, /clients are no administrators/],
  'a scope with a blank': [{ scopes: ['a b'] }, /scopes must be/],
  'an audience with a fragment': [{ audiences: ['https://a.example/#x'] }, /audiences must be/],
  'a relative audience': [{ audiences: ['orders'] }, /audiences must be/],
  'a limit of nothing': [{ limit: { requests_per_unit: 0, unit: 'day' } }, /limit cannot be used/],
  'an organization that is no id': [{ org_id: 'acme' }, /org_id must be an UUID/],
  'keys with a secret': [{ jwks: { keys: [] } }, /for private_key_jwt only/],
  'an assertion without keys': [{ token_endpoint_auth_method: 'private_key_jwt' }, /requires jwks/],
  'a private key': [
    { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [privateJwk] } },
    /has a private key/,
  ],
  'an empty key set': [
    { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } },
    /must have 1 to 10 keys/,
  ],
  'keys over http': [
    { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'http://a.example/jwks' },
    /not an https URL/,
  ],
  'keys of a private host': [
    { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://127.0.0.1/jwks' },
    /not public/,
  ],
  'keys of a metadata service': [
    { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://169.254.169.254/jwks' },
    /not public/,
  ],
};

t.test('clients that cannot be are rejected', async (t) => {
  const server = await start(t);
  for (const [name, [members, message]] of Object.entries(invalid)) {
    const body = { grant_types: ['client_credentials'], ...members };
    const answer = await server.call('POST', path, { token, body });
    t.match(answer, { status: 400, body: { error_code: 'validation_failed', msg: message } }, name);
  }
  t.same((await server.call('GET', path, { token })).body, { clients: [] });
});

t.test('updates that cannot be are rejected, and change nothing', async (t) => {
  const server = await start(t);
  const { client_id: id } = await createMachine(server);
  const one = `${path}/${id}`;
  const before = (await server.call('GET', one, { token })).body;
  for (const [body, message] of [
    [{}, /No fields provided/],
    [{ grant_types: ['authorization_code'] }, /redirect_uris is required/],
    [{ client_type: 'public' }, /cannot be changed/],
    [{ role: 'supabase_admin' }, /no administrators/],
  ] as const)
    t.match(await server.call('PUT', one, { token, body }), { status: 400, body: { msg: message } });
  t.same((await server.call('GET', one, { token })).body, before);

  const app = await server.call('POST', path, {
    token,
    body: { redirect_uris: ['https://a.example/cb'], token_endpoint_auth_method: 'none' },
  });
  t.match(app.body, { client_type: 'public', client_secret: undefined });
  t.match(await server.call('POST', `${path}/${app.body.client_id}/regenerate_secret`, { token }), {
    status: 400,
    body: { msg: 'Cannot regenerate secret for public client' },
  });
  const { publicKey } = await generateKeyPair('ES256');
  const signing = await createMachine(server, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [await exportJWK(publicKey)] },
  });
  t.equal(signing.client_secret, undefined);
  t.match(await server.call('POST', `${path}/${signing.client_id}/regenerate_secret`, { token }), {
    status: 400,
    body: { msg: /has no secret/ },
  });
});

/** Every endpoint of clients. */
const endpoints = (id: string): readonly (readonly [method: string, path: string, body?: object])[] => [
  ['GET', path],
  ['POST', path, { grant_types: ['client_credentials'] }],
  ['GET', `${path}/${id}`],
  ['PUT', `${path}/${id}`, { client_name: 'x' }],
  ['POST', `${path}/${id}/regenerate_secret`],
  ['DELETE', `${path}/${id}`],
];

t.test('each endpoint is for administrators only', async (t) => {
  const server = await start(t);
  const machine = await createMachine(server, { scopes: ['clients:write'] });
  const callers = {
    'no caller': [undefined, 401],
    'a user': [(await signUp(server)).accessToken, 403],
    'a client': [await machineToken(server, machine), 403],
    'a service with another role': [adminToken({ role: 'authenticated' }), 403],
  } as const;
  for (const [name, [caller, status]] of Object.entries(callers))
    for (const [method, url, body] of endpoints(machine.client_id)) {
      const answer = await server.call(method, url, {
        ...(caller && { token: caller }),
        ...(body && { body }),
      });
      t.equal(answer.status, status, `${name}: ${method} ${url}`);
    }
  for (const role of ['service_role', 'svc_admin', 'supabase_admin']) {
    const { client_id: id } = await createMachine(server);
    for (const [method, url, body] of endpoints(id)) {
      const answer = await server.call(method, url, { token: adminToken({ role }), ...(body && { body }) });
      t.match(String(answer.status), /^20[014]$/, `${role}: ${method} ${url}`);
    }
  }
});

t.test('unknown clients and malformed ids are 404', async (t) => {
  const server = await start(t);
  for (const [method, url, body] of endpoints(unknownId).slice(2))
    t.match(await server.call(method, url, { token, ...(body && { body }) }), {
      status: 404,
      body: { error_code: 'oauth_client_not_found' },
    });
  for (const [method, url, body] of endpoints('acme').slice(2))
    t.match(await server.call(method, url, { token, ...(body && { body }) }), {
      status: 404,
      body: { error_code: 'validation_failed' },
    });
});

t.test('without the OAuth server its routes are 404, and the metadata have the keys only', async (t) => {
  const server = await startAuthServer(t);
  const msg = /set SVC_OAUTH_SERVER_ENABLED$/;
  const disabled = { status: 404, body: { error_code: 'feature_disabled', msg } };
  for (const [method, url, body] of endpoints(unknownId))
    t.match(await server.call(method, url, { token, ...(body && { body }) }), disabled, `${method} ${url}`);
  t.match(await requestToken(server, { grant_type: 'client_credentials' }), disabled);
  t.match(await server.call('GET', '/.well-known/oauth-authorization-server'), disabled);
  const { body } = await server.call('GET', '/.well-known/openid-configuration');
  t.match(body, { issuer: 'http://localhost:9999', jwks_uri: 'http://localhost:9999/.well-known/jwks.json' });
  t.notOk('token_endpoint' in body);
});

t.test('clients register themselves where that is allowed, ten in five minutes', async (t) => {
  const register = (server: AuthServer, members: object = {}) =>
    server.call('POST', '/oauth/clients/register', {
      body: { client_name: 'App', redirect_uris: ['https://app.example/cb'], ...members },
      headers: { 'x-client': '192.0.2.1' },
    });
  const closed = { status: 403, body: { error_code: 'oauth_dynamic_client_registration_disabled' } };
  t.match(await register(await start(t)), closed);
  const server = await start(t, {
    OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    RATE_LIMIT_HEADER: 'x-client',
  });
  const { body } = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.equal(body.registration_endpoint, 'http://localhost:9999/oauth/clients/register');
  t.match(await register(server), {
    status: 201,
    body: { client_secret: /^[\w-]{43}$/, client_type: 'confidential', registration_type: 'dynamic' },
  });
  const open = await register(server, { token_endpoint_auth_method: 'none' });
  t.match(open, { status: 201, body: { client_type: 'public', client_secret: undefined } });
  for (let count = 2; count < 10; count++) t.equal((await register(server)).status, 201);
  t.match(await register(server), { status: 429, body: { error_code: 'over_request_rate_limit' } });
  server.clock.advance(5 * 60_000);
  t.equal((await register(server)).status, 201);
});

t.test('the metadata announce what exists', async (t) => {
  const server = await start(t);
  const { body, headers } = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.match(body, {
    issuer: 'http://localhost:9999',
    token_endpoint: 'http://localhost:9999/oauth/token',
    authorization_endpoint: 'http://localhost:9999/oauth/authorize',
    userinfo_endpoint: 'http://localhost:9999/oauth/userinfo',
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: [
      ...['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    ],
    // RFC 8414 §2 requires them with private_key_jwt.
    revocation_endpoint_auth_signing_alg_values_supported: Array,
    introspection_endpoint_auth_signing_alg_values_supported: Array,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256', 'plain'],
    authorization_response_iss_parameter_supported: true,
  });
  t.notOk('registration_endpoint' in body, 'dynamic registration is off');
  t.equal(headers.get('cache-control'), 'public, max-age=600');
  t.same((await server.call('GET', '/.well-known/openid-configuration')).body, body);
});

t.test('a schema that an earlier GoTrue made has no OAuth server', async (t) => {
  for (const date of ['2024-10', '2025-10'] as const) {
    const { url } = await emptyDatabase(t);
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    t.teardown(() => sql.end());
    await createGotrueSchema(sql, await readGotrueSchema(date));
    const database = { DB_DATABASE_URL: url };
    await t.rejects(start(t, database), {
      message: /needs the table oauth_clients of GoTrue since December/,
    });
    const server = await startAuthServer(t, database);
    t.equal((await server.call('GET', '/ready')).status, 200, date);
  }
});

async function auditOf(server: AuthServer) {
  const { text } = await server.call('GET', '/admin/audit', { token });
  // Parsed boundary: members that the test uses.
  return (JSON.parse(text) as { payload: { action: string; traits: object; log_type: string } }[])
    .map(({ payload: { action, traits, log_type: type } }) => ({ action, type, traits }))
    .filter(({ type }) => type === 'client')
    .toReversed();
}

t.test('changes are in the audit log, without secrets', async (t) => {
  const server = await start(t);
  const { client_id: id, client_secret: secret } = await createMachine(server, { plan: 'free' });
  // Entries are sorted by their time.
  server.clock.advance(1_000);
  await server.call('PUT', `${path}/${id}`, { token, body: { plan: 'pro', client_name: 'reports' } });
  server.clock.advance(1_000);
  const { body } = await server.call('POST', `${path}/${id}/regenerate_secret`, { token });
  server.clock.advance(1_000);
  await server.call('DELETE', `${path}/${id}`, { token });
  const named = { client_id: id, client_name: 'reports' };
  t.same(await auditOf(server), [
    { action: 'oauth_client_created', type: 'client', traits: named },
    {
      action: 'oauth_client_updated',
      type: 'client',
      traits: { ...named, changed: ['plan'], changes: { plan: { old: 'free', new: 'pro' } } },
    },
    { action: 'oauth_client_secret_regenerated', type: 'client', traits: named },
    { action: 'oauth_client_deleted', type: 'client', traits: named },
  ]);
  for (const text of [secret, String(body.client_secret)]) t.notOk(server.logs().includes(text));
});
