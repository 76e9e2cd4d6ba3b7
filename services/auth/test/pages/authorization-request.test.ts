// OpenID Connect parameters of authorization requests, as the hosted pages follow them.
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify, SignJWT } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import {
  applicationUri,
  authorize,
  createApplication,
  oauthServer,
  openAuthorize,
  redeem,
  startAuthorization,
} from '../helpers/oauth-clients.ts';
import { privateKeys } from '../helpers/signing-keys.ts';
import { enrollTotp } from '../helpers/totp.ts';

const apiUrl = 'http://localhost:9999';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, {
    ...oauthServer,
    PAGES_ENABLED: 'true',
    JWT_KEYS: privateKeys,
    ...variables,
  });
  const user = await signUp(server);
  const client = await createApplication(server);
  const browser = new Browser({ [apiUrl]: server.url });
  const { body: keys } = await server.call('GET', '/.well-known/jwks.json');
  const keySet = createLocalJWKSet(keys as unknown as JSONWebKeySet);

  /** Opens an authorization request, and the page that it redirects to. */
  const open = async (parameters: Readonly<Record<string, string | undefined>> = {}) => {
    const request = { client_id: client.client_id, scope: 'openid email', ...parameters };
    const page = (await openAuthorize(server, request)).headers.get('location') ?? '';
    return { page, response: await follow(page) };
  };
  /** Opens a page, and what it redirects to, up to the client. */
  const follow = async (page: string): Promise<Response> => {
    const response = await browser.open(page);
    const target = response.headers.get('location');
    const url = new URL(target ?? page, apiUrl).href;
    return target === null || url.startsWith(applicationUri) ? response : follow(url);
  };
  const claimsOf = async (response: Response, form: Readonly<Record<string, string>> = {}) => {
    const { code = '' } = parametersOf(response);
    const { body, text } = await redeem(server, client, code, form);
    if (typeof body.id_token !== 'string') throw new Error(text);
    return (await jwtVerify(body.id_token, keySet, { audience: client.client_id })).payload;
  };
  const approve = (page: string) => browser.submit(page, { action: 'approve' }, { target: 'consent' });
  const signIn = (page: string, fields = ada) =>
    browser.submit(page.replace('/consent?', '/sign-in?again=true&'), fields, { target: 'sign-in' });
  return { server, user, client, browser, open, follow, approve, signIn, claimsOf };
}

/** The parameters of a redirect to the client. */
function parametersOf(response: Response): Readonly<Record<string, string>> {
  const url = new URL(response.headers.get('location') ?? '', apiUrl);
  if (!url.href.startsWith(applicationUri)) throw new Error(`${response.status} ${url.href}`);
  return Object.fromEntries(url.searchParams);
}

t.test('prompt, max_age and id_token_hint decide which page the user sees', async (t) => {
  const { server, user, client, browser, open, follow, approve, signIn, claimsOf } = await start(t);
  const errorOf = async (parameters: Readonly<Record<string, string>>) =>
    parametersOf((await open({ state: 'a state', ...parameters })).response);
  const none = { prompt: 'none' };

  t.match(await errorOf(none), { error: 'login_required', state: 'a state', iss: apiUrl });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const refused = await open(none);
  t.match(parametersOf(refused.response), { error: 'consent_required' });
  t.equal((await browser.open(refused.page)).status, 400, 'the request has ended');

  server.clock.advance(5_000);
  const asked = await open({ nonce: 'n-0' });
  t.match(await asked.response.text(), 'See your email address');
  const first = await claimsOf(await approve(asked.page));
  t.match(first, { sub: user.userId, nonce: 'n-0', acr: 'aal1', amr: ['pwd'] });
  t.ok(Number(first.auth_time) <= Number(first.iat) - 5, 'not the time of the consent');

  const silent = await claimsOf((await open(none)).response);
  t.equal(silent.auth_time, first.auth_time);
  for (const prompt of ['consent', 'select_account', 'consent select_account']) {
    const { response } = await open({ prompt });
    t.match(await response.text(), 'Use another account', prompt);
  }

  // An age at the time of the request, however long the user takes.
  t.equal((await claimsOf((await open({ max_age: '10000' })).response)).auth_time, first.auth_time);
  t.match(await errorOf({ max_age: '1', ...none }), { error: 'login_required' });
  for (const parameters of [{ max_age: '1' }, { prompt: 'login' }, { max_age: '0' }]) {
    const { page, response } = await open(parameters);
    const text = await response.text();
    t.match(text, 'Password', JSON.stringify(parameters));
    t.notMatch(text, 'Continue as', 'the session is not enough');
    await browser.open(page.replace('/consent?', '/sign-in?'));
    t.match(await (await follow(page)).text(), 'Password', 'nor after another page');
    server.clock.advance(2_000);
    await signIn(page);
    server.clock.advance(2_000);
    const again = await claimsOf(await follow(page));
    t.ok(Number(again.auth_time) > Number(first.auth_time), JSON.stringify(parameters));
    t.equal(again.sub, first.sub);
  }

  // A token of the user says nothing about a sign-in after the request.
  const token = user.accessToken;
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  for (const parameters of [{ prompt: 'login' }, { max_age: '1' }, { prompt: 'consent' }]) {
    const request = { client_id: client.client_id, scope: 'email', ...parameters };
    const path = `/oauth/authorizations/${await startAuthorization(server, request)}`;
    const body = { action: 'approve' };
    const answer = { status: 400, body: { msg: /The hosted page decides/ } };
    t.match(await server.call('GET', path, { token }), answer);
    t.match(await server.call('POST', `${path}/consent`, { token, body }), answer);
    const rows = await sql`select from auth.oauth_authorizations
      where authorization_id = ${path.split('/').at(-1) ?? ''} and user_id is null`;
    t.equal(rows.length, 1, 'another user may still open the page');
  }

  const tokens = await redeem(server, client, parametersOf((await open()).response).code ?? '');
  const hint = { id_token_hint: String(tokens.body.id_token) };
  server.clock.advance(86_400_000);
  t.ok(parametersOf((await open({ ...hint, ...none })).response).code, 'it has expired');
  await signUp(server, { email: 'eve@example.com' });
  const eve = { ...ada, identifier: 'eve@example.com' };
  const { page } = await open({ ...hint, prompt: 'login' });
  server.clock.advance(1_000);
  await signIn(page, eve);
  t.match(parametersOf(await follow(page)), { error: 'login_required' }, 'another user');
  t.match(await errorOf({ ...hint, ...none }), { error: 'login_required' });
  t.match(await (await open(hint)).response.text(), 'Password');
});

t.test('a client gets the response in a form, the hints reach the pages, and errors are named', async (t) => {
  const { server, client, browser, open, approve, follow, claimsOf } = await start(t);
  const hinted = await open({ login_hint: 'ada@example.com', ui_locales: 'xx de', display: 'popup' });
  const text = await hinted.response.text();
  t.match(text, 'value="ada@example.com"');
  t.match(text, '<html lang="de">');
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  t.match(await (await follow(hinted.page)).text(), '<html lang="de">');

  const state = 'a&b"<c>';
  const { page } = await open({ response_mode: 'form_post', state, acr_values: 'aal2 aal1' });
  const posted = await approve(page);
  t.equal(posted.status, 200);
  t.equal(posted.headers.get('cache-control'), 'no-store');
  t.match(
    posted.headers.get('content-security-policy'),
    /script-src 'sha256-[^']+'; form-action 'self' https:/,
  );
  const form = await posted.text();
  t.match(form, `<form method="post" action="${applicationUri}">`);
  t.match(form, 'name="state" value="a&amp;b&quot;&lt;c&gt;"');
  const [, code = ''] = /name="code" value="([^"]+)"/.exec(form) ?? [];
  t.match(await redeem(server, client, code), { status: 200 });
  const failed = await openAuthorize(server, {
    ...{ client_id: client.client_id, response_mode: 'form_post', scope: 'unknown' },
  });
  t.match(failed.text, 'name="error" value="invalid_scope"');

  const body = new URLSearchParams({
    ...{ client_id: client.client_id, redirect_uri: applicationUri, response_type: 'code', scope: 'openid' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain', unknown: 'parameter' },
  });
  const started = await browser.open(`${apiUrl}/oauth/authorize`, body);
  t.equal(started.status, 303);
  const response = await follow(started.headers.get('location') ?? '');
  t.match(await claimsOf(response, { code_verifier: 'a'.repeat(43) }), { sub: String });

  const forged = (claims: { readonly sub: string }) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
  const { body: ofUser } = await server.call('POST', '/token?grant_type=password', {
    body: { email: ada.identifier, password: ada.password },
  });
  const cases: readonly [string, Readonly<Record<string, string>>][] = [
    ['invalid_request', { prompt: 'none login' }],
    ['invalid_request', { prompt: 'create' }],
    ['invalid_request', { max_age: '-1' }],
    ['invalid_request', { max_age: 'soon' }],
    ['invalid_request', { response_mode: 'fragment' }],
    ['invalid_request', { id_token_hint: 'x' }],
    [
      'invalid_request',
      { id_token_hint: await forged({ sub: decodeJwt(String(ofUser.access_token)).sub ?? '' }) },
    ],
    ['invalid_request', { id_token_hint: String(ofUser.access_token) }],
  ];
  for (const [error, parameters] of cases) {
    const { headers } = await openAuthorize(server, { client_id: client.client_id, ...parameters });
    const location = new URL(headers.get('location') ?? '');
    t.equal(location.searchParams.get('error'), error, JSON.stringify(parameters));
  }
});

t.test('users see own scopes in their language, and a form may carry the token', async (t) => {
  const { server, client, browser, open, approve } = await start(t, {
    OAUTH_SERVER_SCOPES: JSON.stringify({
      'orders:read': { description: { en: 'Read your orders', de: 'Read orders (German)' }, clients: 'all' },
      'orders:write': { description: 'Order in your name' },
    }),
  });
  const { body } = await server.call('GET', '/.well-known/openid-configuration');
  t.match(body.scopes_supported, [
    'openid',
    'profile',
    'email',
    'phone',
    'offline_access',
    'orders:read',
    'orders:write',
  ]);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const { page } = await open({ scope: 'openid email orders:read', ui_locales: 'de' });
  t.match(await (await browser.open(page)).text(), 'Read orders (German)');
  t.match(await (await open({ scope: 'orders:read', ui_locales: 'fr' })).response.text(), 'Read your orders');
  const refused = await openAuthorize(server, { client_id: client.client_id, scope: 'orders:write' });
  t.match(refused.headers.get('location'), 'error=invalid_scope', 'it is not assigned');
  const assigned = await createApplication(server, { scopes: ['orders:write'] });
  const allowed = await open({ client_id: assigned.client_id, scope: 'orders:write' });
  t.match(await allowed.response.text(), 'Order in your name');

  const { code = '' } = parametersOf(await approve(page));
  const { body: tokens } = await redeem(server, client, code);
  t.equal(tokens.scope, 'openid email orders:read');
  const send = (fields: Readonly<Record<string, string>>, token?: string) =>
    server.call('POST', '/oauth/userinfo', {
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      ...(token !== undefined && { token }),
    });
  const token = String(tokens.access_token);
  t.match(await send({ access_token: token }), { status: 200, body: { email: 'ada@example.com' } });
  t.match(await send({}, token), { status: 200 });
  t.match(await send({ access_token: token }, token), { status: 400, body: { error: 'invalid_request' } });
  t.match(await send({ access_token: 'x' }), { status: 401, body: { error: 'invalid_token' } });
  const without = await send({});
  t.match([without.status, without.headers.get('www-authenticate')], [401, 'Bearer']);
});

t.test('a user with a second factor needs it, and the ID token says so', async (t) => {
  const { server, user, client, browser, open } = await start(t);
  // Methods of the same time have no order.
  server.clock.advance(1_000);
  const raised = await enrollTotp(server, user);
  const request = { client_id: client.client_id, scope: 'openid', acr_values: 'aal2' };
  const { body } = await redeem(server, client, await authorize(server, raised.accessToken, request));
  t.match(decodeJwt(String(body.id_token)), { acr: 'aal2', amr: ['otp', 'pwd', 'mfa'] });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  t.match(parametersOf((await open({ scope: 'openid', prompt: 'none' })).response), {
    error: 'interaction_required',
  });
  t.match(await (await open({ scope: 'openid' })).response.text(), 'Two-step');
});

t.test('confidential clients may go without PKCE if the settings allow it', async (t) => {
  const { server, client, browser, open, approve, claimsOf } = await start(t, {
    OAUTH_SERVER_REQUIRE_PKCE: 'false',
  });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const without = { code_challenge: undefined, code_challenge_method: undefined };
  const { page } = await open(without);
  const response = await approve(page);
  const invalid = (error: string) => ({ status: 400, body: { error } });
  const { code = '' } = parametersOf(response);
  t.match(await redeem(server, client, code), invalid('invalid_grant'), 'a verifier without a challenge');
  t.match(await redeem(server, client, code, { code_verifier: '' }), invalid('invalid_request'));
  const exchange = { code_verifier: '', redirect_uri: applicationUri };
  t.match(await claimsOf(response, exchange), { sub: String });

  const app = await createApplication(server, { token_endpoint_auth_method: 'none' });
  const answer = await openAuthorize(server, { client_id: app.client_id, ...without });
  t.match(answer.headers.get('location'), 'error=invalid_request');
  const challenged = await approve((await open({ prompt: 'consent' })).page);
  const late = await redeem(server, client, parametersOf(challenged).code ?? '', exchange);
  t.match(late, invalid('invalid_request'), 'a challenge without a verifier');
});
