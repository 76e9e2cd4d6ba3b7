import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import t from 'tap';
import { proofAlgorithms, verifyProof } from '../../src/dpop/proof.ts';
import { normalizeUrl } from '../../src/dpop/url.ts';
import { createProver } from '../helpers/dpop.ts';

const nowMs = 1_790_000_000_000;
const url = 'https://auth.example/oauth/token';
const token = 'an access token';
const seconds = nowMs / 1000;
const prover = await createProver(() => nowMs);
const { prove, publicJwk, privateJwk } = prover;

const verify = (proof: string, more: object = {}) =>
  verifyProof(proof, { method: 'POST', url, ...more }, nowMs);

for (const alg of ['RS256', 'PS384', 'ES256', 'ES512', 'EdDSA'])
  t.test(`a proof by ${alg} has the thumbprint of its key`, async (t) => {
    const other = await createProver(() => nowMs, { alg });
    t.match(verify(await other.prove(url)), { ok: true, proof: { thumbprint: other.thumbprint } });
    t.ok(proofAlgorithms.includes(alg));
  });

t.test('forged and confused proofs are refused, with the reason', async (t) => {
  const other = await createProver(() => nowMs);
  const rsa = await createProver(() => nowMs, { alg: 'RS256' });
  const good = await prove(url);
  const [header64 = '', claims64 = '', signature = ''] = good.split('.');
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const secret = Buffer.from(JSON.stringify(publicJwk));
  const hmac = new SignJWT({ jti: 'x', htm: 'POST', htu: url, iat: seconds });
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const cases: Readonly<Record<string, readonly [string, RegExp]>> = {
    empty: ['', /exactly one signed JWT/],
    'no JWT': ['proof', /exactly one signed JWT/],
    'two headers': [`${good},${good}`, /exactly one signed JWT/],
    'two headers with a blank': [`${good}, ${good}`, /exactly one signed JWT/],
    'too long': [await prove(url, { claims: { pad: 'x'.repeat(4096) } }), /exactly one signed JWT/],
    'without typ': [await prove(url, { header: { typ: undefined } }), /typ/],
    'with typ JWT': [await prove(url, { header: { typ: 'JWT' } }), /typ/],
    'with typ at+jwt': [await prove(url, { header: { typ: 'at+jwt' } }), /typ/],
    unsigned: [
      `${encode({ typ: 'dpop+jwt', alg: 'none', jwk: publicJwk })}.${claims64}.${signature}`,
      /its alg must be one of/,
    ],
    'by HMAC': [
      await hmac.setProtectedHeader({ alg: 'HS256', typ: 'dpop+jwt', jwk: publicJwk }).sign(secret),
      /its alg must be one of/,
    ],
    'with a symmetric key': [
      await prove(url, { header: { jwk: { kty: 'oct', k: 'c2VjcmV0' } } }),
      /private key/,
    ],
    'with the private key': [await prove(url, { header: { jwk: privateJwk } }), /private key/],
    'without jwk': [await prove(url, { header: { jwk: undefined } }), /no jwk/],
    'with jwk as text': [await prove(url, { header: { jwk: JSON.stringify(publicJwk) } }), /no jwk/],
    'with a key of another type': [await prove(url, { header: { jwk: rsa.publicJwk } }), /its alg is not/],
    'with a small key': [await prove(url, { header: { jwk: small } }), /1024 bits/],
    'with a key for encryption': [await prove(url, { header: { jwk: { ...publicJwk, use: 'enc' } } }), /use/],
    'with a point off the curve': [
      await prove(url, { header: { jwk: { ...publicJwk, x: publicJwk.y } } }),
      /cannot be used/,
    ],
    'with the key of another': [await prove(url, { header: { jwk: other.publicJwk } }), /signature/],
    'with critical parameters': [
      `${encode({ typ: 'dpop+jwt', alg: 'ES256', jwk: publicJwk, crit: ['b64'] })}.${claims64}.${signature}`,
      /critical/,
    ],
    'with other claims': [`${header64}.${encode({ jti: 'x' })}.${signature}`, /signature/],
    'without jti': [await prove(url, { claims: { jti: undefined } }), /jti/],
    'with an empty jti': [await prove(url, { claims: { jti: '' } }), /jti/],
    'with a long jti': [await prove(url, { claims: { jti: 'x'.repeat(256) } }), /jti/],
    'for another method': [await prove(url, { method: 'GET' }), /htm/],
    'for a method in lower case': [await prove(url, { method: 'post' }), /htm/],
    'for another path': [await prove('https://auth.example/oauth/par'), /htu/],
    'for a path below': [await prove(`${url}/`), /htu/],
    'for another host': [await prove('https://auth.example.evil/oauth/token'), /htu/],
    'for another port': [await prove('https://auth.example:8443/oauth/token'), /htu/],
    'for another scheme': [await prove('http://auth.example/oauth/token'), /htu/],
    'for a path only': [await prove('/oauth/token'), /htu/],
    'for a URL with a user': [await prove('https://me@auth.example/oauth/token'), /htu/],
    'without iat': [await prove(url, { claims: { iat: undefined } }), /iat/],
    'with iat as text': [await prove(url, { claims: { iat: String(seconds) } }), /iat/],
    'of the future': [await prove(url, { claims: { iat: seconds + 31 } }), /iat is more than 30 s ahead/],
    'of the past': [await prove(url, { claims: { iat: seconds - 61 } }), /iat is more than 60 s ago/],
  };
  for (const [name, [proof, reason]] of Object.entries(cases))
    t.match(verify(proof), { ok: false, reason }, name);
  t.match(verify(good), { ok: true });
  t.match(verify(await prove(url, { claims: { iat: seconds + 29 } })), { ok: true }, 'a fast clock');
  t.match(verify(await prove(url, { claims: { iat: seconds - 59 } })), { ok: true }, 'a slow clock');
});

t.test('the proof of a request with a token is for this token and its key', async (t) => {
  const bound = { accessToken: token, thumbprint: prover.thumbprint };
  const other = await createProver(() => nowMs);
  t.match(verify(await prove(url, { token }), bound), { ok: true });
  t.match(verify(await prove(url), bound), { reason: /ath/ });
  t.match(verify(await prove(url, { token: 'another' }), bound), { reason: /ath/ });
  t.match(verify(await other.prove(url, { token }), bound), { reason: /key is not that of the token/ });
});

t.test('a key has one thumbprint, however its proof encodes it', async (t) => {
  const padded = { ...publicJwk, x: `${publicJwk.x}=`, kid: 'key-1', more: 'members' };
  const result = verify(await prove(url, { header: { jwk: padded } }));
  t.match(result, { ok: true, proof: { thumbprint: prover.thumbprint } });
});

t.test('URLs are compared without query and fragment, and normalized', (t) => {
  const same = ['https://a.example/x~y', 'HTTPS://A.example:443/x~y', 'https://a.example/x%7ey?a#b'];
  for (const text of [...same, 'https://a.example/z/../x~y']) t.equal(normalizeUrl(text), same[0], text);
  t.equal(normalizeUrl('https://a.example'), 'https://a.example/');
  t.equal(normalizeUrl('https://a.example/%2f%e4'), 'https://a.example/%2F%E4', 'other escapes stay');
  const others = ['', '*', 'a.example/x', 'ftp://a.example/', 'https:a.example', 'https://a.example\\x'];
  for (const text of [...others, ' https://a.example/', 'https://a@b.example/', 'https:///x'])
    t.equal(normalizeUrl(text), undefined, text);
  t.end();
});
