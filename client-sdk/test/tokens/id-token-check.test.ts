import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { pollDeviceToken, startDeviceAuthorization } from '../../src/device/device.ts';
import { clientOptionsFrom, discover } from '../../src/discovery.ts';
import { createIdTokenValidator } from '../../src/id-token/id-token.ts';
import { AccessToken, Client, type ClientOptions, type WarningEvent } from '../../src/index.ts';
import { createAuthorizationServer } from '../../src/testing.ts';

const now = 1_800_000_000;
const issuer = 'https://as.test';
const jwksUri = `${issuer}/jwks`;

async function start(options: ClientOptions<true> = {}) {
  const server = createAuthorizationServer({ now: () => now });
  const shared = { fetch: server.fetch, now: server.now };
  const client = new Client({
    ...clientOptionsFrom(await discover(server.issuer, shared)),
    ...{ clientId: 'client', clientSecret: 'secret', redirectUri: 'https://app.test/cb' },
    ...shared,
    ...options,
  });
  const signIn = async (scope: string) => {
    const { url, transaction } = await client.authCode.startAuthorization({ scope });
    return { callback: await server.authorize(url), transaction };
  };
  return { server, client, signIn };
}

t.test('with scope openid a discovered client validates the ID token and gives its claims', async (t) => {
  const { server, client, signIn } = await start();
  const { callback, transaction } = await signIn('openid');
  const token = await client.authCode.completeAuthorization(callback, transaction);
  t.match(token.idTokenClaims, { sub: 'user', aud: 'client', nonce: transaction.nonce });
  t.equal(server.count('jwks'), 1);
  const refreshed = await token.refresh();
  t.match(refreshed.idTokenClaims, { sub: 'user' });
  t.equal(server.count('jwks'), 1, 'the keys are kept');
});

t.test('an ID token of another session fails the sign-in', async (t) => {
  const { client, signIn } = await start();
  const { callback, transaction } = await signIn('openid');
  const completing = client.authCode.completeAuthorization(callback, { ...transaction, nonce: 'other' });
  await t.rejects(completing, { name: 'IdTokenError', claim: 'nonce' });
});

t.test('a token response without the ID token that was asked for fails the sign-in', async (t) => {
  const { server, client, signIn } = await start();
  const { callback, transaction } = await signIn('openid');
  const answer = () => Response.json({ access_token: 'at', token_type: 'Bearer' });
  server.inject({ endpoint: 'token', effect: answer });
  await t.rejects(client.authCode.completeAuthorization(callback, transaction), {
    ...{ name: 'IdTokenError', claim: 'id_token' },
  });
});

t.test('a client without keys fails before the code is sent', async (t) => {
  const server = createAuthorizationServer();
  const client = new Client({
    ...{ clientId: 'client', clientSecret: 'secret', redirectUri: 'https://app.test/cb' },
    ...{ site: server.issuer, issuer: server.issuer, fetch: server.fetch },
    deviceAuthorizationEndpoint: server.endpoints.deviceAuthorization,
  });
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await server.authorize(url);
  const refusal = { name: 'ConfigurationError', message: /jwksUri.*discoverClient/ };
  await t.rejects(client.authCode.completeAuthorization(callback, transaction), refusal);
  await t.rejects(client.password.getToken('user', 'password', { scope: ['openid'] }), refusal);
  await t.rejects(startDeviceAuthorization(client, { scope: 'openid' }), refusal);
  t.same([server.count('token'), server.count('deviceAuthorization')], [0, 0]);
});

t.test('ID tokens of the password grant and of devices are validated as well', async (t) => {
  const { server, client } = await start();
  const token = await client.password.getToken('user', 'password', { scope: 'openid' });
  t.match(token.idTokenClaims, { sub: 'user' });
  const device = await startDeviceAuthorization(client, { scope: 'openid' });
  server.decideDevice(device.userCode);
  t.match((await pollDeviceToken(client, device)).idTokenClaims, { sub: 'user' });
  server.rotateSigningKey();
  const stolen = (await server.issueTokens({ scope: 'openid', clientId: 'another' })).id_token;
  const answer = () => Response.json({ access_token: 'at', token_type: 'Bearer', id_token: stolen });
  server.inject({ endpoint: 'token', effect: answer });
  await t.rejects(client.password.getToken('user', 'password'), { name: /^(JwtError|IdTokenError)$/ });
});

t.test('the ID token of a refresh is of the same user, also after the token was stored', async (t) => {
  const { server, client, signIn } = await start();
  const { callback, transaction } = await signIn('openid');
  const token = await client.authCode.completeAuthorization(callback, transaction);
  const restored = AccessToken.fromHash(client, token.toStored());
  t.equal(restored.idTokenClaims, undefined, 'what was stored is not validated again');
  const other = await server.issueTokens({ clientId: 'client', subject: 'eve', scope: 'openid' });
  for (const known of [token, restored]) {
    server.inject({ endpoint: 'token', effect: () => Response.json(other) });
    await t.rejects(known.refresh(), { name: 'IdTokenError', claim: 'sub' });
  }
  t.match((await restored.refresh()).idTokenClaims, { sub: 'user' });
});

for (const [what, options, jwks] of [
  ['keys cannot be loaded', {}, 'refuse'],
  ['keys are others', {}, () => Response.json({ keys: [] })],
  ['algorithm is not the registered one', { idTokenSignedResponseAlg: 'ES384' }, undefined],
  ['registered algorithm is none of the server', { idTokenSignedResponseAlg: 'PS256' }, undefined],
] as const) {
  t.test(`a refresh whose ${what} keeps its tokens and drops the ID token`, async (t) => {
    const warnings: WarningEvent[] = [];
    const { server, client } = await start({
      ...{ onWarning: (event) => void warnings.push(event), ...options },
      idTokenSigningAlgValuesSupported: ['ES256', 'ES384'],
    });
    const stored = await server.issueTokens({ clientId: 'client', scope: 'openid' });
    const token = AccessToken.fromHash(client, stored);
    if (jwks !== undefined) server.inject({ endpoint: 'jwks', effect: jwks, times: 2 });
    const refreshed = await token.refresh();
    t.ok(server.isActive(refreshed.token));
    t.equal(refreshed.idToken, undefined);
    t.same(refreshed.param('id_token'), undefined);
    t.ok(warnings.some(({ code }) => code === 'id_token_dropped'));
  });
}

t.test('a validateIdToken of the caller replaces the built-in one', async (t) => {
  const { server, client, signIn } = await start();
  const { callback, transaction } = await signIn('openid');
  const seen: unknown[] = [];
  const validateIdToken = async (...args: unknown[]) => {
    seen.push(args[1]);
  };
  const token = await client.authCode.completeAuthorization(callback, transaction, { validateIdToken });
  const { nonce } = transaction;
  const code = new URL(callback).searchParams.get('code');
  t.same(seen, [{ code, nonce, accessToken: token.token }]);
  t.equal(token.idTokenClaims, undefined);
  t.equal(server.count('jwks'), 0);
});

async function signed(header: Record<string, unknown>, options: ClientOptions<true> = {}) {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const client = new Client({ clientId: 'app', issuer, now: () => now, ...options });
  const idToken = await new SignJWT({ iss: issuer, aud: 'app', sub: 'u1', iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: 'RS256', ...header })
    .sign(privateKey);
  return { client, idToken, jwks: { keys: [await exportJWK(publicKey)] } };
}

for (const [typ, isAccepted] of [
  [undefined, true],
  ['JWT', true],
  ['jwt', true],
  ['at+jwt', false],
  ['logout+jwt', false],
  ['dpop+jwt', false],
  ['', false],
] as const) {
  t.test(`a JWT of type ${typ} is ${isAccepted ? '' : 'not '}accepted as an ID token`, async (t) => {
    const { client, idToken, jwks } = await signed(typ === undefined ? {} : { typ });
    const validating = createIdTokenValidator({ client, jwks })(idToken);
    if (isAccepted) t.equal((await validating).sub, 'u1');
    else await t.rejects(validating, { name: 'JwtError', reason: 'type' });
  });
}

for (const [what, options, accepted] of [
  ['RS256 by default', {}, 'RS256'],
  ['the registered algorithm', { idTokenSignedResponseAlg: 'PS256' }, 'PS256'],
  ['RS256 where the server has it', { idTokenSigningAlgValuesSupported: ['ES256', 'RS256'] }, 'RS256'],
  [
    'what the server signs with, where that is not RS256',
    { idTokenSigningAlgValuesSupported: ['none', 'HS256', 'ES256', 'EdDSA'] },
    'ES256, EdDSA',
  ],
] as const) {
  t.test(`accepts ${what}`, async (t) => {
    const { client, idToken, jwks } = await signed({ alg: 'RS256' }, options);
    const validating = createIdTokenValidator({ client, jwks })(idToken);
    if (accepted === 'RS256') t.equal((await validating).sub, 'u1');
    else await t.rejects(validating, { reason: 'algorithm', message: `accepted: ${accepted}` });
  });
}

t.test('a registered algorithm that the server does not support is an error', async (t) => {
  const client = new Client({
    ...{ clientId: 'app', issuer, jwksUri, idTokenSignedResponseAlg: 'PS256' },
    idTokenSigningAlgValuesSupported: ['RS256'],
  });
  await t.rejects(client.idTokenValidator(), { name: 'ConfigurationError', message: /PS256/ });
  const hmacOnly = new Client({
    clientId: 'app',
    issuer,
    jwksUri,
    idTokenSigningAlgValuesSupported: ['HS256'],
  });
  await t.rejects(hmacOnly.idTokenValidator(), { name: 'ConfigurationError', message: /HS256/ });
});

t.test('a client that is registered for HMAC checks with its secret', async (t) => {
  const clientSecret = 'a secret of more than thirty-two bytes';
  const client = new Client({
    ...{ clientId: 'app', clientSecret, issuer, now: () => now, idTokenSignedResponseAlg: 'HS256' },
  });
  const idToken = await new SignJWT({ iss: issuer, aud: 'app', sub: 'u1', iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(clientSecret));
  t.equal((await (await client.idTokenValidator())(idToken)).sub, 'u1');
});

t.test('an ID token that was not requested and cannot be validated, is reported', async (t) => {
  const warnings: string[] = [];
  const server = createAuthorizationServer({ now: () => now });
  const client = new Client({
    ...{ clientId: 'client', clientSecret: 'secret', site: server.issuer, fetch: server.fetch },
    ...{ now: server.now, onWarning: ({ code }: WarningEvent) => void warnings.push(code) },
  });
  const answer = await server.issueTokens({ clientId: 'client', scope: 'openid' });
  server.inject({ endpoint: 'token', effect: () => Response.json(answer) });
  const token = await client.password.getToken('user', 'password');
  t.ok(token.idToken);
  t.equal(token.idTokenClaims, undefined);
  t.ok(warnings.includes('id_token_not_validated'));
});
