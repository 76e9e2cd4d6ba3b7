import { Secret, TOTP } from 'otpauth';
import { type AuthServer, type SignedIn, signedIn } from './auth-server.ts';

/** Enrolls and verifies a TOTP factor. Returns the session, which has `aal2`. */
export async function enrollTotp(
  server: Pick<AuthServer, 'call' | 'clock'>,
  { accessToken: token }: SignedIn,
): Promise<SignedIn> {
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  // Parsed boundary: tests with the client library verify the shape.
  const { id, totp } = enrolled.body as { id: string; totp: { secret: string } };
  const challenge = await server.call('POST', `/factors/${id}/challenge`, { token });
  const secret = Secret.fromBase32(totp.secret);
  const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
  const body = { challenge_id: challenge.body.id, code };
  return signedIn(await server.call('POST', `/factors/${id}/verify`, { token, body }));
}
