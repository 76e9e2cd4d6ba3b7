import { generateKeyPairSync } from 'node:crypto';
import { createRemoteJWKSet, jwtVerify, SignJWT } from 'jose';
import t from 'tap';
import { signJwt, verifyJwt } from '../../src/keys/jwt.ts';
import { parseSigningKeys } from '../../src/keys/signing-keys.ts';
import { jwtSecret, signUp, startAuthServer } from '../helpers/auth-server.ts';

const pairs = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS512: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

function jwkOf(alg: keyof typeof pairs, kid: string, keyOps: readonly string[] = ['sign', 'verify']) {
  return { ...pairs[alg]().privateKey.export({ format: 'jwk' }), alg, kid, key_ops: keyOps };
}

for (const alg of ['RS256', 'RS512', 'ES256', 'ES512', 'EdDSA'] as const) {
  t.test(`tokens signed with ${alg} verify with the keys of JWKS`, async (t) => {
    const server = await startAuthServer(t, { JWT_KEYS: JSON.stringify([jwkOf(alg, 'now')]) });
    const { accessToken, userId } = await signUp(server);
    const jwks = createRemoteJWKSet(new URL(`${server.url}/.well-known/jwks.json`));
    const { payload, protectedHeader } = await jwtVerify(accessToken, jwks);
    t.match(protectedHeader, { alg, kid: 'now', typ: 'JWT' });
    t.match(payload, { sub: userId, role: 'authenticated', aal: 'aal1', amr: [{ method: 'password' }] });
    t.equal((await server.call('GET', '/user', { token: accessToken })).status, 200);

    const { headers, body, text } = await server.call('GET', '/.well-known/jwks.json');
    t.equal(headers.get('cache-control'), 'public, max-age=600');
    t.match(body, { keys: [{ kid: 'now', alg, use: 'sig', key_ops: ['verify'] }] });
    t.notMatch(text, /"(?:d|p|q|dp|dq|qi|k)":/, 'no private part');
  });
}

t.test('a previous key verifies tokens, and JWT_SECRET no longer does', async (t) => {
  const before = jwkOf('ES256', 'before', ['verify']);
  const now = jwkOf('ES256', 'now');
  const server = await startAuthServer(t, { JWT_KEYS: JSON.stringify([before, now]) });
  const { accessToken } = await signUp(server);
  t.match(Buffer.from(accessToken.split('.')[0] ?? '', 'base64url').toString(), '"now"');
  const { body } = await server.call('GET', '/.well-known/jwks.json');
  t.match(body, { keys: [{ kid: 'before' }, { kid: 'now' }] });

  const forged = await new SignJWT({ role: 'service_role' })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('1h')
    .sign(Buffer.from(jwtSecret));
  t.match(await server.call('GET', '/user', { token: forged }), {
    status: 403,
    body: { error_code: 'bad_jwt' },
  });
});

t.test('tokens without kid are uses of JWT_SECRET in JWT_KEYS', (t) => {
  const k = Buffer.from(jwtSecret).toString('base64url');
  const ofSecret = { kty: 'oct', alg: 'HS256', kid: 'jwt-secret', k, key_ops: ['verify'] };
  const parse = (keys: readonly object[]) => {
    const jwtKeys = keys.length === 0 ? '' : JSON.stringify(keys);
    const parsed = parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys });
    if (!parsed.ok) throw new Error(parsed.expected);
    return parsed.keys;
  };
  const token = signJwt({ sub: 'ada' }, parse([]));
  const other = { ...ofSecret, kid: 'other', k: Buffer.alloc(32, 1).toString('base64url') };
  const rotated = parse([jwkOf('ES256', 'now'), other, ofSecret]);
  t.ok(verifyJwt(token, rotated, 1000).ok);
  t.strictSame([...rotated.verifiedMs], [['jwt-secret', 1000]]);
  t.end();
});

t.test('HS256 with a public key as secret is rejected', async (t) => {
  const parsed = parseSigningKeys({
    jwtSecret,
    jwtKeyId: '',
    jwtKeys: JSON.stringify([
      jwkOf('RS256', 'rsa'),
      { kty: 'oct', alg: 'HS256', kid: 'oct', k: 'c2VjcmV0', key_ops: ['verify'] },
    ]),
  });
  if (!parsed.ok) throw new Error(parsed.expected);
  const rsa = parsed.keys.byKid.get('rsa');
  const pem = rsa?.verifyingKey.export({ format: 'pem', type: 'spki' }) ?? '';
  const forged = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
    .sign(Buffer.from(pem));
  t.same(verifyJwt(forged, parsed.keys, 0), { ok: false, reason: 'signing method is invalid' });
});

t.test('invalid keys are named but not revealed', (t) => {
  const expectedOf = (jwtKeys: unknown): string | undefined => {
    const text = typeof jwtKeys === 'string' ? jwtKeys : JSON.stringify(jwtKeys);
    const parsed = parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys: text });
    return parsed.ok ? undefined : parsed.expected;
  };
  t.match(expectedOf('{'), 'a JSON array of JWKs');
  t.match(expectedOf([]), 'a JSON array of JWKs');
  t.match(expectedOf([jwkOf('ES256', 'a', ['verify'])]), 'exactly one key whose key_ops has "sign", found 0');
  t.match(expectedOf([jwkOf('ES256', 'a'), jwkOf('ES256', 'b')]), 'found 2');
  t.match(expectedOf([jwkOf('ES256', 'a'), jwkOf('ES256', 'a', ['verify'])]), 'keys with different kids');
  t.match(expectedOf([{ ...jwkOf('ES256', 'a'), alg: 'none' }]), 'an alg of HS256');
  t.match(expectedOf([{ ...jwkOf('ES256', 'a'), alg: 'RS256' }]), 'kty RSA in key a');
  t.match(expectedOf([{ ...jwkOf('ES256', 'a'), alg: 'ES512' }]), 'crv P-521 in key a');
  t.match(
    expectedOf([{ ...jwkOf('ES256', 'a'), d: undefined }]),
    /^a private key \(d\) in key a, .* KMS are not supported$/,
  );
  t.end();
});

t.test('a verification key needs only its public part', async (t) => {
  const before = jwkOf('ES256', 'before');
  const { d: _private, ...publicPart } = before;
  const old = parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys: JSON.stringify([before]) });
  const jwtKeys = JSON.stringify([jwkOf('ES256', 'now'), { ...publicPart, key_ops: ['verify'] }]);
  const parsed = parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys });
  if (!parsed.ok || !old.ok) throw new Error('keys are not parsed');
  t.match(verifyJwt(signJwt({ sub: 'ada' }, old.keys), parsed.keys, 0), { ok: true, claims: { sub: 'ada' } });
  t.equal(parsed.keys.current.kid, 'now');
  t.match(parsed.keys.byKid.get('before')?.publicJwk, { kid: 'before', alg: 'ES256', use: 'sig' });

  const broken = JSON.stringify([
    jwkOf('ES256', 'now'),
    { ...publicPart, y: undefined, key_ops: ['verify'] },
  ]);
  t.match(parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys: broken }), {
    ok: false,
    expected: 'a complete public key in key before',
  });
});

t.test('a token with an unknown key is rejected with that reason', async (t) => {
  const now = parseSigningKeys({ jwtSecret, jwtKeyId: '', jwtKeys: JSON.stringify([jwkOf('ES256', 'now')]) });
  const other = parseSigningKeys({
    jwtSecret,
    jwtKeyId: '',
    jwtKeys: JSON.stringify([jwkOf('ES256', 'gone')]),
  });
  if (!now.ok || !other.ok) throw new Error('keys are not parsed');
  t.same(verifyJwt(signJwt({}, other.keys), now.keys, 0), {
    ok: false,
    reason: 'no key has the kid of the token',
  });
});
