import { auditEntry } from '../audit/audit-log.ts';
import { OAuthError } from '../errors.ts';
import type { Api } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { clientEndpoint, type EndpointContext, presentedTokenBody, readClient } from './client-request.ts';
import { findToken } from './presented-token.ts';

/**
 * `/oauth/revoke`: ends the session of a refresh or access token of the client. Tokens that are
 * unknown, or of other clients, get the same response.
 *
 * @see RFC 7009 §2 https://www.rfc-editor.org/rfc/rfc7009#section-2
 */
export function addRevocationRoute(api: Api, context: EndpointContext): void {
  const options = { ...clientEndpoint(context), schema: { body: presentedTokenBody } };
  api.post('/oauth/revoke', options, async (request, reply) => {
    const { token = '' } = request.body;
    const client = await readClient(context, request, request.body);
    if (token === '') throw new OAuthError('invalid_request', 'token is required');
    const found = await findToken(context, { token, clientId: client.id });
    if (found?.kind === 'client')
      throw new OAuthError('unsupported_token_type', 'Tokens of client_credentials cannot be revoked');
    if (found?.session.client?.id === client.id) {
      const { user, session } = found;
      const metadata = requestMetadata(request, context);
      const traits = { reason: 'revoked_by_client', client_id: client.id };
      const audit = auditEntry(user, 'token_revoked', { metadata, traits });
      await context.store.sessions.end('local', { userId: user.id, sessionId: session.id }, audit);
    }
    return reply.send({});
  });
}
