import { exportPKCS8, exportSPKI, generateKeyPair, importSPKI, jwtVerify } from 'jose';
import t from 'tap';
import { encodeBase64Url } from '../../src/encoding.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { type JwsAlgorithm, jwsAlgorithms } from '../../src/jwt/algorithms.ts';
import { importKey } from '../../src/jwt/import-key.ts';
import { signJwt } from '../../src/jwt/sign.ts';

const claims = { iss: 'client', sub: 'client', aud: 'https://as.example', note: 'Grüße 🌍' };
const asymmetric = Object.keys(jwsAlgorithms).filter((name) => !name.startsWith('HS'));

function pem(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64')}\n-----END ${label}-----\n`;
}

for (const algorithm of asymmetric as JwsAlgorithm[]) {
  t.test(`a JWT signed with ${algorithm} from a PEM key is accepted by another implementation`, async (t) => {
    const pair = await generateKeyPair(algorithm, { extractable: true });
    const jwt = await signJwt(claims, { algorithm, key: await exportPKCS8(pair.privateKey), keyId: 'k1' });
    const verified = await jwtVerify(jwt, await importSPKI(await exportSPKI(pair.publicKey), algorithm));
    t.same(verified.payload, claims);
    t.same(verified.protectedHeader, { typ: 'JWT', alg: algorithm, kid: 'k1' });
  });
}

for (const algorithm of ['HS256', 'HS384', 'HS512'] as const) {
  t.test(
    `a JWT signed with ${algorithm} and a shared secret is accepted by another implementation`,
    async (t) => {
      const secret = 'a secret of more than thirty-two bytes, with ümlauts';
      const jwt = await signJwt(claims, { algorithm, key: secret });
      const verified = await jwtVerify(jwt, new TextEncoder().encode(secret));
      t.same(verified.payload, claims);
    },
  );
}

t.test('the example of RFC 7515 A.1 is reproduced', async (t) => {
  const key = {
    kty: 'oct',
    k: 'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
  };
  const imported = await importKey(key, 'HS256', 'sign');
  // The example's JSON holds CR LF and spaces, so the signing input is the RFC's own text rather
  // than ours.
  const input =
    'eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ';
  const signature = await crypto.subtle.sign('HMAC', imported, new TextEncoder().encode(input));
  t.equal(encodeBase64Url(new Uint8Array(signature)), 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
});

t.test('a PKCS#1 key, as issued by GitHub, is accepted', async (t) => {
  const { generateKeyPairSync } = await import('node:crypto');
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const jwt = await signJwt(claims, { algorithm: 'RS256', key });
  t.same((await jwtVerify(jwt, publicKey)).payload, claims);
});

t.test('a JSON Web Key signs, whatever its alg, use and key_ops say', async (t) => {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ]);
  const jwk = {
    ...(await crypto.subtle.exportKey('jwk', pair.privateKey)),
    use: 'enc',
    key_ops: ['decrypt'],
  };
  const jwt = await signJwt(claims, { algorithm: 'ES256', key: jwk });
  t.same((await jwtVerify(jwt, pair.publicKey)).payload, claims);
});

t.test('additional header members are kept, but alg and kid are those of the key', async (t) => {
  const jwt = await signJwt(claims, {
    algorithm: 'HS256',
    key: 'secret',
    keyId: 'mine',
    header: { typ: 'dpop+jwt', alg: 'none', kid: 'other', extra: 1 },
  });
  const header: unknown = JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString());
  t.same(header, { typ: 'dpop+jwt', alg: 'HS256', kid: 'mine', extra: 1 });
});

t.test('an imported key is returned unchanged', async (t) => {
  const key = await importKey('secret', 'HS256', 'sign');
  t.equal(await importKey(key, 'HS256', 'sign'), key);
});

t.test('keys that cannot sign are rejected with advice', async (t) => {
  const { generateKeyPairSync } = await import('node:crypto');
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
  const hmac = await importKey('secret', 'HS256', 'sign');
  const p256 = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
    'verify',
  ]);
  const cases = [
    {
      algorithm: 'RS256',
      key: weak.privateKey.export(pkcs8).toString(),
      says: /at least 2048 bits; this one has 1024/,
    },
    { algorithm: 'RS256', key: ec.privateKey.export(pkcs8).toString(), says: /not usable with RS256/ },
    { algorithm: 'ES384', key: ec.privateKey.export(pkcs8).toString(), says: /not usable with ES384/ },
    { algorithm: 'ES384', key: p256.privateKey, says: /for ECDSA P-256, which is not ES384/ },
    { algorithm: 'ES256', key: p256.publicKey, says: /does not allow "sign"/ },
    { algorithm: 'HS512', key: hmac, says: /for HMAC SHA-256, which is not HS512/ },
    { algorithm: 'HS256', key: '', says: /secret for HS256 is empty/ },
    {
      algorithm: 'HS256',
      key: rsa.privateKey.export(pkcs8).toString(),
      says: /shared secret; got a PEM text/,
    },
    { algorithm: 'RS256', key: new Uint8Array(8), says: /needs a CryptoKey, a JSON Web Key or a PEM text/ },
    { algorithm: 'RS256', key: 'secret', says: /expected a PEM text/ },
    { algorithm: 'RS256', key: { kty: 'EC' }, says: /kty RSA/ },
    { algorithm: 'ES256', key: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }, says: /private JSON Web Key/ },
    {
      algorithm: 'RS256',
      key: rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      says: /private key is needed/,
    },
    {
      algorithm: 'RS256',
      key: rsa.privateKey.export({ ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'x' }).toString(),
      says: /encrypted; decrypt it first/,
    },
    {
      algorithm: 'RS256',
      key: rsa.privateKey
        .export({ type: 'pkcs1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
        .toString(),
      says: /encrypted; decrypt it first/,
    },
    {
      algorithm: 'ES256',
      key: ec.privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
      says: /openssl pkcs8 -topk8/,
    },
    { algorithm: 'RS256', key: pem('CERTIFICATE', new Uint8Array(8)), says: /a certificate is not a key/ },
    {
      algorithm: 'none' as JwsAlgorithm,
      key: 'secret',
      says: /algorithm must be one of HS256, .*; got "none"/,
    },
  ] as const;
  for (const { algorithm, key, says } of cases) {
    await t.rejects(
      signJwt(claims, { algorithm, key }),
      { constructor: ConfigurationError, message: says },
      String(says),
    );
  }
});
