import type { EndpointRequest, ServerContext } from '../server-context.ts';

/**
 * An API that wants an active access token, and answers who asked what: method, path, subject, scope, and the token's
 * own parameters.
 *
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export function resourceEndpoint(context: ServerContext, request: EndpointRequest): Response {
  const [scheme, value] = request.headers.get('authorization')?.split(' ') ?? [];
  const given = scheme?.toLowerCase() === 'bearer' ? value : request.params.get('access_token');
  if (!given) return unauthorized('Bearer realm="test"');
  const token = context.ledger.findActive(given);
  if (token?.kind !== 'access_token') return unauthorized('Bearer realm="test", error="invalid_token"');
  const { subject, scope, clientId } = token.grant;
  return Response.json({
    method: request.method,
    path: request.url.pathname,
    sub: subject,
    client_id: clientId,
    scope,
  });
}

function unauthorized(challenge: string): Response {
  return Response.json(
    { error: 'unauthorized' },
    { status: 401, headers: { 'www-authenticate': challenge } },
  );
}
