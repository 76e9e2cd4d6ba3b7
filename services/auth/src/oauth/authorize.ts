import { isUuid } from '@tollgate/kit/text';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { errors, OAuthError } from '../errors.ts';
import { type CodeChallenge, parseCodeChallenge } from '../flows/pkce.ts';
import type { AddRoutes } from '../http/api.ts';
import { pageUrl } from '../http/page-url.ts';
import type { Authorization, AuthorizationStore } from './authorization-store.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { StoredClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import { clientRedirect } from './redirect.ts';
import { grantUserScopes } from './scopes.ts';

export type AuthorizationContext = OAuthContext & {
  readonly store: { readonly authorizations: AuthorizationStore };
};

/** Lengths of the columns. */
const maxStateChars = 4096;
const maxNonceChars = 255;
const maxResourceChars = 2048;
/** GoTrue's ids have 32 characters, too. */
const idBytes = 24;

/** `/oauth/authorize`. @see RFC 6749 §4.1.1, RFC 7636 §4.3 */
export const addAuthorizeRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const { settings, random, store, nowMs } = context;
  api.get('/oauth/authorize', { config: { limiter: 'oauth_authorize' } }, async (request, reply) => {
    requireOAuthServer(context);
    reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer');
    const parameters = queryOf(request);
    const { client, redirectUri } = await findTarget(context, parameters);
    const state = read(parameters, 'state') ?? null;
    const target = { redirect_uri: redirectUri, state };
    try {
      const createdMs = nowMs();
      const authorizationId = random.bytes(idBytes).toString('base64url');
      const page = authorizationPage(settings, authorizationId);
      await store.authorizations.insert({
        id: random.uuid(),
        authorization_id: authorizationId,
        client_id: client.id,
        ...target,
        ...readRequest(context, client, parameters),
        ...{ prompt: null, max_age: null, response_mode: null, hinted_user_id: null },
        created_at: new Date(createdMs),
        expires_at: new Date(createdMs + settings.oauthServerAuthorizationTtlMs),
      });
      return await reply.redirect(page);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const answer = { error: error.code, error_description: error.message };
      return reply.redirect(clientRedirect(target, answer, settings));
    }
  });
};

function queryOf({ url }: FastifyRequest): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
}

/** The value of a parameter, which must not be repeated. Undefined if it is absent or empty. */
function read(parameters: URLSearchParams, name: string): string | undefined {
  const values = parameters.getAll(name);
  if (values.length > 1) return undefined;
  return values[0] || undefined;
}

/**
 * The client and where it is answered. Errors are not redirected: the URI may be an attacker's.
 *
 * @throws AppError `validation_failed`, `oauth_client_not_found`
 * @see RFC 6749 §4.1.2.1, RFC 9700 §4.1.3
 */
async function findTarget(
  { store }: AuthorizationContext,
  parameters: URLSearchParams,
): Promise<{ readonly client: StoredClient; readonly redirectUri: string }> {
  const id = read(parameters, 'client_id');
  const redirectUri = read(parameters, 'redirect_uri');
  if (id === undefined) throw errors.validation_failed({ message: 'client_id is required once' });
  if (redirectUri === undefined) throw errors.validation_failed({ message: 'redirect_uri is required once' });
  const client = isUuid(id) ? await store.oauthClients.find(id.toLowerCase()) : undefined;
  if (client === undefined || client.disabled)
    throw errors.oauth_client_not_found({ httpStatus: 400, message: 'invalid client_id' });
  if (!client.redirect_uris.includes(redirectUri))
    throw errors.validation_failed({
      message: 'invalid redirect_uri: it has to be, to the letter, one that is registered for the client',
    });
  return { client, redirectUri };
}

/** @throws OAuthError `invalid_request`, `unauthorized_client`, `invalid_scope` */
function readRequest(
  { settings }: AuthorizationContext,
  client: StoredClient,
  parameters: URLSearchParams,
): Pick<Authorization, 'scope' | 'resource' | 'code_challenge' | 'code_challenge_method' | 'nonce'> {
  // RFC 6749 §3.1. Only resources may be repeated, and rows have one.
  const names = [...parameters.keys()];
  if (new Set(names).size < names.length) throw invalidRequest('A parameter is included more than once');
  if ((read(parameters, 'response_type') ?? 'code') !== 'code')
    throw invalidRequest('Only response_type=code is supported');
  if (!client.grant_types.includes('authorization_code'))
    throw new OAuthError('unauthorized_client', 'The client may not use the grant authorization_code');
  if ((read(parameters, 'state') ?? '').length > maxStateChars) throw invalidRequest('state is too long');
  const nonce = read(parameters, 'nonce') ?? null;
  if (nonce !== null && nonce.length > maxNonceChars) throw invalidRequest('nonce is too long');
  const { challenge, method } = readChallenge(parameters);
  return {
    scope: grantUserScopes(read(parameters, 'scope') ?? settings.oauthServerDefaultScope, client).join(' '),
    resource: readResource(read(parameters, 'resource')),
    code_challenge: challenge,
    code_challenge_method: method,
    nonce,
  };
}

function readChallenge(parameters: URLSearchParams): CodeChallenge {
  try {
    const challenge = parseCodeChallenge({
      code_challenge: read(parameters, 'code_challenge'),
      code_challenge_method: read(parameters, 'code_challenge_method'),
    });
    if (challenge !== undefined) return challenge;
  } catch (error) {
    throw invalidRequest(error instanceof Error ? error.message : 'code_challenge is invalid');
  }
  throw invalidRequest('PKCE is required: code_challenge and code_challenge_method');
}

/** @see RFC 8707 §2 */
function readResource(resource: string | undefined): string | null {
  if (resource === undefined) return null;
  const isUsable = URL.canParse(resource) && !/[\s#?]/.test(resource) && resource.length <= maxResourceChars;
  if (!isUsable) throw invalidRequest('resource must be an absolute URI without query and fragment');
  return resource;
}

/**
 * The page that asks the user: that of the application, or the hosted one.
 *
 * @throws OAuthError `server_error`
 */
function authorizationPage(settings: Settings, authorizationId: string): string {
  const { siteUrl, oauthServerAuthorizationPath: path, pagesEnabled } = settings;
  if (path === '' && !pagesEnabled)
    throw new OAuthError('server_error', 'The page that asks for consent is not configured', 500);
  const page =
    path === '' ? pageUrl(settings, 'consent') : `${siteUrl.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  return `${page}${page.includes('?') ? '&' : '?'}authorization_id=${authorizationId}`;
}

function invalidRequest(message: string): OAuthError {
  return new OAuthError('invalid_request', message);
}
