import { createHmac, generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { jwtSecret, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

function hs256(header: unknown, claims: unknown, secret: string | Buffer = jwtSecret): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

function claimsOf(token: string): Record<string, unknown> {
  // Parsed boundary: the middle of a JWT is JSON.
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    unknown
  >;
}

const badJwt = { status: 403, body: { error_code: 'bad_jwt' } };

t.test('public key of the JWKS is not accepted as an HS256 secret, in any form', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = {
    ...privateKey.export({ format: 'jwk' }),
    alg: 'RS256',
    kid: 'k',
    key_ops: ['sign', 'verify'],
  };
  const server = await startAuthServer(t, { JWT_KEYS: JSON.stringify([jwk]) });
  const { accessToken } = await signUp(server);
  const published = (await server.call('GET', '/.well-known/jwks.json')).text;
  for (const secret of [
    publicKey.export({ format: 'pem', type: 'spki' }),
    publicKey.export({ format: 'pem', type: 'pkcs1' }),
    publicKey.export({ format: 'der', type: 'spki' }),
    JSON.stringify(publicKey.export({ format: 'jwk' })),
    published,
  ]) {
    const forged = hs256({ alg: 'HS256', kid: 'k' }, claimsOf(accessToken), secret);
    t.match(await server.call('GET', '/user', { token: forged }), badJwt);
  }
});

t.test('claims are parsed only after the signature was verified', async (t) => {
  const server = await startAuthServer(t);
  const broken = '{"sub":';
  const refused = (msg: RegExp) => ({ status: 403, body: { error_code: 'bad_jwt', msg } });
  const forged = hs256({ alg: 'HS256' }, broken, 'another secret');
  t.match(await server.call('GET', '/user', { token: forged }), refused(/signature is invalid$/));
  const signed = hs256({ alg: 'HS256' }, broken);
  t.match(await server.call('GET', '/user', { token: signed }), refused(/token is malformed$/));
});

t.test('kid is only looked up: paths, prototypes and embedded keys are rejected', async (t) => {
  const server = await startAuthServer(t, { JWT_KEY_ID: 'real' });
  const { accessToken } = await signUp(server);
  const claims = claimsOf(accessToken);
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const own = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'EdDSA', kid: 'real', jwk: publicKey.export({ format: 'jwk' }) })
    .sign(privateKey);
  t.match(await server.call('GET', '/user', { token: own }), badJwt, 'a key in the header');
  for (const kid of ['../../../../dev/null', '__proto__', 'constructor', "' or 1=1 --", '']) {
    t.match(
      await server.call('GET', '/user', { token: hs256({ alg: 'HS256', kid }, claims, '') }),
      badJwt,
      `signed with nothing, ${kid}`,
    );
  }
});

t.test('JWKS does not contain the secret', async (t) => {
  const server = await startAuthServer(t);
  t.same((await server.call('GET', '/.well-known/jwks.json')).body, { keys: [] });
});

t.test('tokens without expiry are accepted for administrators only', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const { exp, ...endless } = claimsOf(accessToken);
  t.type(exp, 'number');
  t.match(await server.call('GET', '/user', { token: hs256({ alg: 'HS256' }, endless) }), badJwt);
  t.match(await server.call('GET', '/admin/users', { token: adminToken() }), { status: 200 });
  const expired = adminToken({ exp: Math.floor(server.clock.nowMs() / 1000) - 1 });
  t.match(await server.call('GET', '/admin/users', { token: expired }), badJwt);
});

t.test('malformed and future times are rejected', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const claims = claimsOf(accessToken);
  const now = Math.floor(server.clock.nowMs() / 1000);
  for (const times of [
    { exp: String(now + 60) },
    { exp: null },
    { exp: -1 },
    { nbf: now + 60 },
    { nbf: 'x' },
  ]) {
    const token = hs256({ alg: 'HS256' }, { ...claims, ...times });
    t.match(await server.call('GET', '/user', { token }), badJwt, JSON.stringify(times));
  }
});

t.test("a session is its user's only", async (t) => {
  const server = await startAuthServer(t);
  const ada = await signUp(server);
  const eve = await signUp(server, { email: 'eve@example.com' });
  const mixed = { ...claimsOf(ada.accessToken), session_id: claimsOf(eve.accessToken).session_id };
  t.match(await server.call('GET', '/user', { token: hs256({ alg: 'HS256' }, mixed) }), {
    status: 403,
    body: { error_code: 'session_not_found' },
  });
});

t.test('role of a user and malformed roles do not give access to /admin', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const notAdmin = { status: 403, body: { error_code: 'not_admin' } };
  t.match(await server.call('GET', '/admin/users', { token: accessToken }), notAdmin);
  for (const role of [
    ['supabase_admin'],
    { toString: 'supabase_admin' },
    'SUPABASE_ADMIN',
    'supabase_admin ',
    '',
  ])
    t.match(await server.call('GET', '/admin/users', { token: adminToken({ role, exp: 9e9 }) }), notAdmin);
});

t.test('two Authorization headers are rejected', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const headers = ['authorization', `Bearer ${accessToken}`];
  t.match(await rawRequest(server.url, '/user', { headers }), { status: 200 });
  const twice = await rawRequest(server.url, '/admin/users', {
    headers: [...headers, 'authorization', `Bearer ${adminToken()}`],
  });
  t.not(twice.status, 200);
  const joined = await server.call('GET', '/user', {
    headers: { authorization: `Bearer ${accessToken}, Bearer ${adminToken()}` },
  });
  t.match(joined, { status: 401, body: { error_code: 'no_authorization' } });
});

t.test('non-canonical paths do not bypass the check', async (t) => {
  const server = await startAuthServer(t);
  for (const path of [
    '/settings/../admin/users',
    '/settings/%2e%2e/admin/users',
    '//admin/users',
    '/./admin/users',
    '/%61dmin/users',
    '/admin%2fusers',
    '/ADMIN/users',
    '/admin/users/',
    '/admin/users;x=1',
    '/admin/users%00',
  ]) {
    const { status, text } = await rawRequest(server.url, path);
    t.ok([400, 401, 404].includes(status), `${path}: ${status}`);
    t.notMatch(text, /"users"/);
  }
});

t.test('tokens of other types are rejected', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const withType = (typ: unknown) => hs256({ alg: 'HS256', typ }, claimsOf(accessToken));
  for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt', undefined])
    t.match(await server.call('GET', '/user', { token: withType(typ) }), { status: 200 }, String(typ));
  for (const typ of ['logout+jwt', 'dpop+jwt', 'JWE', '', 7, null])
    t.match(await server.call('GET', '/user', { token: withType(typ) }), badJwt, String(typ));
});

t.test('with a required audience, tokens have one, and those of others are rejected', async (t) => {
  const server = await startAuthServer(t, {
    JWT_AUDIENCE_REQUIRED: 'true',
    JWT_AUDIENCES: 'partners',
    EXT_AUTHZ_ENABLED: 'true',
  });
  const { accessToken } = await signUp(server);
  const claims = claimsOf(accessToken);
  t.equal(claims.aud, 'authenticated');
  const user = (aud: unknown) =>
    server.call('GET', '/user', { token: hs256({ alg: 'HS256' }, { ...claims, aud }) });
  for (const aud of ['authenticated', 'partners', ['other', 'partners']])
    t.match(await user(aud), { status: 200 }, String(aud));
  for (const aud of [undefined, '', 'other', [], ['other'], 7])
    t.match(await user(aud), { ...badJwt, body: { msg: /aud is not an audience/ } }, String(aud));
  t.match(await server.call('GET', '/admin/users', { token: adminToken() }), badJwt);
  t.match(await server.call('GET', '/admin/users', { token: adminToken({ aud: 'authenticated' }) }), {
    status: 200,
  });
  const partner = await server.call('POST', '/signup', {
    body: { email: 'eva@example.com', password: 'correct horse' },
    headers: { 'x-jwt-aud': 'partners' },
  });
  const token = String(partner.body.access_token);
  t.equal(claimsOf(token).aud, 'partners');
  t.match(await server.call('GET', '/user', { token }), { status: 200 });
});
