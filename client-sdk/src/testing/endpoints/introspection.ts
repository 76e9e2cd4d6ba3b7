import { authenticateClient } from '../authenticate-client.ts';
import type { EndpointRequest, ServerContext } from '../server-context.ts';

/**
 * Says whether a token is active, and what it stands for.
 *
 * @throws ProtocolError `invalid_client`.
 * @see RFC 7662 §2.2 https://www.rfc-editor.org/rfc/rfc7662#section-2.2
 */
export async function introspectionEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  await authenticateClient(context, request);
  const token = context.ledger.findActive(request.params.get('token') ?? '');
  if (token === undefined) return Response.json({ active: false });
  return Response.json({
    active: true,
    scope: token.grant.scope,
    client_id: token.grant.clientId,
    sub: token.grant.subject,
    ...(token.kind === 'access_token' && { token_type: 'Bearer' }),
    iss: context.settings.issuer,
    iat: token.issuedAt,
    exp: token.expiresAt,
  });
}
