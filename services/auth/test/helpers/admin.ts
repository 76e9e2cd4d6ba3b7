import { signJwt } from '../../src/keys/jwt.ts';
import { parseSigningKeys } from '../../src/keys/signing-keys.ts';
import { jwtSecret } from './auth-server.ts';

/** An administrator's token without session and expiry. */
export function adminToken(claims: Readonly<Record<string, unknown>> = {}): string {
  const parsed = parseSigningKeys({ jwtSecret, jwtKeys: '', jwtKeyId: '' });
  if (!parsed.ok) throw new Error(parsed.expected);
  return signJwt({ sub: '1234567890', role: 'supabase_admin', ...claims }, parsed.keys);
}
