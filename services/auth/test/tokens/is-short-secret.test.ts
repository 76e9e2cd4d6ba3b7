import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { isShortSecret } from '../../src/tokens/is-short-secret.ts';

t.test('a secret is short below 32 bytes, if tokens of HS256 are taken at all', (t) => {
  const isShort = (jwtSecret: string, jwtKeys = '') => isShortSecret({ jwtSecret, jwtKeys, jwtKeyId: '' });
  t.equal(isShort('x'.repeat(31)), true);
  t.equal(isShort('x'.repeat(32)), false);
  t.equal(isShort('ü'.repeat(16)), false, 'bytes count, not characters');

  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const keys = JSON.stringify([{ ...jwk, kid: 'one', alg: 'EdDSA', key_ops: ['sign', 'verify'] }]);
  t.equal(isShort('short', keys), false, 'it verifies nothing');
  t.end();
});
