// Requests for access, codes and tokens in the hands of attackers, and at the same time.
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import {
  applicationUri,
  authorizationServer,
  authorize,
  createApplication,
  openAuthorize,
  pkce,
  redeem,
  redirectParameter,
  requestToken,
  startAuthorization,
} from '../helpers/oauth-clients.ts';
import { awaitWaiting } from '../helpers/waiting-statements.ts';

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, { ...authorizationServer, ...variables });
  const [client, user] = [await createApplication(server), await signUp(server)];
  return { server, client, user, request: { client_id: client.client_id } };
}

const invalidGrant = { status: 400, body: { error: 'invalid_grant' } };

function refresh(server: AuthServer, client: object, token: unknown) {
  return requestToken(server, { grant_type: 'refresh_token', refresh_token: String(token), ...client });
}

t.test('a wrong client or redirect URI is answered without a redirect', async (t) => {
  const { server, client, request } = await start(t);
  const near = ['', 'https://app.example.org/callback/', `${applicationUri}?a=b`, `${applicationUri}#`];
  for (const redirect_uri of [...near, 'https://app.example.org/CALLBACK', 'https://evil.example/callback']) {
    const { status, headers } = await openAuthorize(server, { ...request, redirect_uri });
    t.equal(status, 400, redirect_uri);
    t.equal(headers.get('location'), null);
  }
  for (const client_id of [undefined, 'x', client.client_id.replace(/^./, 'f').replace(/.$/, '0')])
    t.match(await openAuthorize(server, { client_id }), { status: 400 }, String(client_id));
  const twice = `/oauth/authorize?client_id=${client.client_id}&redirect_uri=${encodeURIComponent(applicationUri)}`;
  const repeated = await server.call('GET', `${twice}&redirect_uri=https%3A%2F%2Fevil.example`);
  t.equal(repeated.status, 400, 'two redirect URIs');
});

t.test('other errors are returned to the client, with state and issuer', async (t) => {
  const { server, request } = await start(t);
  const cases: Readonly<Record<string, readonly [error: string, parameters: object]>> = {
    'no response type': ['invalid_request', { response_type: undefined }],
    'another response type': ['unsupported_response_type', { response_type: 'token' }],
    'a response mode of the hosted page': ['invalid_request', { response_mode: 'form_post' }],
    'a request object': ['request_not_supported', { request: 'e30.e30.' }],
    'a request URI': ['request_uri_not_supported', { request_uri: 'https://app.example.org/r' }],
    'inline registration': ['registration_not_supported', { registration: '{}' }],
    'no PKCE': ['invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
    'no method of PKCE': ['invalid_request', { code_challenge_method: undefined }],
    'a short challenge': ['invalid_request', { code_challenge: 'short' }],
    'an unknown method': ['invalid_request', { code_challenge_method: 'S512' }],
    'an unknown scope': ['invalid_scope', { scope: 'email admin' }],
    'a relative resource': ['invalid_target', { resource: '/orders' }],
    'a resource with a fragment': ['invalid_target', { resource: 'https://api.example#a' }],
    'a resource with a query': ['invalid_target', { resource: 'https://api.example?a' }],
    'a long nonce': ['invalid_request', { nonce: 'n'.repeat(256) }],
  };
  for (const [name, [error, parameters]] of Object.entries(cases)) {
    const { status, headers } = await openAuthorize(server, { ...request, state: 'a&b', ...parameters });
    const location = headers.get('location') ?? '';
    t.equal(status, 302, name);
    t.ok(location.startsWith(`${applicationUri}?`), name);
    t.equal(redirectParameter(location, 'error'), error, name);
    t.equal(redirectParameter(location, 'state'), 'a&b', name);
    t.equal(redirectParameter(location, 'iss'), 'http://localhost:9999', name);
  }
  const one = new URLSearchParams({ ...request, redirect_uri: applicationUri, response_type: 'code' });
  for (const [name, error] of [
    ['resource', 'invalid_target'],
    ['scope', 'invalid_request'],
  ] as const) {
    const { headers } = await server.call(
      'GET',
      `/oauth/authorize?${one}&${name}=https://a.example&${name}=https://b.example`,
    );
    t.equal(redirectParameter(headers.get('location'), 'error'), error, `${name} twice`);
  }
});

t.test('without a page that asks for consent the client gets server_error', async (t) => {
  const { server, request } = await start(t, { OAUTH_SERVER_AUTHORIZATION_PATH: '' });
  const { headers } = await openAuthorize(server, request);
  t.equal(redirectParameter(headers.get('location'), 'error'), 'server_error');
});

t.test('a request belongs to the user who opens it first', async (t) => {
  const { server, user, request } = await start(t);
  const other = await signUp(server, { email: 'eve@example.com' });
  const path = `/oauth/authorizations/${await startAuthorization(server, request)}`;
  const approve = { token: other.accessToken, body: { action: 'approve' } };
  const unknown = { status: 404, body: { error_code: 'oauth_authorization_not_found' } };
  t.match(await server.call('POST', `${path}/consent`, approve), unknown, 'not opened');
  const elsewhere = { token: other.accessToken, headers: { origin: 'https://evil.example' } };
  t.match(await server.call('GET', path, elsewhere), { status: 400 }, 'a page elsewhere does not open it');
  t.match(await server.call('GET', path, { token: user.accessToken }), { status: 200 });
  t.match(await server.call('GET', path, { token: other.accessToken }), unknown);
  t.match(await server.call('POST', `${path}/consent`, approve), unknown);
  const origin = { token: user.accessToken, headers: { origin: 'https://evil.example' } };
  t.match(await server.call('GET', path, origin), { status: 400 }, 'another origin');
  const site = { token: user.accessToken, headers: { origin: 'https://example.com' } };
  t.match(await server.call('GET', path, site), { status: 200 });
  server.clock.advance(10 * 60_000);
  t.match(await server.call('GET', path, { token: user.accessToken }), unknown, 'expired');
});

t.test('one of many decisions counts', async (t) => {
  const { server, user, request } = await start(t);
  const path = `/oauth/authorizations/${await startAuthorization(server, request)}`;
  const { accessToken: token } = user;
  await server.call('GET', path, { token });
  const decisions = await Promise.all(
    ['approve', 'deny', 'approve', 'deny', 'approve'].map((action) =>
      server.call('POST', `${path}/consent`, { token, body: { action } }),
    ),
  );
  t.strictSame(decisions.map(({ status }) => status).toSorted(), [200, 400, 400, 400, 400]);
});

t.test('a refusal is returned to the client, and leaves no consent to revoke', async (t) => {
  const scope = { OAUTH_SERVER_DEFAULT_SCOPE: 'openid profile' };
  const { server, user, request } = await start(t, scope);
  const path = `/oauth/authorizations/${await startAuthorization(server, { ...request, state: 's' })}`;
  const { accessToken: token } = user;
  t.match((await server.call('GET', path, { token })).body, { scope: 'openid profile' }, 'by default');
  const { body } = await server.call('POST', `${path}/consent`, { token, body: { action: 'deny' } });
  t.equal(redirectParameter(body.redirect_url, 'error'), 'access_denied');
  t.equal(redirectParameter(body.redirect_url, 'state'), 's');
  t.match(await server.call('GET', path, { token }), { status: 400 }, 'decided');
  const revoked = await server.call('DELETE', `/user/oauth/grants?client_id=${request.client_id}`, { token });
  t.match(revoked, { status: 404, body: { error_code: 'oauth_consent_not_found' } });
});

t.test('of 20 exchanges of a code one succeeds, and its tokens end', async (t) => {
  const { server, client, user, request } = await start(t);
  const code = await authorize(server, user.accessToken, request);
  const answers = await Promise.all(Array.from({ length: 20 }, () => redeem(server, client, code)));
  const [won, ...others] = answers.toSorted((a, b) => a.status - b.status);
  t.equal(won?.status, 200);
  for (const answer of others) t.match(answer, invalidGrant);
  t.match(await refresh(server, client, won?.body.refresh_token), invalidGrant);
  const token = String(won?.body.access_token);
  const ended = await server.call('GET', '/oauth/userinfo', { token });
  t.match(ended, { status: 401, body: { error: 'invalid_token' } });
  t.equal(ended.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
  const { status } = await server.call('GET', '/user', { token: user.accessToken });
  t.equal(status, 200, 'the session of the user stays');
});

t.test('a code is of its client, verifier and redirect URI, and expires', async (t) => {
  const { server, client, user, request } = await start(t);
  const code = await authorize(server, user.accessToken, request);
  const other = await createApplication(server);
  t.match(await redeem(server, other, code), invalidGrant, 'another client');
  t.match(await redeem(server, client, code, { code_verifier: 'x'.repeat(43) }), invalidGrant);
  t.match(await redeem(server, client, code, { code_verifier: '' }), { body: { error: 'invalid_request' } });
  t.match(await redeem(server, client, code, { redirect_uri: 'https://evil.example' }), invalidGrant);
  const resource = { resource: 'https://other.example' };
  t.match(await redeem(server, client, code, resource), { body: { error: 'invalid_target' } });
  t.match(await redeem(server, { ...client, client_secret: 'wrong' }, code), { status: 401 });
  t.match(await redeem(server, client, code, { redirect_uri: applicationUri }), { status: 200 });
  const late = await authorize(server, user.accessToken, request);
  server.clock.advance(5 * 60_000);
  t.match(await redeem(server, client, late), invalidGrant, 'expired');
});

t.test('a wrong verifier does not end the tokens of a code that was exchanged', async (t) => {
  const { server, client, user, request } = await start(t);
  const code = await authorize(server, user.accessToken, request);
  const { body } = await redeem(server, client, code);
  t.match(await redeem(server, client, code, { code_verifier: 'x'.repeat(43) }), invalidGrant);
  t.match(await refresh(server, client, body.refresh_token), { status: 200 });
});

t.test('a refresh token is bound to its client, and rotates', async (t) => {
  const { server, client, user, request } = await start(t, { SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0' });
  const { body } = await redeem(server, client, await authorize(server, user.accessToken, request));
  const other = await createApplication(server);
  t.match(await refresh(server, other, body.refresh_token), invalidGrant);
  const own = await server.call('POST', '/token?grant_type=refresh_token', {
    body: { refresh_token: body.refresh_token },
  });
  t.match(own, { status: 400, body: { error_code: 'refresh_token_not_found' } }, 'without the client');
  const ownToken = { refresh_token: user.refreshToken };
  t.match(await refresh(server, client, ownToken.refresh_token), invalidGrant, 'of a session of the user');
  const second = await refresh(server, client, body.refresh_token);
  t.equal(second.status, 200);
  const third = await refresh(server, client, second.body.refresh_token);
  t.equal(third.status, 200);
  t.match(await refresh(server, client, body.refresh_token), invalidGrant, 'reuse');
  t.match(await refresh(server, client, third.body.refresh_token), invalidGrant, 'ends all');
});

t.test('a banned user gets access_denied', async (t) => {
  const { server, client, user, request } = await start(t);
  const code = await authorize(server, user.accessToken, request);
  const { body } = await redeem(server, client, await authorize(server, user.accessToken, request));
  const path = `/admin/users/${user.userId}`;
  await server.call('PUT', path, { token: adminToken(), body: { ban_duration: '1h' } });
  const denied = { status: 400, body: { error: 'access_denied' } };
  t.match(await redeem(server, client, code), denied);
  t.match(await refresh(server, client, body.refresh_token), denied);
});

t.test('tokens of a client do not manage the account, and ID tokens are no access tokens', async (t) => {
  const { server, client, user, request } = await start(t);
  const code = await authorize(server, user.accessToken, { ...request, scope: 'openid email' });
  const { body } = await redeem(server, client, code);
  const token = String(body.access_token);
  const path = `/oauth/authorizations/${await startAuthorization(server, request)}`;
  for (const [method, url] of [
    ['PUT', '/user'],
    ['GET', '/user/sessions'],
    ['POST', '/factors'],
    ['GET', '/user/oauth/grants'],
    ['GET', path],
  ] as const)
    t.match(
      await server.call(method, url, { token, ...(method !== 'GET' && { body: { factor_type: 'totp' } }) }),
      { status: 403, body: { error_code: 'insufficient_scope' } },
      `${method} ${url}`,
    );
  t.match(await server.call('GET', '/user', { token }), { status: 200 });
  const idToken = String(body.id_token);
  t.match(await server.call('GET', '/user', { token: idToken }), {
    status: 403,
    body: { error_code: 'bad_jwt' },
  });
  t.equal((await server.call('POST', '/logout?scope=global', { token })).status, 204);
  t.match(await server.call('GET', '/user', { token }), { status: 403 });
  t.match(
    await server.call('GET', '/user', { token: user.accessToken }),
    { status: 200 },
    'only its session',
  );
});

t.test('a client that is deleted or disabled loses its sessions', async (t) => {
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PUT', { disabled: true }],
  ] as const) {
    const { server, client, user, request } = await start(t);
    const answer = await redeem(server, client, await authorize(server, user.accessToken, request));
    const path = `/admin/oauth/clients/${client.client_id}`;
    await server.call(method, path, { token: adminToken(), ...(body && { body }) });
    const token = String(answer.body.access_token);
    t.match(await server.call('GET', '/user', { token }), { status: 403 }, method);
    t.match(await openAuthorize(server, request), { status: 400 });
  }
});

t.test('a public client has no secret, and needs the verifier', async (t) => {
  const { server, user } = await start(t);
  const client = await createApplication(server, { token_endpoint_auth_method: 'none' });
  const code = await authorize(server, user.accessToken, { client_id: client.client_id });
  const { client_id } = client;
  t.match(await redeem(server, { client_id }, code, { code_verifier: 'x'.repeat(43) }), invalidGrant);
  t.match(await redeem(server, { client_id }, code, { code_verifier: pkce.verifier }), { status: 200 });
});

t.test('access that ends while its code is exchanged leaves no session', async (t) => {
  const { server, client, user, request } = await start(t);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const ends: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
    'by the user': () =>
      server.call('DELETE', `/user/oauth/grants?client_id=${client.client_id}`, { token: user.accessToken }),
    'with the client': () =>
      server.call('DELETE', `/admin/oauth/clients/${client.client_id}`, { token: adminToken() }),
  };
  for (const [how, end] of Object.entries(ends)) {
    const code = await authorize(server, user.accessToken, request);
    const { replies } = await sql.begin(async (busy) => {
      // The exchange has spent the code, and waits before it commits.
      await busy`lock table auth.refresh_tokens in exclusive mode`;
      const exchange = redeem(server, client, code);
      await awaitWaiting(busy, 1);
      const ended = end();
      await awaitWaiting(busy, 2);
      return { replies: [exchange, ended] };
    });
    await Promise.all(replies);
    const [row] =
      await sql`select count(*)::int as n from auth.sessions where oauth_client_id = ${client.client_id}`;
    t.equal(row?.n, 0, how);
  }
});
