import { CompactEncrypt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { encodeBase64Url } from '../../src/encoding.ts';
import type { JwsAlgorithm } from '../../src/jwt/algorithms.ts';
import { LocalKeySource } from '../../src/jwt/key-sources.ts';
import { verifyJwt } from '../../src/jwt/verify.ts';

const claims = { sub: 'user', name: 'Zoë' };

async function makeIssuer(algorithm: JwsAlgorithm, keyId?: string) {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), ...(keyId !== undefined && { kid: keyId }) };
  const sign = () =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) })
      .sign(privateKey);
  return { jwk, sign };
}

function unsigned(header: object): string {
  return `${encodeBase64Url(JSON.stringify(header))}.${encodeBase64Url(JSON.stringify(claims))}.${encodeBase64Url('x')}`;
}

for (const algorithm of ['RS256', 'PS384', 'ES256', 'ES512', 'EdDSA', 'Ed25519'] as const) {
  t.test(`a JWT that another implementation signed with ${algorithm} is verified`, async (t) => {
    const issuer = await makeIssuer(algorithm, 'k1');
    const keys = new LocalKeySource({ keys: [issuer.jwk] });
    const verified = await verifyJwt(await issuer.sign(), { keys, algorithms: [algorithm] });
    t.same(verified, { header: { alg: algorithm, kid: 'k1' }, claims });
  });
}

t.test('without kid every suitable key is tried', async (t) => {
  const issuers = await Promise.all([
    makeIssuer('ES256'),
    makeIssuer('ES256'),
    makeIssuer('ES384'),
    makeIssuer('RS256'),
  ]);
  const keys = new LocalKeySource({ keys: issuers.map(({ jwk }) => jwk) });
  const jwt = (await issuers[1]?.sign()) ?? '';
  t.same((await verifyJwt(jwt, { keys, algorithms: ['ES256', 'RS256'] })).claims, claims);
});

t.test('a malformed key of the set does not affect the others', async (t) => {
  const issuer = await makeIssuer('ES256', 'k1');
  const broken = [
    { kty: 'EC', crv: 'P-256', x: '!', y: '!', kid: 'k1' },
    { kty: 'RSA', n: 1, e: {} },
    {},
  ] as never[];
  const keys = new LocalKeySource({ keys: [...broken, issuer.jwk] });
  t.same((await verifyJwt(await issuer.sign(), { keys, algorithms: ['ES256'] })).claims, claims);
});

t.test('keys meant for encryption, for another algorithm or another operation are not used', async (t) => {
  const issuer = await makeIssuer('RS256', 'k1');
  for (const restriction of [{ use: 'enc' }, { alg: 'PS256' }, { key_ops: ['encrypt'] }]) {
    const keys = new LocalKeySource({ keys: [{ ...issuer.jwk, ...restriction }] });
    const rejected = verifyJwt(await issuer.sign(), { keys, algorithms: ['RS256'] });
    await t.rejects(rejected, {
      name: 'JwtError',
      reason: 'key_not_found',
      message: /RS256 and kid "k1"/,
    });
  }
});

t.test('claims changed after signing, or signed by another key, are rejected', async (t) => {
  const issuer = await makeIssuer('ES256', 'k1');
  const other = await makeIssuer('ES256', 'k1');
  const keys = new LocalKeySource({ keys: [issuer.jwk] });
  const [header, , signature] = (await issuer.sign()).split('.');
  const changed = `${header}.${encodeBase64Url(JSON.stringify({ ...claims, sub: 'root' }))}.${signature}`;
  await t.rejects(verifyJwt(changed, { keys, algorithms: ['ES256'] }), {
    name: 'JwtError',
    reason: 'signature',
  });
  await t.rejects(verifyJwt(await other.sign(), { keys, algorithms: ['ES256'] }), {
    name: 'JwtError',
    reason: 'signature',
  });
});

t.test(
  'the token does not choose its algorithm: none, HMAC with a public key, or one that is not accepted',
  async (t) => {
    const issuer = await makeIssuer('RS256');
    const keys = new LocalKeySource({ keys: [issuer.jwk] });
    for (const alg of ['none', 'HS256', 'RS384', 'toString', 5]) {
      const rejected = verifyJwt(unsigned({ alg }), { keys, algorithms: ['RS256'] });
      await t.rejects(
        rejected,
        { name: 'JwtError', reason: 'algorithm', message: /accepted: RS256/ },
        String(alg),
      );
    }
  },
);

t.test('texts that are no JWT are rejected with their kind', async (t) => {
  const issuer = await makeIssuer('RS256');
  const keys = new LocalKeySource({ keys: [issuer.jwk] });
  const encrypted = await new CompactEncrypt(new Uint8Array(3))
    .setProtectedHeader({ alg: 'dir', enc: 'A128GCM' })
    .encrypt(new Uint8Array(16));
  const verify = (jwt: string) => verifyJwt(jwt, { keys, algorithms: ['RS256'] });
  await t.rejects(verify(encrypted), { name: 'JwtError', reason: 'encrypted' });
  const good = unsigned({ alg: 'RS256' });
  const array = `${encodeBase64Url('[]')}.${encodeBase64Url('{}')}.`;
  const malformed = ['', 'a.b', 'a.b.c', `${good}.`, `${good}=`, array, `x${'y'.repeat(300_000)}`];
  for (const jwt of malformed)
    await t.rejects(verify(jwt), { name: 'JwtError', reason: 'malformed' }, jwt.slice(0, 20));
  await t.rejects(verify(unsigned({ alg: 'RS256', crit: ['exp'] })), {
    reason: 'malformed',
    message: /critical/,
  });
});

t.test('a claim named __proto__ is an ordinary claim', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const keys = new LocalKeySource({ keys: [await exportJWK(publicKey)] });
  const payload: Record<string, unknown> = JSON.parse('{"__proto__":{"admin":true}}');
  const jwt = await new SignJWT(payload).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
  const verified = await verifyJwt(jwt, { keys, algorithms: ['ES256'] });
  t.notOk('admin' in verified.claims);
});
