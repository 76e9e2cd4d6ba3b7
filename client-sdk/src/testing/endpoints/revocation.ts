import { authenticateClient } from '../authenticate-client.ts';
import { ProtocolError } from '../protocol-error.ts';
import type { EndpointRequest, ServerContext } from '../server-context.ts';

/**
 * Revokes a token of the client; a refresh token takes its whole grant with it. Unknown tokens are answered alike.
 *
 * @throws ProtocolError `invalid_client`, `invalid_request`.
 * @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1
 */
export async function revocationEndpoint(
  context: ServerContext,
  request: EndpointRequest,
): Promise<Response> {
  const client = await authenticateClient(context, request);
  const value = request.params.get('token');
  if (value === null) throw new ProtocolError('invalid_request', 'token is missing');
  const token = context.ledger.find(value);
  if (token?.grant.clientId === client.clientId) {
    token.revoked = true;
    if (token.kind === 'refresh_token') token.grant.revoked = true;
  }
  return new Response(null, { status: 200 });
}
