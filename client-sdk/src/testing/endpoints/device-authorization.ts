import { authenticateClient } from '../authenticate-client.ts';
import type { EndpointRequest, ServerContext } from '../server-context.ts';

/**
 * Starts a device flow.
 *
 * @throws ProtocolError `invalid_client`.
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
export async function deviceAuthorizationEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  const { settings, devices, now } = context;
  const { clientId } = await authenticateClient(context, request);
  const deviceCode = `device-${crypto.randomUUID()}`;
  const userCode = crypto.randomUUID().slice(0, 8).toUpperCase();
  devices.set(deviceCode, {
    ...{ clientId, userCode, scope: request.params.get('scope') ?? '', lastPolledAt: undefined },
    ...{ expiresAt: now() + settings.deviceCodeTtlSeconds, intervalSeconds: settings.deviceIntervalSeconds },
    decision: 'pending',
  });
  const verificationUri = `${settings.issuer}/device`;
  return Response.json({
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: verificationUri,
    verification_uri_complete: `${verificationUri}?user_code=${userCode}`,
    expires_in: settings.deviceCodeTtlSeconds,
    interval: settings.deviceIntervalSeconds,
  });
}
