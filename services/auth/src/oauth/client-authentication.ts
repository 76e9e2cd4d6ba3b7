import { OAuthError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { isClientSecret } from '../keys/client-tokens.ts';
import { assertionType, type ClientAssertions } from './client-assertion.ts';
import type { AuthMethod, StoredClient } from './client-store.ts';
import { type FindClientContext, findClient } from './find-client.ts';

/** Parameters that identify and authenticate a client. */
export interface PresentedClient {
  /** Values of the `authorization` header. */
  readonly authorization: string | undefined;
  readonly client_id: string | undefined;
  readonly client_secret: string | undefined;
  readonly client_assertion: string | undefined;
  readonly client_assertion_type: string | undefined;
}

type Credentials =
  | {
      readonly method: 'client_secret_basic' | 'client_secret_post';
      readonly id: string;
      readonly secret: string;
    }
  | { readonly method: 'private_key_jwt'; readonly id: string; readonly assertion: string }
  | { readonly method: 'none'; readonly id: string };

export type AuthenticationContext = FindClientContext & { readonly clientAssertions: ClientAssertions };

/**
 * Authenticates the client of a request. All failures are the same error, so that ids of clients
 * cannot be found out.
 *
 * @throws OAuthError `invalid_request`, `invalid_client`
 * @see RFC 6749 §2.3, RFC 7521 §4.2
 */
export async function authenticateClient(
  context: AuthenticationContext,
  presented: PresentedClient,
  metadata: RequestMetadata,
): Promise<StoredClient> {
  const credentials = readCredentials(presented, context.clientAssertions);
  const usesHeader = credentials.method === 'client_secret_basic';
  const client = await findClient(context, credentials.id, { metadata, allowsExpired: true });
  if (client === undefined || !(await isAuthentic(context, client, credentials)))
    throw invalidClient({ usesHeader });
  return client;
}

async function isAuthentic(
  { clientAssertions }: AuthenticationContext,
  client: StoredClient,
  credentials: Credentials,
): Promise<boolean> {
  if (!isAllowed(client.token_endpoint_auth_method, credentials.method)) return false;
  switch (credentials.method) {
    case 'none':
      return client.client_type === 'public';
    case 'private_key_jwt':
      return clientAssertions.verify(client, credentials.assertion);
    default:
      return isClientSecret(credentials.secret, client.client_secret_hash);
  }
}

/** As in GoTrue, clients with a secret may send it in the header or the body. */
function isAllowed(registered: AuthMethod, used: AuthMethod): boolean {
  const isSecret = (method: AuthMethod): boolean => method.startsWith('client_secret_');
  return registered === used || (isSecret(registered) && isSecret(used));
}

function readCredentials(presented: PresentedClient, assertions: ClientAssertions): Credentials {
  const {
    authorization,
    client_id: id = '',
    client_secret: secret = '',
    client_assertion: assertion,
  } = presented;
  const basic = authorization === undefined ? undefined : readBasic(authorization);
  const methods = [basic !== undefined, secret !== '', assertion !== undefined].filter(Boolean);
  // RFC 6749 §2.3.
  if (methods.length > 1)
    throw new OAuthError('invalid_request', 'There is more than one client authentication');
  if (basic !== undefined) {
    if (id !== '' && id !== basic.id)
      throw new OAuthError('invalid_request', 'client_id is not that of the Authorization header');
    return { method: 'client_secret_basic', ...basic };
  }
  if (assertion !== undefined) {
    if (presented.client_assertion_type !== assertionType)
      throw new OAuthError('invalid_request', `client_assertion_type must be ${assertionType}`);
    const subject = assertions.subjectOf(assertion);
    if (subject === undefined || (id !== '' && id !== subject)) throw invalidClient({ usesHeader: false });
    return { method: 'private_key_jwt', id: subject, assertion };
  }
  if (id === '') throw invalidClient({ usesHeader: false });
  return secret === '' ? { method: 'none', id } : { method: 'client_secret_post', id, secret };
}

/** @see RFC 6749 §2.3.1: both parts are form-encoded. */
function readBasic(authorization: string): { readonly id: string; readonly secret: string } {
  const encoded = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8');
  const at = text.indexOf(':');
  const parts = at === -1 ? [] : [text.slice(0, at), text.slice(at + 1)].map(decodeForm);
  const [id, secret] = parts;
  if (id === undefined || secret === undefined) throw invalidClient({ usesHeader: true });
  return { id, secret };
}

function decodeForm(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const basicChallenge = { 'www-authenticate': 'Basic realm="tollgate", charset="UTF-8"' };

/** @see RFC 6749 §5.2 https://www.rfc-editor.org/rfc/rfc6749#section-5.2 */
function invalidClient({ usesHeader }: { readonly usesHeader: boolean }): OAuthError {
  const headers = usesHeader ? basicChallenge : {};
  return new OAuthError('invalid_client', 'Client authentication failed', 401, headers);
}
