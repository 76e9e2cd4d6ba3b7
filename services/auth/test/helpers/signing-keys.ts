import { generateKeyPairSync } from 'node:crypto';
import { jwtSecret } from './auth-server.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const secret = Buffer.from(jwtSecret).toString('base64url');

/** `JWT_KEYS` with a key that clients can verify with. Tokens of administrators have the secret. */
export const privateKeys = JSON.stringify([
  { ...privateKey.export({ format: 'jwk' }), kid: 'key', alg: 'ES256', key_ops: ['sign', 'verify'] },
  { kty: 'oct', k: secret, kid: 'secret', alg: 'HS256', key_ops: ['verify'] },
]);
