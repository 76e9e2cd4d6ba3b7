// Attacks on the sign-in with a provider. @see RFC 9700 §4
import { createHash } from 'node:crypto';
import t from 'tap';
import { Browser } from '../helpers/browser.ts';
import {
  apiUrl,
  githubUser,
  googleClaims,
  type Landed,
  land,
  siteUrl,
  startWithProviders,
  stopAtCallback,
} from '../helpers/provider-sign-in.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const badState = { error: 'invalid_request', error_code: 'bad_oauth_state' };

/** Opens a callback and returns where it leads. */
async function openCallback(browser: Browser, url: URL): Promise<Landed & { readonly status: number }> {
  const response = await browser.open(url.href);
  return { ...land(new URL(response.headers.get('location') ?? '')), status: response.status };
}

t.test('state is accepted once, within ten minutes, and by the browser that started', async (t) => {
  const { server, vendors } = await startWithProviders(t);
  const hosts = { [apiUrl]: server.url };
  const browser = new Browser(hosts);
  const callback = await stopAtCallback(browser, 'github');

  t.match(await openCallback(new Browser(hosts), callback), { status: 303, query: badState }, 'no cookie');
  const otherBrowser = new Browser(hosts);
  await stopAtCallback(otherBrowser, 'github');
  t.match(
    await openCallback(otherBrowser, callback),
    { status: 303, query: badState },
    'cookie of another browser',
  );
  t.match(
    vendors.requests('github').filter(({ method }) => method === 'POST'),
    [],
    'no code was exchanged',
  );

  t.match(await openCallback(browser, callback), { status: 302, fragment: { token_type: 'bearer' } });
  t.match(await openCallback(browser, callback), { status: 303, query: badState }, 'replayed');

  const challenge = '&code_challenge_method=plain&code_challenge=' + 'c'.repeat(43);
  const pkce = await stopAtCallback(browser, 'github', challenge);
  const { code } = (await openCallback(browser, pkce)).query;
  const used = { error: 'invalid_request', error_code: 'flow_state_already_used' };
  t.match(await openCallback(browser, pkce), { status: 303, query: used }, 'replayed with PKCE');
  t.match(await openCallback(new Browser(hosts), pkce), { query: badState }, 'by another browser');
  const exchange = { auth_code: code, code_verifier: 'c'.repeat(43) };
  t.equal((await server.call('POST', '/token?grant_type=pkce', { body: exchange })).status, 200);
  t.match(await openCallback(browser, pkce), { status: 303, query: badState }, 'code exchanged');

  const late = await stopAtCallback(browser, 'github');
  server.clock.advance(600_000);
  t.match(await openCallback(browser, late), { status: 303, query: badState }, 'after ten minutes');

  const guessed = new URL(late);
  guessed.searchParams.set('state', '7d9f7c3c-0c58-4a0e-9f0c-1f3b8a9a5b7e');
  t.match(await openCallback(browser, guessed), { status: 303, query: badState }, 'unknown state');
  const missing = new URL(late);
  missing.searchParams.delete('state');
  t.match(await openCallback(browser, missing), { status: 303, query: badState }, 'no state');
  const twice = await stopAtCallback(browser, 'github');
  twice.searchParams.append('state', 'other');
  t.match(await openCallback(browser, twice), { status: 303, query: badState }, 'two states');
});

t.test('tabs of a browser sign in concurrently', async (t) => {
  const { server } = await startWithProviders(t);
  const browser = new Browser({ [apiUrl]: server.url });
  const [first, second] = [await stopAtCallback(browser, 'github'), await stopAtCallback(browser, 'google')];
  t.match(await openCallback(browser, second), { fragment: { token_type: 'bearer' } });
  t.match(await openCallback(browser, first), { fragment: { token_type: 'bearer' } });
});

t.test('code of another sign-in is rejected by PKCE', async (t) => {
  const { server } = await startWithProviders(t);
  const hosts = { [apiUrl]: server.url };
  const attacker = await stopAtCallback(new Browser(hosts), 'github');
  const browser = new Browser(hosts);
  const callback = await stopAtCallback(browser, 'github');
  callback.searchParams.set('code', attacker.searchParams.get('code') ?? '');
  t.match(await openCallback(browser, callback), {
    query: { error: 'server_error', error_description: 'Unable to exchange external code' },
  });
});

t.test('response of another issuer is rejected (mix-up)', async (t) => {
  const { server, vendors } = await startWithProviders(t);
  const browser = new Browser({ [apiUrl]: server.url });
  const callback = await stopAtCallback(browser, 'google');
  callback.searchParams.set('iss', 'https://attacker.example');
  t.match(await openCallback(browser, callback), { query: { error: 'server_error' } });
  t.same(
    vendors.requests('google').filter(({ method }) => method === 'POST'),
    [],
    'the code is not sent',
  );
});

const hash = (text: string) =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url');
for (const [what, claims] of [
  ['issuer', { iss: 'https://attacker.example' }],
  ['audience', { aud: 'another-client' }],
  ['authorized party', { azp: 'another-client' }],
  ['nonce', { nonce: 'of-another-session' }],
  ['access token hash', { at_hash: hash('another-token') }],
  ['expiry', { exp: 1 }],
  ['subject', { sub: '' }],
] as const)
  t.test(`ID token with a wrong ${what} is rejected`, async (t) => {
    const { vendors, signIn } = await startWithProviders(t);
    vendors.set('google', { claims: { ...googleClaims, ...claims } });
    t.match((await signIn('google')).query, { error: 'server_error', error_code: 'unexpected_failure' });
  });

t.test('ID token with the right access token hash is accepted', async (t) => {
  const { vendors, signIn } = await startWithProviders(t);
  vendors.set('google', { claims: { ...googleClaims, at_hash: hash('provider-access-token') } });
  t.match((await signIn('google')).fragment, { token_type: 'bearer' });
});

t.test('redirect targets outside of the allow list lead to the site', async (t) => {
  const { signIn } = await startWithProviders(t, { URI_ALLOW_LIST: 'https://app.example/**' });
  for (const target of [
    'https://attacker.example/',
    '//attacker.example/',
    'https://example.com.attacker.example/',
    'https://example.com@attacker.example/',
    ['https:', '', 'attacker.example/'].join('\\'),
    'javascript:alert(1)',
  ])
    t.equal((await signIn('github', { redirect_to: target })).url.origin, new URL(siteUrl).origin, target);
  const allowed = 'https://app.example/welcome?tab=1';
  t.match(
    (await signIn('github', { redirect_to: allowed })).url.href,
    /^https:\/\/app\.example\/welcome\?tab=1#/,
  );
});

t.test('a program of the device gets no session without a click', async (t) => {
  const { server } = await startWithProviders(t, {
    ...{ PAGES_ENABLED: 'true', URI_ALLOW_LIST: 'http://localhost:3000/**,com.example.app://**' },
  });
  const finish = async (target: string, more = '') => {
    const browser = new Browser({ [apiUrl]: server.url });
    const query = `&redirect_to=${encodeURIComponent(target)}${more}`;
    return browser.open((await stopAtCallback(browser, 'github', query)).href);
  };
  for (const target of ['http://127.0.0.1:5555/cb', 'http://[::1]:5555/', 'http://localhost:3000/']) {
    for (const [more, added] of [
      ['', '#access_token='],
      [`&code_challenge=${'c'.repeat(43)}&code_challenge_method=s256`, '?code='],
    ] as const) {
      const answer = await finish(target, more);
      t.equal(answer.status, 200, target);
      t.equal(answer.headers.get('location'), null);
      t.match(answer.headers.get('content-security-policy'), "frame-ancestors 'none'");
      const text = await answer.text();
      t.match(text, 'Continue only if you have started the sign-in yourself.');
      t.match(text, `<p class="hint">${new URL(target).host}</p>`);
      t.match(text, `<a class="button" href="${target}${added}`);
    }
  }
  for (const target of ['https://example.com/', 'com.example.app://callback', `${apiUrl}/pages/account`])
    t.match((await finish(target)).headers.get('location'), new RegExp(`^${target}`), target);
});

t.test('clients cannot replace parameters of the authorization request', async (t) => {
  const { vendors, signIn } = await startWithProviders(t);
  await signIn('github', {
    client_id: 'x',
    client_secret: 'x',
    redirect_uri: 'https://attacker.example',
    response_type: 'token',
    response_mode: 'fragment',
    state: 'x',
    nonce: 'x',
    scope: 'admin',
    code_verifier: 'x',
  });
  const [request] = vendors.requests('github');
  t.match(Object.fromEntries(request?.query ?? []), {
    client_id: 'GITHUB-client',
    redirect_uri: `${apiUrl}/callback`,
    response_type: 'code',
    scope: 'user:email',
  });
  t.not(request?.query.get('state'), 'x');
  for (const name of ['client_secret', 'response_mode', 'nonce', 'code_verifier'])
    t.notOk(request?.query.has(name), name);
});

t.test('cookie is for the host and scripts cannot read it', async (t) => {
  const { server } = await startWithProviders(t);
  const { headers } = await server.call('GET', '/authorize?provider=github');
  t.match(
    headers.get('set-cookie'),
    /^tollgate-sign-in=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
  );
  const secure = await startWithProviders(t, { API_EXTERNAL_URL: 'https://auth.example.com/v1' });
  const answer = await secure.server.call('GET', '/authorize?provider=github');
  t.match(answer.headers.get('set-cookie'), /^__Host-tollgate-sign-in=[\w-]{43}; .*; SameSite=Lax; Secure$/);
  t.match(answer.headers.get('location'), /redirect_uri=https%3A%2F%2Fauth.example.com%2Fv1%2Fcallback/);
});

t.test('log has no codes, tokens and secrets', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t);
  await signIn('github');
  vendors.set('github', { ...vendors, tokenPath: '/none' });
  await signIn('google');
  t.notMatch(server.logs(), /provider-access-token|provider-refresh-token|GITHUB-secret/);
});

t.test(
  'a provider that does not answer the exchange of the code ends with an error in the browser',
  async (t) => {
    const { server, vendors } = await startWithProviders(t, { API_MAX_REQUEST_DURATION: '1s' });
    const browser = new Browser({ [apiUrl]: server.url });
    vendors.set('github', { ...githubUser(), hangs: true });
    const callback = await stopAtCallback(browser, 'github');
    const cookie = Array.from(browser.cookies(apiUrl), (pair) => pair.join('=')).join('; ');
    // fetch of Node sets sec-fetch-mode itself.
    const headers = ['accept', 'text/html', 'sec-fetch-mode', 'navigate', 'cookie', cookie];
    const page = await rawRequest(server.url, `${callback.pathname}${callback.search}`, { headers });
    t.equal(page.status, 504);
    t.match(page.headers['content-type'], 'text/html');
    t.match(page.text, '<h1>');
  },
);
