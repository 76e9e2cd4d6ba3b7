// Providers that administrators add.
import { createHash } from 'node:crypto';
import { createServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { AuthAdminApi, AuthClient } from '@supabase/auth-js';
import { makeCertificates } from '@tollgate/testkit/certificates';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { forum } from '../helpers/custom-providers.ts';
import { oidcUser, startOidcServer } from '../helpers/oidc-server.ts';
import { apiUrl, land, siteUrl } from '../helpers/provider-sign-in.ts';

const { server: certificate, ca } = makeCertificates();
setDefaultCACertificates([...getCACertificates('default'), ca.cert]);

const token = adminToken();
const secret = 'the secret of the client';
const oauth2 = { ...forum, client_secret: secret } as const;

function startIssuer(t: Test) {
  const client = {
    client_id: 'app',
    client_secret: secret,
    redirect_uris: [`${apiUrl}/callback`],
    token_endpoint_auth_method: 'client_secret_post',
  } as const;
  return startOidcServer(t, client, certificate);
}

function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  return startAuthServer(t, { CUSTOM_OAUTH_PRIVATE_HOSTS: 'localhost', ...variables });
}

function adminOf({ url }: AuthServer) {
  return new AuthAdminApi({ url, headers: { Authorization: `Bearer ${token}` } }).customProviders;
}

async function signIn({ url }: Pick<AuthServer, 'url'>) {
  const browser = new Browser({ [apiUrl]: url });
  return land(await browser.visit(`${apiUrl}/authorize?provider=custom:shop`, siteUrl));
}

function create(server: AuthServer, body: unknown) {
  return server.call('POST', '/admin/custom-providers', { token, body });
}

t.test('added provider is found by discovery, and users sign in with it on all replicas', async (t) => {
  const key = Buffer.alloc(32, 7).toString('base64url');
  const server = await start(t, {
    SECURITY_DB_ENCRYPTION_ENCRYPT: 'true',
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID: 'key-1',
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY: key,
  });
  const replica = await start(t, {
    DB_DATABASE_URL: server.databaseUrl,
    SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS: `key-1:${key}`,
  });
  const issuer = await startIssuer(t);
  const admin = adminOf(server);
  const created = await admin.createProvider({
    provider_type: 'oidc',
    identifier: 'custom:shop',
    name: 'Shop',
    client_id: 'app',
    client_secret: secret,
    issuer,
    custom_claims_allowlist: ['email_verified', 'missing'],
  });
  t.match(created, {
    error: null,
    data: {
      id: /^[0-9a-f-]{36}$/,
      identifier: 'custom:shop',
      scopes: ['openid', 'email', 'profile'],
      pkce_enabled: true,
      enabled: true,
      discovery_document: { issuer, token_endpoint: `${issuer}/token` },
      created_at: /Z$/,
    },
  });
  t.notMatch(JSON.stringify(created), secret);

  for (const at of [server, replica]) {
    const landed = await signIn(at);
    t.ok(landed.fragment.access_token, landed.url.search);
    const { body } = await at.call('GET', '/user', { token: String(landed.fragment.access_token) });
    t.match(body, {
      email: oidcUser.email,
      app_metadata: { provider: 'custom:shop' },
      identities: [{ provider: 'custom:shop', identity_data: { custom_claims: { email_verified: true } } }],
    });
    t.notMatch(body, { identities: [{ identity_data: { custom_claims: { missing: {} } } }] });
  }

  t.match(await admin.updateProvider('custom:shop', { enabled: false }), { data: { enabled: false } });
  t.match(await replica.call('GET', '/authorize?provider=custom:shop'), { status: 400 });
  await admin.updateProvider('custom:shop', { enabled: true, client_secret: 'another secret' });
  t.match((await signIn(replica)).query, { error: 'server_error' }, 'the provider rejects the new secret');
  t.match(await admin.listProviders({ type: 'oidc' }), {
    data: { providers: [{ identifier: 'custom:shop' }] },
  });
  t.match(await admin.listProviders({ type: 'oauth2' }), { data: { providers: { length: 0 } } });

  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const [stored] = await sql`select client_secret from auth.custom_oauth_providers`;
  t.match(JSON.parse(String(stored?.client_secret)), { key_id: 'key-1', alg: 'aes-gcm-hkdf' });

  t.same(await admin.deleteProvider('custom:shop'), { data: null, error: null });
  t.match((await admin.getProvider('custom:shop')).error, { code: 'custom_provider_not_found', status: 404 });
  t.match(await replica.call('GET', '/authorize?provider=custom:shop'), {
    body: { msg: 'Unsupported provider: Provider custom:shop could not be found' },
  });
  const audit = await server.call('GET', '/admin/audit?query=type:provider', { token });
  // Parsed boundary: entries of the audit log.
  const entries = JSON.parse(audit.text) as { payload: { action: string; traits: unknown } }[];
  t.same(
    new Set(entries.map(({ payload }) => payload.action)),
    new Set(['custom_provider_created', 'custom_provider_updated', 'custom_provider_deleted']),
  );
  t.match(entries[0]?.payload.traits, { provider: 'custom:shop' });
  t.notMatch(server.logs(), secret);
});

t.test('ID token for a further client id is accepted without an access token', async (t) => {
  const server = await start(t);
  const issuer = await startIssuer(t);
  await create(server, {
    ...{ provider_type: 'oidc', identifier: 'custom:shop', name: 'Shop', client_id: 'web', issuer },
    ...{
      client_secret: secret,
      acceptable_client_ids: ['app'],
      skip_nonce_check: true,
      email_optional: true,
    },
  });
  const idToken = await getIdToken(issuer);
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: false });
  const { data, error } = await client.signInWithIdToken({ provider: 'custom:shop', token: idToken });
  t.equal(error, null);
  t.match(data.user?.identities, [{ provider: 'custom:shop', id: oidcUser.sub }]);
});

/** An ID token for the client `app`. */
async function getIdToken(issuer: string): Promise<string> {
  const verifier = 'v'.repeat(43);
  const query = new URLSearchParams({
    ...{ client_id: 'app', response_type: 'code', scope: 'openid email', redirect_uri: `${apiUrl}/callback` },
    ...{ code_challenge_method: 'S256', nonce: 'n' },
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  });
  const landed = await new Browser({}).visit(`${issuer}/auth?${query}`, `${apiUrl}/callback`);
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      ...{
        grant_type: 'authorization_code',
        code: landed.searchParams.get('code') ?? '',
        code_verifier: verifier,
      },
      ...{ redirect_uri: `${apiUrl}/callback`, client_id: 'app', client_secret: secret },
    }),
  });
  // Parsed boundary: a token response.
  return ((await response.json()) as { id_token: string }).id_token;
}

t.test('invalid providers are rejected with the reason', async (t) => {
  const server = await start(t, { CUSTOM_OAUTH_MAX_PROVIDERS: '1' });
  const oidc = { ...oauth2, provider_type: 'oidc', issuer: 'https://localhost:9' };
  for (const [change, msg] of [
    [{ provider_type: 'saml' }, "provider_type must be either 'oauth2' or 'oidc'"],
    [{ identifier: 'forum' }, /must start with 'custom:' prefix/],
    [{ identifier: 'custom:A' }, /at most 50 lower-case letters/],
    [{ name: '' }, 'name is required for oauth2 providers'],
    [{ name: 'n'.repeat(101) }, 'name is longer than 100 characters'],
    [{ client_secret: '' }, /^client_secret is required/],
    [{ userinfo_url: '' }, /^userinfo_url is required/],
    [{ token_url: 'http://forum.example/token' }, /^token_url cannot be used: it is not an https URL/],
    [{ token_url: 'https://169.254.169.254/token' }, /^token_url cannot be used: .* is not public/],
    [{ token_url: 'https://10.1.2.3/token' }, /is not public/],
    [{ userinfo_url: 'https://a:b@forum.example/' }, /it has a user or password/],
    [{ authorization_params: { state: 'x' } }, 'Cannot override reserved OAuth parameter: state'],
    [{ authorization_params: { prompt: 1 } }, 'Authorization parameter "prompt" must be a string'],
    [{ attribute_mapping: { role: 'groups' } }, 'Cannot map to protected system field: role'],
    [{ custom_claims_allowlist: [' '] }, /^custom_claims_allowlist entries must be non-empty/],
    [{ ...oidc, issuer: '' }, 'issuer is required for oidc providers'],
    [oidc, /^OIDC discovery failed: /],
    [{ ...oidc, issuer: 'https://127.0.0.1:9' }, /^issuer cannot be used: .* is not public/],
  ] as const)
    t.match(
      await create(server, { ...oauth2, ...change }),
      { status: 400, body: { error_code: 'validation_failed', msg } },
      JSON.stringify(change),
    );
  const own = {
    id: '11111111-2222-4333-8444-555555555555',
    created_at: '2020-01-01',
    cached_discovery: { a: 1 },
  };
  const { body } = await create(server, { ...oauth2, ...own, issuer: 'https://ignored.example' });
  t.match(body, { identifier: 'custom:forum', scopes: [], token_url: oauth2.token_url });
  t.notOk(['discovery_document', 'issuer', 'client_secret'].some((member) => member in body));
  t.not(body.id, own.id);
  t.match(await create(server, oauth2), { status: 400, body: { error_code: 'conflict' } });
  t.match(await create(server, { ...oauth2, identifier: 'custom:other' }), {
    status: 400,
    body: { error_code: 'over_custom_provider_quota' },
  });
  const change = { identifier: 'custom:x', provider_type: 'oidc', token_url: 'https://10.0.0.1/' };
  const path = '/admin/custom-providers/custom:forum';
  t.match(await server.call('PUT', path, { token, body: change }), {
    status: 400,
    body: { msg: /^token_url/ },
  });
  const unknown = await server.call('PUT', '/admin/custom-providers/custom:x', { token, body: {} });
  t.match(unknown, { status: 404, body: { error_code: 'custom_provider_not_found' } });
  t.match(await server.call('GET', '/admin/custom-providers?type=x', { token }), { status: 400 });
});

t.test('metadata of another issuer, and metadata without keys, are rejected', async (t) => {
  const server = await start(t);
  let metadata = {};
  const issuer = createServer(certificate, (_request, response) => response.end(JSON.stringify(metadata)));
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
  t.teardown(() => issuer.close());
  const address = issuer.address();
  const url = `https://localhost:${typeof address === 'object' ? address?.port : ''}`;
  const body = { ...oauth2, provider_type: 'oidc', issuer: url, discovery_url: `${url}/somewhere` };
  metadata = { issuer: 'https://other.example' };
  t.match(await create(server, body), { status: 400, body: { msg: /^OIDC discovery failed: / } });
  metadata = { issuer: url, authorization_endpoint: `${url}/auth` };
  t.match(await create(server, body), {
    status: 400,
    body: { msg: 'OIDC discovery document is missing required fields: token_endpoint, jwks_uri' },
  });
  metadata = { ...metadata, token_endpoint: `${url}/token`, jwks_uri: `${url}/keys` };
  t.match(await create(server, body), { status: 201, body: { discovery_url: `${url}/somewhere` } });
  const check = async () =>
    (await server.call('POST', '/admin/custom-providers/custom:forum/check', { token })).body;
  t.match(await check(), { ok: true, discovery_document: { token_endpoint: `${url}/token` } });
  metadata = { issuer: 'https://other.example' };
  t.match(await check(), { ok: false, problem: /^OIDC discovery failed: / });
});

t.test('names with a private address are rejected, unless they are configured', async (t) => {
  const server = await start(t, { CUSTOM_OAUTH_PRIVATE_HOSTS: '' });
  const oidc = { ...oauth2, provider_type: 'oidc', issuer: 'https://localhost:9' };
  for (const [change, msg] of [
    [oidc, /^issuer cannot be used: localhost has the address .*, which is not public/],
    [{ token_url: 'https://localhost/token' }, /^token_url cannot be used: localhost .* is not public/],
    [{ userinfo_url: 'https://LOCALHOST:8443/me' }, /^userinfo_url cannot be used: .* is not public/],
    [{ token_url: 'https://idp.localhost/token' }, /^token_url cannot be used: .* is not public/],
    [{ token_url: 'http://localhost/token' }, /^token_url cannot be used: it is not an https URL/],
  ] as const)
    t.match(await create(server, { ...oauth2, ...change }), { status: 400, body: { msg } }, String(msg));
  const configured = await start(t, { CUSTOM_OAUTH_PRIVATE_HOSTS: 'LocalHost' });
  t.match(await create(configured, { ...oauth2, token_url: 'https://localhost/token' }), { status: 201 });
  const plain = { ...oauth2, identifier: 'custom:plain', token_url: 'http://localhost/token' };
  const msg = /it is not an https URL/;
  t.match(await create(configured, plain), { status: 400, body: { msg } }, 'GoTrue rejects the row');
});

t.test('disabled feature: no provider can be added, and none is used', async (t) => {
  const server = await start(t);
  t.equal((await create(server, oauth2)).status, 201);
  const disabled = await start(t, { CUSTOM_OAUTH_ENABLED: 'false', DB_DATABASE_URL: server.databaseUrl });
  const notFound = {
    status: 404,
    body: { error_code: 'feature_disabled', msg: /set SVC_CUSTOM_OAUTH_ENABLED$/ },
  };
  t.match(await create(disabled, oauth2), notFound);
  const path = '/admin/custom-providers';
  for (const [method, at] of [
    ['GET', path],
    ['GET', `${path}/custom:forum`],
    ['PUT', `${path}/custom:forum`],
    ['DELETE', `${path}/custom:forum`],
  ] as const) {
    const body = method === 'PUT' ? { enabled: false } : undefined;
    t.match(await disabled.call(method, at, { token, body }), notFound, `${method} ${at}`);
  }
  t.match(await disabled.call('GET', '/authorize?provider=custom:forum'), { status: 400 });
  t.equal((await server.call('GET', '/authorize?provider=custom:forum')).status, 302);
});
