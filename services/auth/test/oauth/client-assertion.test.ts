// Clients that authenticate with a signed assertion (private_key_jwt).
import { Client } from '@tollgate/oauth2-client';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { checkRequest, createMachine, oauthServer, requestToken } from '../helpers/oauth-clients.ts';
import { startTokenIssuer } from '../helpers/token-issuer.ts';

const tokenEndpoint = 'http://localhost:9999/oauth/token';
const issuer = 'http://localhost:9999';

const assertionForm = (assertion: string) => ({
  grant_type: 'client_credentials',
  client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  client_assertion: assertion,
});

/** A server with a client of these keys. */
async function start(t: Test, algorithm = 'ES256') {
  const server = await startAuthServer(t, oauthServer);
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const { client_id: id } = await createMachine(server, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1', use: 'sig' }] },
  });
  const seconds = Math.floor(server.clock.nowMs() / 1000);
  let count = 0;
  const sign = (claims: Readonly<Record<string, unknown>> = {}, header: object = {}, key = privateKey) => {
    count += 1;
    const all = { iss: id, sub: id, aud: issuer, jti: `jti-${count}`, iat: seconds, exp: seconds + 60 };
    return new SignJWT({ ...all, ...claims })
      .setProtectedHeader({ alg: algorithm, kid: 'key-1', ...header })
      .sign(key);
  };
  const send = (assertion: string, more: object = {}) =>
    requestToken(server, { ...assertionForm(assertion), ...more });
  return { server, id, privateKey, sign, send, seconds };
}

for (const algorithm of ['RS256', 'PS512', 'ES256', 'ES384', 'EdDSA'])
  t.test(`an assertion by ${algorithm} gets a token, which the gateway accepts`, async (t) => {
    const { server, id, sign, send } = await start(t, algorithm);
    const { body, status, text } = await send(await sign());
    t.equal(status, 200, text);
    const checked = await checkRequest(server, String(body.access_token));
    t.equal(checked.headers.get('x-auth-client-id'), id);
    t.equal((await send(await sign({ aud: tokenEndpoint }))).status, 200, 'aud is the token endpoint');
    t.equal(
      (await send(await sign({ aud: [issuer] }), { client_id: id })).status,
      200,
      'aud is a list of one',
    );
    t.equal((await send(await sign({}, { kid: undefined }))).status, 200, 'without kid');
  });

t.test('an assertion is accepted once', async (t) => {
  const { sign, send } = await start(t);
  const assertion = await sign();
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(assertion)));
  t.same(answers.map(({ status }) => status).toSorted(), [200, ...Array(9).fill(401)]);
  t.equal((await send(await sign({ jti: 'jti-1', nonce: 'x' }))).status, 401, 'another one with its jti');
  t.equal((await send(await sign())).status, 200);
});

t.test('an assertion is not accepted again later in its life', async (t) => {
  const { server, sign, send } = await start(t);
  const assertion = await sign();
  t.equal((await send(assertion)).status, 200);
  server.clock.advance(45_000);
  t.equal((await send(assertion)).status, 401);
  t.equal((await send(await sign())).status, 200, 'a new one');
});

t.test('forged, misdirected and long-lived assertions are rejected', async (t) => {
  const { server, id, sign, send, seconds, privateKey } = await start(t);
  const { privateKey: otherKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const other = await createMachine(server, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [await exportJWK(publicKey)] },
  });
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const [, claims64 = '', signature = ''] = (await sign()).split('.');
  const hmac = new SignJWT({ iss: id, sub: id, aud: issuer, jti: 'h', iat: seconds, exp: seconds + 60 });
  const cases: Readonly<Record<string, string>> = {
    'signed by another key': await sign({}, {}, otherKey),
    'of another client': await sign({ iss: other.client_id, sub: other.client_id }),
    'with another sub': await sign({ sub: other.client_id }),
    'without iss': await sign({ iss: undefined }),
    'for another server': await sign({ aud: 'https://other.example' }),
    'for this server and another': await sign({ aud: [issuer, 'https://other.example'] }),
    'without aud': await sign({ aud: undefined }),
    'without exp': await sign({ exp: undefined }),
    expired: await sign({ exp: seconds - 1 }),
    'valid for an hour': await sign({ exp: seconds + 3600 }),
    'not valid yet': await sign({ nbf: seconds + 120 }),
    'issued in the future': await sign({ iat: seconds + 120 }),
    'without jti': await sign({ jti: undefined }),
    'with an empty jti': await sign({ jti: '' }),
    'with a long jti': await sign({ jti: 'x'.repeat(256) }),
    'with an unknown kid': await sign({}, { kid: 'key-2' }),
    'with a critical parameter': await sign({}, { crit: ['b64'], b64: true }),
    'with another type': await sign({}, { typ: 'dpop+jwt' }),
    unsigned: `${encode({ alg: 'none', kid: 'key-1' })}.${claims64}.`,
    'with alg none and a signature': `${encode({ alg: 'none', kid: 'key-1' })}.${claims64}.${signature}`,
    'by HMAC with the id': await hmac.setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(id)),
    'no JWT': 'assertion',
  };
  for (const [name, assertion] of Object.entries(cases))
    t.match(await send(assertion), { status: 401, body: { error: 'invalid_client' } }, name);
  t.match(await send(await sign(), { client_id: other.client_id }), { status: 401 }, 'client_id of another');
  t.match(await requestToken(server, { grant_type: 'client_credentials', client_id: id }), { status: 401 });
  t.equal((await send(await sign({}, {}, privateKey))).status, 200, 'the client itself');
});

t.test('keys are loaded from jwks_uri, again for an unknown key, and kept during an outage', async (t) => {
  const keys = await startTokenIssuer(t, { alg: 'ES256' });
  const server = await startAuthServer(t, { ...oauthServer, OAUTH_SERVER_PRIVATE_HOSTS: '127.0.0.1' });
  const { client_id: id } = await createMachine(server, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: `${keys.issuer}/jwks`,
  });
  let count = 0;
  const statusOf = async () => {
    count += 1;
    const seconds = Math.floor(server.clock.nowMs() / 1000);
    const times = { iat: seconds, exp: seconds + 60 };
    const assertion = await keys.sign({ iss: id, sub: id, aud: issuer, jti: `${count}`, ...times });
    return (await requestToken(server, assertionForm(assertion))).status;
  };
  t.equal(await statusOf(), 200);
  t.equal(await statusOf(), 200);
  t.equal(keys.requests.length, 1, 'keys are cached');
  await keys.rotate('key-2');
  t.equal(await statusOf(), 401, 'loads that unknown keys cause have a cooldown');
  server.clock.advance(30_000);
  t.equal(await statusOf(), 200);
  t.equal(keys.requests.length, 2);
  keys.become('down');
  server.clock.advance(10 * 60_000);
  t.equal(await statusOf(), 200);
  t.equal(keys.requests.length, 3);
});

t.test('our SDK authenticates with a key, and with a secret', async (t) => {
  const { server, id, privateKey } = await start(t);
  const at = { site: server.url, tokenEndpoint: '/oauth/token' } as const;
  const signing = new Client({
    ...at,
    clientId: id,
    clientAuth: { method: 'private_key_jwt', algorithm: 'ES256', key: privateKey, audience: issuer },
  });
  const { token: signed } = await signing.clientCredentials.getToken();
  t.equal((await checkRequest(server, signed)).status, 200);
  const machine = await createMachine(server, { scopes: ['orders:read'] });
  const { client_id: clientId, client_secret: clientSecret } = machine;
  for (const clientAuth of ['client_secret_basic', 'client_secret_post'] as const) {
    const client = new Client({ ...at, clientId, clientSecret, clientAuth });
    const { token, scope } = await client.clientCredentials.getToken({ scope: 'orders:read' });
    t.same(scope, ['orders:read']);
    t.equal((await checkRequest(server, token)).headers.get('x-auth-scope'), 'orders:read');
  }
});
