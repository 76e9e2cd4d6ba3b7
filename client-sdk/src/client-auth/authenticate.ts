import { ConfigurationError } from '../errors/configuration-error.ts';
import type { authenticateByAssertion } from './authenticate-by-assertion.ts';
import type { ClientAuth, ClientAuthContext, MutableTokenRequest } from './client-auth.ts';
import { clientIdOnly } from './client-id-only.ts';
import { clientSecretBasic } from './client-secret-basic.ts';
import { clientSecretPost } from './client-secret-post.ts';

/** The methods that there are, for messages. */
const methodNames = [
  'client_secret_basic',
  'client_secret_post',
  'tls_client_auth',
  'none',
  'private_key_jwt',
  'client_secret_jwt',
  'client_assertion',
];

/** The name of a method, as in discovery documents; `custom` for a function. */
export function clientAuthName(auth: ClientAuth): string {
  if (typeof auth === 'function') return 'custom';
  return typeof auth === 'string' ? auth : auth.method;
}

/**
 * Checks a method's name.
 * @throws {ConfigurationError} when there is no such method.
 */
export function assertClientAuth(auth: ClientAuth): void {
  const name = clientAuthName(auth);
  if (name !== 'custom' && !methodNames.includes(name)) {
    throw new ConfigurationError(
      `\`clientAuth\` must be a function or one of ${methodNames.join(', ')}; got ${JSON.stringify(name)}`,
    );
  }
  if (typeof auth === 'string' && methodNames.indexOf(auth) > 3) {
    throw new ConfigurationError(`\`clientAuth\`: ${auth} needs its settings: { method: '${auth}', … }`);
  }
}

/**
 * Writes the client's credentials into a request. Methods that sign are loaded at their first use.
 * @throws {ConfigurationError} when what the method needs is missing.
 */
export function authenticate(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientAuth,
): Promise<void> | void {
  if (typeof auth === 'function') return auth(request);
  if (typeof auth === 'string') return authenticateByName(request, context, auth);
  return authenticateLate(request, context, auth);
}

async function authenticateLate(...args: Parameters<typeof authenticateByAssertion>): Promise<void> {
  const late = await import('../client/on-demand.ts');
  await late.authenticateByAssertion(...args);
}

function authenticateByName(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  name: ClientAuth & string,
): void {
  assertIdentified(request, context);
  // A client without a secret is a public one: empty Basic credentials would only be refused.
  const hasSecret = context.clientSecret !== undefined;
  if (name === 'client_secret_post') clientSecretPost(request, context);
  else if (name === 'client_secret_basic' && hasSecret) clientSecretBasic(request, context);
  else clientIdOnly(request, context);
}

/** Grants that carry an assertion need not name a client. @see RFC 7521 §4.1 */
function assertIdentified({ headers, body }: MutableTokenRequest, { clientId }: ClientAuthContext): void {
  if (
    clientId !== undefined ||
    body.has('client_id') ||
    body.has('client_assertion') ||
    body.has('assertion')
  )
    return;
  if (headers.has('authorization')) return;
  throw new ConfigurationError(
    'the client has no `clientId`: set it, or authenticate with a function as `clientAuth`',
  );
}
