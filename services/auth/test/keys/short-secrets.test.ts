import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { parseSigningKeys, shortSecrets } from '../../src/keys/signing-keys.ts';

function shortOf(jwtSecret: string, jwks: readonly object[] = []): string[] {
  const jwtKeys = jwks.length === 0 ? '' : JSON.stringify(jwks);
  const parsed = parseSigningKeys({ jwtSecret, jwtKeys, jwtKeyId: 'the secret' });
  if (!parsed.ok) throw new Error(parsed.expected);
  return shortSecrets(parsed.keys).map(({ kid }) => kid);
}

const secret = 'x'.repeat(32);
const signing = {
  ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }),
  ...{ kid: 'one', alg: 'EdDSA', key_ops: ['sign', 'verify'] },
};

function octet(kid: string, bytes: number) {
  const k = Buffer.alloc(bytes, 1).toString('base64url');
  return { kty: 'oct', alg: 'HS256', kid, k, key_ops: ['verify'] };
}

t.test('JWT_SECRET under 32 bytes is reported if HS256 tokens are accepted', (t) => {
  t.same(shortOf('x'.repeat(31)), ['the secret']);
  t.same(shortOf(secret), []);
  t.same(shortOf('ü'.repeat(16)), [], 'bytes count, not characters');
  t.same(shortOf('short', [signing]), [], 'it verifies nothing');
  t.same(shortOf('short', [signing, octet('old', 32)]), ['the secret']);
  t.end();
});

t.test('secrets under 32 bytes among the keys are reported', (t) => {
  t.same(shortOf(secret, [signing, octet('long', 32), octet('weak', 31)]), ['weak']);
  t.end();
});
