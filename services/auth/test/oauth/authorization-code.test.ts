// From a client to a token of a user: authorization request, consent, code and tokens.
import { createHash } from 'node:crypto';
import { AuthClient } from '@supabase/auth-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose';
import * as openid from 'openid-client';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import {
  applicationUri,
  authorizationServer,
  authorize,
  createApplication,
  redeem,
  requestToken,
} from '../helpers/oauth-clients.ts';
import { privateKeys } from '../helpers/signing-keys.ts';

/** The issuer of test servers. Requests to it go to the port of the server. */
const issuer = 'http://localhost:9999';

function start(t: Test, variables: Readonly<Record<string, string>> = {}): Promise<AuthServer> {
  return startAuthServer(t, { ...authorizationServer, JWT_KEYS: privateKeys, ...variables });
}

function authJs(server: AuthServer) {
  return new AuthClient({ url: server.url, autoRefreshToken: false, storageKey: server.url });
}

/** A client that knows nothing but the issuer, its id and its secret. */
function discover(
  server: AuthServer,
  id: string,
  secret?: string | undefined,
): Promise<openid.Configuration> {
  const options = {
    execute: [openid.allowInsecureRequests],
    [openid.customFetch]: (url: string, init: object) => fetch(url.replace(issuer, server.url), init),
  };
  return openid.discovery(new URL(issuer), id, secret, secret ? undefined : openid.None(), options);
}

t.test('openid-client signs a user in, with auth-js on the page that asks for consent', async (t) => {
  const server = await start(t);
  const page = authJs(server);
  await page.signUp({
    email: 'ada@example.com',
    password: 'correct horse',
    options: { data: { full_name: 'Ada Lovelace' } },
  });
  const admin = new AuthClient({
    url: server.url,
    headers: { authorization: `Bearer ${adminToken()}` },
    persistSession: false,
  });
  const created = await admin.admin.oauth.createClient({
    client_name: 'Planner',
    client_uri: 'https://app.example.org',
    redirect_uris: [applicationUri],
  });
  t.equal(created.error, null);
  const { client_id: id = '', client_secret: secret } = created.data ?? {};
  const config = await discover(server, id, secret);
  const parameters = {
    redirect_uri: applicationUri,
    scope: 'openid email profile',
    state: 'a state',
    nonce: 'a nonce',
    code_challenge: await openid.calculatePKCECodeChallenge('a'.repeat(43)),
    code_challenge_method: 'S256',
  };
  const url = openid.buildAuthorizationUrl(config, parameters);
  const opened = await fetch(String(url).replace(issuer, server.url), { redirect: 'manual' });
  t.equal(opened.status, 302);
  t.equal(opened.headers.get('referrer-policy'), 'no-referrer');
  const location = new URL(opened.headers.get('location') ?? '');
  t.equal(`${location.origin}${location.pathname}`, 'https://example.com/oauth/consent');
  const authorizationId = location.searchParams.get('authorization_id') ?? '';

  const details = await page.oauth.getAuthorizationDetails(authorizationId);
  t.match(details.data, {
    authorization_id: authorizationId,
    redirect_uri: applicationUri,
    client: { id, name: 'Planner', uri: 'https://app.example.org', logo_uri: '' },
    user: { email: 'ada@example.com' },
    scope: 'openid email profile',
  });
  const approved = await page.oauth.approveAuthorization(authorizationId, { skipBrowserRedirect: true });
  const callback = new URL(approved.data?.redirect_url ?? '');
  t.equal(callback.searchParams.get('iss'), issuer);

  const checks = { pkceCodeVerifier: 'a'.repeat(43), expectedState: 'a state', expectedNonce: 'a nonce' };
  const tokens = await openid.authorizationCodeGrant(config, callback, checks);
  t.match(tokens.claims(), {
    iss: issuer,
    aud: id,
    email: 'ada@example.com',
    email_verified: true,
    name: 'Ada Lovelace',
    nonce: 'a nonce',
    auth_time: Number,
  });
  const { user } = (await page.getUser()).data;
  const claims = decodeJwt(tokens.access_token);
  t.match(claims, { sub: user?.id, client_id: id, scope: parameters.scope, role: 'authenticated' });
  t.match(claims.amr, [{ method: 'oauth_provider/authorization_code' }]);
  const { body: keys } = await server.call('GET', '/.well-known/jwks.json');
  await jwtVerify(tokens.id_token ?? '', createLocalJWKSet(keys as unknown as JSONWebKeySet), {
    audience: id,
  });

  const info = await openid.fetchUserInfo(config, tokens.access_token, user?.id ?? '');
  t.match(info, { email: 'ada@example.com', name: 'Ada Lovelace' });
  t.notOk('phone' in info, 'a claim of a scope that the client does not have');

  const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '');
  t.equal(refreshed.scope, parameters.scope);
  t.not(refreshed.refresh_token, tokens.refresh_token);
  t.match(decodeJwt(refreshed.access_token), { client_id: id, session_id: claims.session_id });

  t.match((await page.oauth.listGrants()).data, [
    { client: { id, name: 'Planner' }, scopes: ['openid', 'email', 'profile'] },
  ]);
  t.equal((await page.oauth.revokeGrant({ clientId: id })).error, null);
  await t.rejects(openid.refreshTokenGrant(config, refreshed.refresh_token ?? ''), {
    message: 'server responded with an error in the response body',
  });
  t.strictSame((await page.oauth.listGrants()).data, []);
});

t.test('a second request within the consent is approved without a question', async (t) => {
  const server = await start(t);
  const page = authJs(server);
  await page.signUp({ email: 'ada@example.com', password: 'correct horse' });
  const client = await createApplication(server, { client_type: 'public' });
  const config = await discover(server, client.client_id);
  const ask = async (scope: string) => {
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: applicationUri,
      scope,
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'plain',
    });
    const opened = await fetch(String(url).replace(issuer, server.url), { redirect: 'manual' });
    return new URL(opened.headers.get('location') ?? '').searchParams.get('authorization_id') ?? '';
  };
  const first = await ask('email phone');
  await page.oauth.getAuthorizationDetails(first);
  await page.oauth.approveAuthorization(first, { skipBrowserRedirect: true });

  const narrower = await page.oauth.getAuthorizationDetails(await ask('phone'));
  const redirect = narrower.data && 'redirect_url' in narrower.data ? narrower.data.redirect_url : '';
  const tokens = await openid.authorizationCodeGrant(config, new URL(redirect), {
    pkceCodeVerifier: 'a'.repeat(43),
  });
  t.equal(tokens.scope, 'phone', 'the scopes of the request, not of the consent');
  const wider = await page.oauth.getAuthorizationDetails(await ask('phone profile'));
  t.match(wider.data, { authorization_id: String, scope: 'phone profile' });
});

t.test('a resource is the audience of the access tokens, also of refreshed ones', async (t) => {
  const server = await start(t);
  const { accessToken } = await signUp(server);
  const client = await createApplication(server);
  const resource = 'https://mcp.example.com/v1';
  const request = { client_id: client.client_id, resource };
  const { body } = await redeem(server, client, await authorize(server, accessToken, request), { resource });
  t.equal(decodeJwt(String(body.access_token)).aud, resource);
  const { client_id, client_secret } = client;
  const refresh = (more: object) => {
    const form = { grant_type: 'refresh_token', client_id, client_secret, ...more };
    return requestToken(server, { ...form, refresh_token: String(body.refresh_token) });
  };
  const other = await refresh({ resource: 'https://other.example.com' });
  t.match(other, { status: 400, body: { error: 'invalid_target' } });
  const refreshed = await refresh({ resource });
  t.equal(decodeJwt(String(refreshed.body.access_token)).aud, resource, 'the token was not used up');

  const plain = await redeem(server, client, await authorize(server, accessToken, { client_id }));
  t.equal(decodeJwt(String(plain.body.access_token)).aud, decodeJwt(accessToken).aud);
});

t.test('a refresh issues an ID token, and an access token with fewer scopes if asked to', async (t) => {
  const server = await start(t);
  const { accessToken } = await signUp(server);
  const { amr, iat: signedInAt } = decodeJwt<{ amr: readonly object[] }>(accessToken);
  t.match(amr, [{ method: 'password' }]);
  server.clock.advance(60_000);
  const client = await createApplication(server);
  const { client_id, client_secret } = client;
  const request = { client_id, scope: 'openid email phone', nonce: 'n-0' };
  const code = await authorize(server, accessToken, request);
  server.clock.advance(60_000);
  const { body } = await redeem(server, client, code);
  const first = decodeJwt(String(body.id_token));
  const { session_id: sid } = decodeJwt(String(body.access_token));
  t.match(first, { auth_time: signedInAt, acr: 'aal1', amr: ['pwd'], nonce: 'n-0', sid });
  const hash = createHash('sha256').update(String(body.access_token)).digest().subarray(0, 16);
  t.equal(first.at_hash, hash.toString('base64url'));

  let { refresh_token: current } = body;
  const refresh = async (more: object) => {
    const form = { grant_type: 'refresh_token', refresh_token: String(current), client_id, client_secret };
    const answer = await requestToken(server, { ...form, ...more });
    current = answer.body.refresh_token ?? current;
    return answer;
  };
  server.clock.advance(60_000);
  const all = await refresh({});
  const { nonce, iat, ...second } = decodeJwt(String(all.body.id_token));
  const { iss, sub, aud, auth_time, acr } = first;
  t.match(second, { iss, sub, aud, auth_time, acr, sid });
  t.notOk(nonce, 'OpenID Connect Core §12.2');
  t.ok(Number(iat) > Number(first.iat));

  t.match(await refresh({ scope: 'email profile' }), { status: 400, body: { error: 'invalid_scope' } });
  const fewer = await refresh({ scope: 'email' });
  t.match(fewer, { status: 200, body: { scope: 'email' } }, 'the failure did not use up the token');
  t.notOk('id_token' in fewer.body);
  const token = String(fewer.body.access_token);
  t.equal(decodeJwt(token).scope, 'email');
  const info = await server.call('GET', '/oauth/userinfo', { token });
  t.match(info.body, { email: 'ada@example.com' });
  t.match(await refresh({}), { body: { scope: 'openid email phone' } }, 'the session keeps its scopes');
});

t.test('userinfo and ID tokens have the claims of the scopes, and no others', async (t) => {
  const server = await start(t);
  const data = { full_name: 'Ada', user_name: 'ada', avatar_url: 'https://cdn.example/ada.png' };
  const user = await signUp(server, { data });
  await server.call('PUT', `/admin/users/${user.userId}`, {
    token: adminToken(),
    body: { phone: '491700000000', phone_confirm: true },
  });
  const client = await createApplication(server);
  const claims = {
    email: { email: 'ada@example.com', email_verified: true },
    profile: { name: 'Ada', preferred_username: 'ada', picture: data.avatar_url, updated_at: Number },
    phone: { phone: '491700000000', phone_verified: true, phone_number: '+491700000000' },
  };
  for (const [scope, expected] of Object.entries(claims)) {
    const request = { client_id: client.client_id, scope: `openid ${scope}` };
    const { body } = await redeem(server, client, await authorize(server, user.accessToken, request));
    const info = await server.call('GET', '/oauth/userinfo', { token: String(body.access_token) });
    t.match(info.body, { sub: user.userId, ...expected }, scope);
    t.match(decodeJwt(String(body.id_token)), { sub: user.userId, ...expected }, scope);
    t.equal('user_metadata' in info.body, scope === 'profile');
    const others = Object.entries(claims).filter(([name]) => name !== scope);
    for (const name of others.flatMap(([, members]) => Object.keys(members)))
      t.notOk(name in info.body, `${name} with ${scope}`);
  }
});

t.test('consents are events and in the audit log, with the client, and hooks see its tokens', async (t) => {
  const hook = await startHookServer(t);
  hook.answer((event) => ({
    body: event.claims ? { claims: { ...Object(event.claims), plan: 'pro' } } : {},
  }));
  const variables = hook.variables('CUSTOM_ACCESS_TOKEN');
  const server = await start(t, {
    ...variables,
    EVENT_WEBHOOK_URI: hook.url,
    EVENT_WEBHOOK_SECRETS: variables.HOOK_CUSTOM_ACCESS_TOKEN_SECRETS ?? '',
    EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1',
  });
  const { accessToken: token } = await signUp(server);
  const client = await createApplication(server);
  const { client_id } = client;
  const { body } = await redeem(server, client, await authorize(server, token, { client_id }));
  t.match(decodeJwt(String(body.access_token)), { client_id, plan: 'pro' });
  const called = hook.requests.map(({ event }) => event).findLast(({ claims }) => claims !== undefined);
  t.match(called, {
    claims: { client_id, scope: 'email' },
    authentication_method: 'oauth_provider/authorization_code',
  });
  await server.call('DELETE', `/user/oauth/grants?client_id=${client_id}`, { token });
  const events = () =>
    hook.requests.map(({ event }) => event).filter(({ type }) => /^oauth_grant/.test(String(type)));
  await awaitUntil(() => events().length === 2, { what: 'the events' });
  t.match(events(), [
    { type: 'oauth_grant.approved', data: { details: { client_id } } },
    { type: 'oauth_grant.revoked', data: { details: { client_id } } },
  ]);
  const { text } = await server.call('GET', '/admin/audit', { token: adminToken() });
  for (const action of ['oauth_grant_approved', 'oauth_grant_revoked'])
    t.match(
      // Parsed boundary: members that the test uses.
      (JSON.parse(text) as { payload: object }[])
        .map(({ payload }) => payload)
        .filter((payload) => Object.values(payload).includes(action)),
      [{ action, traits: { client_id } }],
    );
});
