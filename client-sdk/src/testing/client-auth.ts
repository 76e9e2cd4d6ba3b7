import type { EndpointRequest, ServerContext, TestClient } from './settings.ts';
import { ProtocolError } from './settings.ts';

/**
 * Authenticates the client: HTTP Basic, secret in the body, assertion, or only the id of a public
 * client.
 *
 * @throws ProtocolError `invalid_client`.
 * @see RFC 6749 §2.3 https://www.rfc-editor.org/rfc/rfc6749#section-2.3
 */
export async function authenticateClient(
  { settings }: ServerContext,
  { headers, params }: EndpointRequest,
): Promise<TestClient> {
  const authorization = headers.get('authorization');
  const basic = authorization?.startsWith('Basic ') ? readBasic(authorization.slice(6)) : undefined;
  const assertion = params.get('client_assertion');
  const clientId = basic?.clientId ?? params.get('client_id') ?? readSubject(assertion);
  const client = clientId === undefined ? undefined : settings.clients.get(clientId);
  if (client === undefined) throw invalidClient('unknown client', basic !== undefined);
  if (assertion !== null) {
    if (await client.verifyAssertion?.(assertion)) return client;
    throw invalidClient('the client assertion was not accepted', false);
  }
  const secret = basic?.clientSecret ?? params.get('client_secret') ?? undefined;
  const isPublic = client.clientSecret === undefined && client.verifyAssertion === undefined;
  if (isPublic && (secret ?? '') === '') return client;
  if (secret !== undefined && secret === client.clientSecret) return client;
  throw invalidClient('wrong client credentials', basic !== undefined);
}

function invalidClient(description: string, basic: boolean): ProtocolError {
  return new ProtocolError(
    'invalid_client',
    description,
    401,
    basic ? { 'www-authenticate': 'Basic realm="test"' } : {},
  );
}

function readBasic(encoded: string): { clientId: string; clientSecret: string } {
  const [clientId = '', ...rest] = atob(encoded).split(':');
  return { clientId: decode(clientId), clientSecret: decode(rest.join(':')) };
}

/** Form-encoded by RFC 6749 §2.3.1; tolerates clients that do not encode. */
function decode(half: string): string {
  try {
    return decodeURIComponent(half.replaceAll('+', ' '));
  } catch {
    return half;
  }
}

function readSubject(assertion: string | null): string | undefined {
  try {
    const payload = (assertion ?? '').split('.')[1] ?? '';
    const { sub } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof sub === 'string' ? sub : undefined;
  } catch {
    return undefined;
  }
}
