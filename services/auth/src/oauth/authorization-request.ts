import { isUuid } from '@tollgate/kit/text';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { OAuthError } from '../errors.ts';
import { parseCodeChallenge } from '../flows/pkce.ts';
import type { CodeChallenge } from '../flows/store.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { issuerUrl, verifyIdToken } from '../keys/jwt.ts';
import { requestDetails } from './authorization-details.ts';
import type { NewAuthorization } from './authorization-store.ts';
import type { AuthorizationContext } from './authorize.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';
import { grantUserScopes, splitScope } from './scopes.ts';

/** Lengths of the columns. */
const maxStateChars = 4096;
const maxNonceChars = 255;
const maxResourceChars = 2048;
/** The column is an integer. */
const maxAgeForm = /^\d{1,9}$/;

/** Values of `prompt`. @see OpenID Connect Core §3.1.2.1 */
export const promptValues = ['none', 'login', 'consent', 'select_account'] as const;

/** Parameters that are not supported, with their errors. @see OpenID Connect Core §3.1.2.6 */
const unsupported = {
  request: 'request_not_supported',
  request_uri: 'request_uri_not_supported',
  registration: 'registration_not_supported',
} as const;

/** Whether our own page asks the user, which follows the parameters of OpenID Connect. */
export function hasHostedPage({ oauthServerAuthorizationPath: path, pagesEnabled }: Settings): boolean {
  return path === '' && pagesEnabled;
}

/** The value of a parameter, which must not be repeated. Undefined if it is absent or empty. */
export function readParameter(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) return undefined;
  return values[0] || undefined;
}

/** All parameters of the query. */
export function queryOf({ url }: Pick<FastifyRequest, 'url'>): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
}

/** The access that a request asks for. */
type RequestedAccess = Pick<
  NewAuthorization,
  | 'scope'
  | 'resource'
  | 'code_challenge'
  | 'code_challenge_method'
  | 'nonce'
  | 'dpop_jkt'
  | 'prompt'
  | 'max_age'
  | 'hinted_user_id'
  | 'authorization_details'
>;

/**
 * Reads the parameters, of which a hook checks `authorization_details`.
 *
 * @throws OAuthError `invalid_request`, `unsupported_response_type`, `unauthorized_client`,
 * `invalid_scope`, `invalid_target`, those of `requestDetails` and of unsupported parameters
 */
export async function readAccessRequest(
  context: AuthorizationContext,
  client: StoredClient,
  { parameters, metadata }: { readonly parameters: URLSearchParams; readonly metadata: RequestMetadata },
): Promise<RequestedAccess> {
  const read = (name: string): string | undefined => readParameter(parameters, name);
  if (parameters.getAll('resource').length > 1) throw severalResources();
  // RFC 6749 §3.1.
  const names = [...parameters.keys()];
  if (new Set(names).size < names.length) throw invalidRequest('A parameter is included more than once');
  for (const [name, code] of Object.entries(unsupported))
    if (read(name) !== undefined) throw new OAuthError(code, `The parameter ${name} is not supported`);
  const type = read('response_type');
  if (type === undefined) throw invalidRequest('response_type is required');
  if (type !== 'code')
    throw new OAuthError('unsupported_response_type', 'Only response_type=code is supported');
  if (!client.grant_types.includes('authorization_code'))
    throw new OAuthError('unauthorized_client', 'The client may not use the grant authorization_code');
  if ((read('state') ?? '').length > maxStateChars) throw invalidRequest('state is too long');
  const nonce = read('nonce') ?? null;
  if (nonce !== null && nonce.length > maxNonceChars) throw invalidRequest('nonce is too long');
  const { settings } = context;
  const challenge = readChallenge(read);
  if (challenge === undefined && mustUsePkce(client, settings))
    throw invalidRequest('PKCE is required: code_challenge and code_challenge_method');
  const scope = grantUserScopes(read('scope'), client, settings).join(' ');
  const resource = readResource(read('resource'));
  return {
    scope,
    resource,
    code_challenge: challenge?.challenge ?? null,
    code_challenge_method: challenge?.method ?? null,
    nonce,
    dpop_jkt: readThumbprint(read('dpop_jkt')),
    // The page of an application decides by itself, as that of GoTrue does.
    ...(hasHostedPage(settings)
      ? {
          prompt: readPrompt(read('prompt')),
          max_age: readMaxAge(read('max_age')) ?? client.metadata.default_max_age ?? null,
          hinted_user_id: readHint(context, client, read('id_token_hint')),
        }
      : { prompt: null, max_age: null, hinted_user_id: null }),
    authorization_details: await requestDetails(context, client, {
      ...{ text: read('authorization_details'), grantType: 'authorization_code', scope, resource },
      metadata,
    }),
  };
}

type Read = (name: string) => string | undefined;

/** @see RFC 9700 §2.1.1 https://www.rfc-editor.org/rfc/rfc9700#section-2.1.1 */
function mustUsePkce({ client_type: type }: StoredClient, { oauthServerRequirePkce }: Settings): boolean {
  return oauthServerRequirePkce || type === 'public';
}

function readChallenge(read: Read): CodeChallenge | undefined {
  try {
    return parseCodeChallenge({
      code_challenge: read('code_challenge'),
      code_challenge_method: read('code_challenge_method'),
    });
  } catch (error) {
    throw invalidRequest(error instanceof Error ? error.message : 'code_challenge is invalid');
  }
}

/** @see RFC 9449 §10 https://www.rfc-editor.org/rfc/rfc9449#section-10 */
function readThumbprint(thumbprint: string | undefined): string | null {
  if (thumbprint === undefined) return null;
  if (!/^[\w-]{43}$/.test(thumbprint)) throw invalidRequest('dpop_jkt must be a SHA-256 thumbprint of a key');
  return thumbprint;
}

/** @see RFC 8707 §2 */
export function readResource(resource: string | undefined): string | null {
  if (resource === undefined) return null;
  const isUsable = URL.canParse(resource) && !/[\s#?]/.test(resource) && resource.length <= maxResourceChars;
  if (!isUsable)
    throw new OAuthError('invalid_target', 'resource must be an absolute URI without query and fragment');
  return resource;
}

/** A token has one audience. @see RFC 8707 §2 */
export function severalResources(): OAuthError {
  return new OAuthError('invalid_target', 'Only one resource is supported: send a request for each');
}

/** @throws OAuthError `invalid_request` */
export function readResponseMode(mode: string | undefined, settings: Settings): string | null {
  if (mode === undefined || mode === 'query') return null;
  if (mode === 'form_post' && hasHostedPage(settings)) return mode;
  throw invalidRequest('response_mode is not supported');
}

function readPrompt(prompt: string | undefined): string | null {
  if (prompt === undefined) return null;
  const values = splitScope(prompt);
  if (!values.every((value) => promptValues.some((known) => known === value)))
    throw invalidRequest(`prompt must only contain ${promptValues.join(', ')}`);
  if (values.includes('none') && values.length > 1)
    throw invalidRequest('prompt=none excludes other values of prompt');
  return values.join(' ');
}

function readMaxAge(maxAge: string | undefined): number | null {
  if (maxAge === undefined) return null;
  if (!maxAgeForm.test(maxAge)) throw invalidRequest('max_age must be a number of seconds');
  return Number(maxAge);
}

/** The user of an ID token of the client, which may have expired. */
function readHint(
  { keys, settings }: AuthorizationContext,
  client: StoredClient,
  hint: string | undefined,
): string | null {
  if (hint === undefined) return null;
  const verified = verifyIdToken(hint, keys);
  if (!verified.ok) throw invalidRequest(`id_token_hint is invalid: ${verified.reason}`);
  const { iss, aud, sub } = verified.claims;
  if (
    iss !== issuerUrl(settings) ||
    aud !== clientIdentifier(client) ||
    typeof sub !== 'string' ||
    !isUuid(sub)
  )
    throw invalidRequest('id_token_hint is not an ID token of this client');
  return sub;
}

function invalidRequest(message: string): OAuthError {
  return new OAuthError('invalid_request', message);
}
