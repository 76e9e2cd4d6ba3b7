// The grant `id_token`: the client has got an ID token from the provider itself.
import { createHash } from 'node:crypto';
import { AuthClient } from '@supabase/auth-js';
import t, { type Test } from 'tap';
import { signUp } from '../helpers/auth-server.ts';
import { providerAccessToken } from '../helpers/provider-server.ts';
import { googleClaims, startWithProviders } from '../helpers/provider-sign-in.ts';

const hashOf = (nonce: string) => createHash('sha256').update(nonce).digest('hex');

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const { server, vendors } = await startWithProviders(t, {
    EXTERNAL_GOOGLE_CLIENT_ID: 'web,android,ios',
    ...variables,
  });
  const present = async (claims: object, body: object = {}, token?: string) =>
    server.call('POST', '/token?grant_type=id_token', {
      body: {
        provider: 'google',
        id_token: await vendors.idToken('google', { ...googleClaims, aud: 'web', ...claims }),
        ...body,
      },
      ...(token !== undefined && { token }),
    });
  return { server, vendors, present };
}

t.test('client library signs in with an ID token and a nonce', async (t) => {
  const { server, vendors } = await start(t);
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: false });
  for (const [nonce, claim] of [
    ['plain', 'plain'],
    ['hashed', hashOf('hashed')],
  ] as const) {
    const token = await vendors.idToken('google', { ...googleClaims, aud: 'web', nonce: claim });
    const { data, error } = await client.signInWithIdToken({ provider: 'google', token, nonce });
    t.equal(error, null);
    t.match(data.user, { email: 'ada@example.com', app_metadata: { provider: 'google' } });
  }
});

t.test('ID tokens of all clients of the application are accepted', async (t) => {
  const { present } = await start(t);
  t.equal((await present({ aud: 'ios' })).status, 200);
  t.equal((await present({ aud: 'web', azp: 'android' })).status, 200);
});

t.test('with MAILER_SAVE_LOCALE_ENABLED the language of a first sign-in is saved', async (t) => {
  const { server, vendors } = await start(t, { MAILER_SAVE_LOCALE_ENABLED: 'true' });
  for (const language of ['de-CH,de;q=0.9', 'fr']) {
    const id_token = await vendors.idToken('google', { ...googleClaims, aud: 'web' });
    const { body } = await server.call('POST', '/token?grant_type=id_token', {
      body: { provider: 'google', id_token },
      headers: { 'accept-language': language },
    });
    t.match(body.user, { user_metadata: { locale: 'de-CH' } }, language);
  }
});

t.test('access token must match its hash', async (t) => {
  const { present } = await start(t);
  const hash = createHash('sha256')
    .update(providerAccessToken)
    .digest()
    .subarray(0, 16)
    .toString('base64url');
  t.equal((await present({ at_hash: hash }, { access_token: providerAccessToken })).status, 200);
  t.match(await present({ at_hash: hash }, { access_token: 'another' }), {
    status: 400,
    body: { error: 'invalid request', error_description: 'Bad ID token' },
  });
});

t.test('ID tokens of other clients, issuers and sessions are rejected', async (t) => {
  const { server, present } = await start(t);
  const rejected = (error_description: string) => ({
    status: 400,
    body: { error: 'invalid request', error_description },
  });
  t.match(await present({ aud: 'attacker' }), rejected('Unacceptable audience in id_token'));
  t.match(await present({ azp: 'attacker' }), rejected('Unacceptable audience in id_token'));
  t.match(await present({ iss: 'https://attacker.example' }), rejected('Bad ID token'));
  t.match(await present({ exp: 1 }), rejected('Bad ID token'));
  t.match(await present({ nonce: 'a' }, { nonce: 'b' }), rejected('Nonces mismatch'));
  const either = rejected('Passed nonce and nonce in id_token should either both exist or not.');
  t.match(await present({ nonce: 'a' }), either);
  t.match(await present({}, { nonce: 'a' }), either);
  t.match(await present({}, { id_token: 'a.b.c' }), rejected('Bad ID token'));
  t.match(await present({}, { id_token: '' }), rejected('id_token required'));
  t.match(await present({}, { provider: '' }), rejected('provider or client_id and issuer required'));
  t.match(await present({}, { provider: 'github' }), {
    status: 400,
    body: { error_code: 'validation_failed' },
  });
  t.match(await present({}, { provider: 'apple' }), {
    status: 400,
    body: { error_code: 'provider_disabled' },
  });
  t.notMatch(server.logs(), googleClaims.picture);
});

t.test('ID tokens that are not signed with a key of the provider are rejected', async (t) => {
  const { present, vendors } = await start(t);
  const signed = await vendors.idToken('google', { ...googleClaims, aud: 'web' });
  const [header = '', payload = '', signature = ''] = signed.split('.');
  // Parsed boundary: the test has made the token.
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, sub: 'victim' })).toString('base64url');
  const none = Buffer.from('{"alg":"none"}').toString('base64url');
  for (const id_token of [
    `${header}.${forged}.${signature}`,
    `${header}.${payload}.${signature.slice(4)}AAAA`,
    `${header}.${payload}.`,
    `${none}.${payload}.`,
  ])
    t.match(await present({}, { id_token }), { status: 400, body: { error_description: 'Bad ID token' } });
  t.equal((await present({}, { id_token: signed })).status, 200);
});

t.test('keys are loaded from the URL of reloaded metadata', async (t) => {
  const { server, vendors, present } = await start(t);
  const exp = Math.floor(server.clock.nowMs() / 1000) + 7200;
  t.equal((await present({ exp })).status, 200);
  vendors.set('google', { claims: googleClaims, keysPath: '/new-keys' });
  server.clock.advance(3_601_000);
  t.equal((await present({ exp })).status, 200);
  t.ok(vendors.requests('google').some(({ path }) => path === '/new-keys'));
});

t.test('ID tokens of Apple are accepted for the bundle id of an app', async (t) => {
  const { vendors } = await startWithProviders(t);
  vendors.set('apple', { keysPath: '/auth/keys' });
  const { server } = await startWithProviders(t, {
    EXTERNAL_APPLE_ENABLED: 'true',
    EXTERNAL_APPLE_CLIENT_ID: 'com.example.web',
    EXTERNAL_APPLE_SECRET: 'secret',
    EXTERNAL_APPLE_URL: vendors.url('apple'),
    EXTERNAL_IOS_BUNDLE_ID: 'com.example.ios',
  });
  const present = async (aud: string) => {
    const claims = { sub: 'apple-1', aud, email: 'ada@example.com', email_verified: true };
    const body = { provider: 'apple', id_token: await vendors.idToken('apple', claims) };
    return (await server.call('POST', '/token?grant_type=id_token', { body })).status;
  };
  t.same([await present('com.example.ios'), await present('com.example.web')], [200, 200]);
  t.equal(await present('com.example.other'), 400);
});

t.test('ID tokens of allowed issuers are accepted for the client of the request', async (t) => {
  const { vendors } = await startWithProviders(t);
  vendors.set('shop', { claims: googleClaims });
  const issuer = vendors.url('shop');
  const { server } = await startWithProviders(t, { EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS: issuer });
  const present = async (body: object) => {
    const id_token = await vendors.idToken('shop', { ...googleClaims, aud: 'app' });
    return server.call('POST', '/token?grant_type=id_token', { body: { id_token, ...body } });
  };
  t.match(await present({ issuer, client_id: 'app' }), {
    status: 200,
    body: { user: { email: 'ada@example.com', identities: [{ provider: issuer }] } },
  });
  t.match(await present({ issuer, client_id: 'other' }), { status: 400 });
  t.match(await present({ issuer: `${issuer}/x`, client_id: 'app' }), {
    status: 400,
    body: { error_code: 'validation_failed' },
  });
});

t.test('SKIP_NONCE_CHECK accepts any nonce', async (t) => {
  const { present } = await start(t, { EXTERNAL_GOOGLE_SKIP_NONCE_CHECK: 'true' });
  t.equal((await present({ nonce: 'unknown' })).status, 200);
});

t.test('keycloak, kakao and facebook issue ID tokens for the grant', async (t) => {
  const { vendors } = await startWithProviders(t);
  const keysPaths = {
    keycloak: '/protocol/openid-connect/certs',
    kakao: '/.well-known/jwks.json',
    facebook: '/.well-known/oauth/openid/jwks/',
  };
  const variables: Record<string, string> = {};
  for (const [name, keysPath] of Object.entries(keysPaths)) {
    vendors.set(name, { keysPath });
    variables[`EXTERNAL_${name.toUpperCase()}_ENABLED`] = 'true';
    variables[`EXTERNAL_${name.toUpperCase()}_CLIENT_ID`] = 'app';
    variables[`EXTERNAL_${name.toUpperCase()}_URL`] = vendors.url(name);
  }
  const { server } = await startWithProviders(t, variables);
  for (const name of Object.keys(keysPaths)) {
    const claims = { sub: `${name}-1`, aud: 'app', email: `${name}@example.com`, email_verified: true };
    const idToken = await vendors.idToken(name, claims);
    const answer = await server.call('POST', '/token?grant_type=id_token', {
      body: { provider: name, id_token: idToken },
    });
    t.match(answer, { status: 200, body: { user: { email: `${name}@example.com` } } }, name);
  }
});

t.test('link_identity links the identity to the caller', async (t) => {
  const { server, present } = await start(t, { SECURITY_MANUAL_LINKING_ENABLED: 'true' });
  const { accessToken, userId } = await signUp(server, { email: 'bob@example.com' });
  t.match(await present({}, { link_identity: true }), { status: 401 });
  const linked = await present({}, { link_identity: true }, accessToken);
  t.match(linked, {
    status: 200,
    body: {
      user: { id: userId, email: 'bob@example.com', app_metadata: { providers: ['email', 'google'] } },
    },
  });
  t.match(await present({}, { link_identity: true }, accessToken), {
    status: 422,
    body: { error_code: 'identity_already_exists' },
  });
});
