// OpenID Connect clients register themselves, sign users in, and sign them out again.
import { text } from 'node:stream/consumers';
import { AuthClient } from '@supabase/auth-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startWebServer } from '@tollgate/testkit/web-server';
import { decodeJwt } from 'jose';
import * as openid from 'openid-client';
import t, { type Test } from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { applicationUri, checkRequest, oauthServer } from '../helpers/oauth-clients.ts';
import { privateKeys } from '../helpers/signing-keys.ts';

t.setTimeout(120_000);
const apiUrl = 'http://localhost:9999';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };
const signedOutUri = 'https://app.example.org/signed-out?from=tollgate';

const registration = {
  client_name: 'Planner',
  redirect_uris: [applicationUri],
  post_logout_redirect_uris: [signedOutUri],
  token_endpoint_auth_method: 'client_secret_post',
  scope: 'openid email offline_access',
  application_type: 'web',
  contacts: ['ops@example.org'],
  policy_uri: 'https://app.example.org/policy',
  tos_uri: 'https://app.example.org/terms',
  initiate_login_uri: 'https://app.example.org/login',
  default_max_age: 3600,
  default_acr_values: ['aal1'],
  require_auth_time: true,
  software_id: 'planner',
  software_version: '1.0',
};

async function start(t: Test) {
  const server = await startAuthServer(t, {
    ...oauthServer,
    PAGES_ENABLED: 'true',
    OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    OAUTH_SERVER_PRIVATE_HOSTS: '127.0.0.1',
    RATE_LIMIT_OAUTH_DYNAMIC_CLIENT_REGISTER: '100',
    JWT_KEYS: privateKeys,
  });
  await signUp(server);
  const browser = new Browser({ [apiUrl]: server.url });
  const options = {
    execute: [openid.allowInsecureRequests],
    [openid.customFetch]: (url: string, init: object) => fetch(url.replace(apiUrl, server.url), init),
  };
  const register = (members: object) =>
    openid.dynamicClientRegistration(new URL(apiUrl), { ...registration, ...members }, undefined, options);
  return { server, browser, register };
}

/** Signs the user in at a client. */
async function signIn(browser: Browser, config: openid.Configuration, scope = 'openid email') {
  const verifier = openid.randomPKCECodeVerifier();
  const url = openid.buildAuthorizationUrl(config, {
    ...{ redirect_uri: applicationUri, scope, code_challenge_method: 'S256', prompt: 'consent' },
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
  });
  const page = (await browser.open(url.href)).headers.get('location') ?? '';
  const answer = await browser.submit(page, { action: 'approve' }, { target: 'consent' });
  const callback = new URL(answer.headers.get('location') ?? '');
  return openid.authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier });
}

const isSignedIn = async (browser: Browser) => (await browser.open(`${apiUrl}/pages/account`)).status === 200;

t.test('a client signs its user out, and gets the browser back', async (t) => {
  const { browser, register } = await start(t);
  const config = await register({});
  const logOut = async (parameters: Readonly<Record<string, string>>) => {
    const url = openid.buildEndSessionUrl(config, parameters);
    const { headers } = await browser.open(url.href);
    return browser.open(headers.get('location') ?? '');
  };
  const refresh = (token = '') => openid.refreshTokenGrant(config, token).then(() => 'ok', String);

  for (const scope of ['openid', 'openid offline_access']) {
    await browser.submit(`${apiUrl}/pages/sign-in`, ada);
    const tokens = await signIn(browser, config, scope);
    const hint = { id_token_hint: tokens.id_token ?? '' };
    const ended = await logOut({ ...hint, post_logout_redirect_uri: signedOutUri, state: 'a&b' });
    t.equal(ended.headers.get('location'), `${signedOutUri}&state=a%26b`);
    t.notOk(await isSignedIn(browser));
    const refreshed = await refresh(tokens.refresh_token);
    t.equal(refreshed === 'ok', scope.includes('offline_access'), scope);
    const again = await logOut({ ...hint, post_logout_redirect_uri: signedOutUri });
    t.equal(again.headers.get('location'), signedOutUri, 'without a session and a state');
  }

  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const { id_token: token = '' } = await signIn(browser, config);
  const [header = '', , signature = ''] = token.split('.');
  const other = Buffer.from(JSON.stringify({ ...decodeJwt(token), sub: 'eve' })).toString('base64url');
  const rejected: readonly Readonly<Record<string, string>>[] = [
    { id_token_hint: token, post_logout_redirect_uri: 'https://evil.example' },
    { id_token_hint: token, post_logout_redirect_uri: `${signedOutUri}&more=true` },
    { id_token_hint: `${header}.${other}.${signature}`, post_logout_redirect_uri: signedOutUri },
    { id_token_hint: 'x', post_logout_redirect_uri: signedOutUri },
    { id_token_hint: token, client_id: '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d' },
    { client_id: config.clientMetadata().client_id, post_logout_redirect_uri: 'https://evil.example' },
    { client_id: 'x', post_logout_redirect_uri: signedOutUri },
  ];
  for (const parameters of rejected) {
    const answer = await logOut(parameters);
    t.equal(answer.status, 400, JSON.stringify(parameters).slice(0, 80));
    t.match(answer.headers.get('content-type'), 'text/html');
    t.ok(await isSignedIn(browser), 'the session stays');
  }

  for (const parameters of [{}, { state: 'x' }, { post_logout_redirect_uri: signedOutUri }]) {
    t.match(await (await logOut(parameters)).text(), 'Sign out?');
    t.ok(await isSignedIn(browser), 'anyone could have sent the browser here');
  }
  const page = `${apiUrl}/pages/logout?ui_locales=de`;
  const signedOut = await browser.submit(page, {}, { target: 'logout' });
  t.equal(signedOut.status, 200);
  t.match(await signedOut.text(), '<html lang="de">');
  t.notOk(await isSignedIn(browser));
  t.match(await (await logOut({})).text(), 'You are signed out');
  const form = new URLSearchParams({ id_token_hint: token, post_logout_redirect_uri: signedOutUri });
  const posted = await browser.open(`${apiUrl}/oauth/logout`, form, { 'sec-fetch-site': 'cross-site' });
  t.equal(posted.status, 303);
  t.equal((await browser.open(posted.headers.get('location') ?? '')).headers.get('location'), signedOutUri);
});

t.test('signing out ends the sessions of other clients that the browser has signed in to', async (t) => {
  const { server, browser, register } = await start(t);
  const other = new Browser({ [apiUrl]: server.url });
  const told: string[] = [];
  const { port } = await startWebServer(t, (request, response) => {
    void text(request).then((form) => {
      const token = new URLSearchParams(form).get('logout_token') ?? '';
      told.push(String(decodeJwt(token).sid));
      response.writeHead(204).end();
    });
  });
  const uri = `http://127.0.0.1:${port}/logout`;
  const local = { redirect_uris: [applicationUri, uri], backchannel_logout_uri: uri };
  const [first, second] = [await register({}), await register(local)];
  const refresh = (token = '') =>
    openid.refreshTokenGrant(second, token).then(
      ({ refresh_token: next = '' }) => next,
      ({ error }: { readonly error?: unknown }) => String(error),
    );
  const assertEnded = async (
    tokens: Awaited<ReturnType<typeof signIn>>,
    refreshToken = tokens.refresh_token,
  ) => {
    t.equal(await refresh(refreshToken), 'invalid_grant');
    t.equal((await checkRequest(server, tokens.access_token)).status, 401);
    const sid = String(tokens.claims()?.sid);
    await awaitUntil(() => told.includes(sid), { what: 'the logout token of the session' });
  };
  await other.submit(`${apiUrl}/pages/sign-in`, ada);
  const lasting: string[] = [];
  for (const end of ['for a client', 'on the pages']) {
    await browser.submit(`${apiUrl}/pages/sign-in`, ada);
    const here = await signIn(browser, second);
    const forLater = await signIn(browser, second, 'openid offline_access');
    const elsewhere = await signIn(other, second);
    // A sign-in again replaces the session of the browser, and ends no client's.
    await browser.submit(`${apiUrl}/pages/sign-in?again=true`, ada, { target: 'sign-in' });
    const { id_token = '' } = await signIn(browser, first);
    const renewed = await refresh(here.refresh_token);
    if (end === 'on the pages') await browser.submit(`${apiUrl}/pages/account`, {}, { target: 'sign-out' });
    else {
      const asked = await browser.open(openid.buildEndSessionUrl(first, { id_token_hint: id_token }).href);
      await browser.open(asked.headers.get('location') ?? '');
    }
    t.notOk(await isSignedIn(browser), end);
    await assertEnded(here, renewed);
    lasting.push(await refresh(forLater.refresh_token), await refresh(elsewhere.refresh_token));
    t.notOk(lasting.includes('invalid_grant'), 'access for the time after, and sign-ins of others, stay');
    t.ok(await isSignedIn(other));
  }
  t.equal(told.length, 2, 'of no other session');

  const application = new AuthClient({ url: server.url, persistSession: false, autoRefreshToken: false });
  const tokens = await signIn(other, second);
  await application.signInWithPassword({ email: ada.identifier, password: ada.password });
  t.equal((await application.signOut()).error, null);
  await assertEnded(tokens);
  for (const token of lasting) t.equal(await refresh(token), 'invalid_grant', 'it signs out everywhere');
  await awaitUntil(() => told.length === 3 + lasting.length, { what: 'the logout tokens of all sessions' });
});

t.test('the user decides about a request without a recent ID token, and then returns', async (t) => {
  const { server, browser, register } = await start(t);
  const config = await register({});
  const { client_id: clientId } = config.clientMetadata();
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const { id_token: token = '' } = await signIn(browser, config);
  const returning = { post_logout_redirect_uri: signedOutUri, state: 'a state' };
  const pageOf = (parameters: Readonly<Record<string, string>>) =>
    `${apiUrl}/pages/logout?${new URLSearchParams({ ...parameters, ...returning })}`;
  const hint = { id_token_hint: token };

  server.clock.advance(25 * 3_600_000);
  const current = await browser.open(pageOf(hint));
  t.equal(current.headers.get('location'), `${signedOutUri}&state=a+state`, 'the client has its session');
  for (const parameters of [hint, { client_id: clientId }]) {
    await browser.submit(`${apiUrl}/pages/sign-in`, ada);
    const page = pageOf(parameters);
    const asked = await browser.open(page);
    t.match(asked.headers.get('content-security-policy'), "form-action 'self' https:");
    const text = await asked.text();
    for (const part of ['Sign out?', 'You return to app.example.org.']) t.match(text, part);
    const signedOut = await browser.submit(page, {}, { target: 'logout' });
    t.equal(signedOut.headers.get('location'), `${signedOutUri}&state=a+state`);
    t.notOk(await isSignedIn(browser));
    const stays = await browser.open(page);
    t.equal(stays.status, 200, 'anyone could have sent the browser here');
    t.match(await stays.text(), `href="${signedOutUri}&amp;state=a+state"`);
  }
});

t.test('the metadata of a client are registered, returned and followed', async (t) => {
  const { server, browser, register } = await start(t);
  const config = await register({ scope: 'openid email unknown', jwks: { keys: [] } });
  const { client_id: id } = config.clientMetadata();
  t.match(config.clientMetadata(), { ...registration, scope: 'openid email', client_secret_expires_at: 0 });
  t.notOk('jwks' in config.clientMetadata(), 'they have no use');
  const privileges = {
    ...{ plan: 'pro', role: 'editor', scopes: ['orders:write'], audiences: ['https://orders.example'] },
    ...{ limit: { requests_per_unit: 1, unit: 'day' }, disabled: true, registration_type: 'manual' },
  };
  const greedy = (await register(privileges)).clientMetadata();
  t.equal(greedy.registration_type, 'dynamic');
  for (const name of ['plan', 'role', 'scopes', 'audiences', 'limit', 'disabled'])
    t.notOk(name in greedy, `${name} is for administrators`);

  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  for (const [logo, isShown] of [
    ['https://app.example.org/logo.png', true],
    ['https://bank.example/logo.png', false],
  ] as const) {
    const other = await register({ logo_uri: logo });
    const url = openid.buildAuthorizationUrl(other, {
      ...{ redirect_uri: applicationUri, scope: 'openid' },
      ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' },
    });
    const consent = await browser.open((await browser.open(url.href)).headers.get('location') ?? '');
    const text = await consent.text();
    t.equal(text.includes(logo), isShown, logo);
    t.equal(
      /img-src https:\/\/app\.example\.org;/.test(consent.headers.get('content-security-policy') ?? ''),
      isShown,
    );
    for (const link of [registration.policy_uri, registration.tos_uri]) t.match(text, `href="${link}"`);
  }
  const outside = openid.buildAuthorizationUrl(config, {
    ...{ redirect_uri: applicationUri, scope: 'openid phone' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' },
  });
  const { headers } = await browser.open(outside.href);
  t.match(headers.get('location'), 'error=invalid_scope', 'the client has registered its scopes');
  const tokens = await signIn(browser, config);
  t.equal(tokens.claims()?.aud, id);
  server.clock.advance(3_601_000);
  const stale = openid.buildAuthorizationUrl(config, {
    ...{ redirect_uri: applicationUri, scope: 'openid', prompt: 'none' },
    ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' },
  });
  const page = (await browser.open(stale.href)).headers.get('location') ?? '';
  t.match((await browser.open(page)).headers.get('location'), 'error=login_required', 'default_max_age');

  for (const members of [
    { response_types: ['code id_token'] },
    { subject_type: 'pairwise' },
    { id_token_signed_response_alg: 'none' },
    { userinfo_signed_response_alg: 'RS256' },
    { id_token_encrypted_response_alg: 'RSA-OAEP' },
    { sector_identifier_uri: 'https://app.example.org/sector' },
    { scope: 'admin' },
    { application_type: 'spa' },
    { initiate_login_uri: 'http://app.example.org' },
    { tos_uri: 'javascript:x' },
    { default_max_age: -1 },
    { default_acr_values: ['urn:example:silver'] },
    { contacts: Array(11).fill('x') },
    { software_id: 'x'.repeat(256) },
    { post_logout_redirect_uris: ['http://app.example.org'] },
  ]) {
    const { status, body } = await server.call('POST', '/oauth/clients/register', {
      body: { ...registration, ...members },
    });
    t.equal(status, 400, JSON.stringify(members));
    t.equal(body.error, 'invalid_client_metadata', JSON.stringify(members));
  }
  const fragment = { ...registration, redirect_uris: [`${applicationUri}#x`] };
  const answer = await server.call('POST', '/oauth/clients/register', { body: fragment });
  t.match(answer, { status: 400, body: { error: 'invalid_redirect_uri' } });
});
