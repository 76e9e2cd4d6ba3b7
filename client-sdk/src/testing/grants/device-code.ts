import { ProtocolError } from '../protocol-error.ts';
import type { GrantHandler, GrantOutcome } from '../server-context.ts';

/**
 * Answers a polling device: pending, too fast, denied, expired, or tokens.
 *
 * @see RFC 8628 §3.5 https://www.rfc-editor.org/rfc/rfc8628#section-3.5
 */
export const deviceCodeGrant: GrantHandler = (context, { clientId }, params) => {
  const code = params.get('device_code') ?? '';
  const device = context.devices.get(code);
  if (device === undefined || device.clientId !== clientId)
    return refuse('invalid_grant', 'unknown device code');
  const now = context.now();
  if (device.expiresAt <= now) return refuse('expired_token', 'the device code has expired');
  const tooSoon = device.lastPolledAt !== undefined && now - device.lastPolledAt < device.intervalSeconds;
  device.lastPolledAt = now;
  if (device.decision === 'denied') return refuse('access_denied', 'the user said no');
  if (device.decision !== 'pending') {
    context.devices.delete(code);
    const grant = { clientId, subject: device.decision.subject, scope: device.scope, revoked: false };
    return { ok: true, grant, withRefreshToken: true };
  }
  if (!tooSoon) return refuse('authorization_pending', 'the user has not decided yet');
  // RFC 8628 §3.5: the client must wait five seconds longer from now on.
  device.intervalSeconds += 5;
  return refuse('slow_down', 'polled before the interval was over');
};

function refuse(code: string, description: string): GrantOutcome {
  return { ok: false, error: new ProtocolError(code, description) };
}
