import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { errors, OAuthError } from '../errors.ts';
import { type AddRoutes, bodyLimits } from '../http/api.ts';
import { pageUrl } from '../http/page-url.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import {
  hasHostedPage,
  queryOf,
  readAccessRequest,
  readParameter,
  readResponseMode,
} from './authorization-request.ts';
import { sendAuthorizationResponse } from './authorization-response.ts';
import type { AuthorizationStore } from './authorization-store.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { StoredClient } from './client-store.ts';
import type { DeviceCodeStore } from './device-store.ts';
import { type FindClientContext, findClient, isClientRedirect } from './find-client.ts';
import { requirePushed, resolveParameters } from './pushed-request.ts';
import type { PushedRequestStore } from './pushed-store.ts';

interface AuthorizationStores {
  readonly authorizations: AuthorizationStore;
  readonly deviceCodes: DeviceCodeStore;
  readonly pushedRequests: PushedRequestStore;
}

export type AuthorizationContext = FindClientContext & {
  readonly store: AuthorizationStores;
};

/** GoTrue's ids have 32 characters, too. */
const idBytes = 24;
/** Longer hints are ignored: the pages pass them on in their URLs. */
const maxHintChars = 256;

/**
 * `/oauth/authorize`: parameters in the query, or in a form.
 *
 * @see RFC 6749 §3.1, §4.1.1; OpenID Connect Core §3.1.2.1
 */
export const addAuthorizeRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const options = { config: { limiter: 'oauth_authorize' }, bodyLimit: bodyLimits.token } as const;
  const answer = (request: FastifyRequest, reply: FastifyReply) =>
    startAuthorization(context, { request, reply });
  api.get('/oauth/authorize', options, answer);
  api.post('/oauth/authorize', options, answer);
};

async function startAuthorization(
  context: AuthorizationContext,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<FastifyReply> {
  requireOAuthServer(context);
  reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer');
  const { settings, random, store, nowMs } = context;
  const sent = request.method === 'POST' ? (request.form ?? new URLSearchParams()) : queryOf(request);
  const { parameters, isPushed } = await resolveParameters(context, sent);
  const metadata = requestMetadata(request, context);
  const { client, redirectUri } = await findTarget(context, parameters, metadata);
  const state = readParameter(parameters, 'state') ?? null;
  let target = { redirect_uri: redirectUri, state, response_mode: null as string | null };
  try {
    target = {
      ...target,
      response_mode: readResponseMode(readParameter(parameters, 'response_mode'), settings),
    };
    requirePushed(client, settings, isPushed);
    const createdMs = nowMs();
    const authorizationId = newAuthorizationId(context);
    const page = authorizationPage(settings, authorizationId, parameters);
    await store.authorizations.insert({
      id: random.uuid(),
      authorization_id: authorizationId,
      client_id: client.id,
      ...target,
      ...(await readAccessRequest(context, client, { parameters, metadata })),
      created_at: new Date(createdMs),
      expires_at: new Date(createdMs + settings.oauthServerAuthorizationTtlMs),
    });
    return await reply.redirect(page, request.method === 'POST' ? 303 : 302);
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    const response = { target, parameters: { error: error.code, error_description: error.message } };
    return sendAuthorizationResponse(response, settings, { request, reply });
  }
}

/** Identifies a request in URLs. */
export function newAuthorizationId({ random }: Pick<AuthorizationContext, 'random'>): string {
  return random.bytes(idBytes).toString('base64url');
}

/**
 * The client and where it is answered. Errors are not redirected: the URI may be an attacker's.
 *
 * @throws AppError `validation_failed`, `oauth_client_not_found`
 * @see RFC 6749 §4.1.2.1, RFC 9700 §4.1.3
 */
async function findTarget(
  context: AuthorizationContext,
  parameters: URLSearchParams,
  metadata: RequestMetadata,
): Promise<{ readonly client: StoredClient; readonly redirectUri: string }> {
  const id = readParameter(parameters, 'client_id');
  const redirectUri = readParameter(parameters, 'redirect_uri');
  if (id === undefined) throw errors.validation_failed({ message: 'client_id is required once' });
  if (redirectUri === undefined) throw errors.validation_failed({ message: 'redirect_uri is required once' });
  const client = await findClient(context, id, { metadata });
  if (client === undefined)
    throw errors.oauth_client_not_found({ httpStatus: 400, message: 'invalid client_id' });
  if (!isClientRedirect(client, redirectUri))
    throw errors.validation_failed({
      message: 'invalid redirect_uri: it has to be, to the letter, one that is registered for the client',
    });
  return { client, redirectUri };
}

/**
 * The page that asks the user: that of the application, or the hosted one, which also gets what
 * helps the user to sign in.
 *
 * @throws OAuthError `server_error`
 */
export function authorizationPage(
  settings: Settings,
  authorizationId: string,
  parameters = new URLSearchParams(),
): string {
  const { siteUrl, oauthServerAuthorizationPath: path } = settings;
  if (hasHostedPage(settings)) {
    const hints = ['login_hint', 'ui_locales'].flatMap((name) => {
      const value = readParameter(parameters, name) ?? '';
      return value === '' || value.length > maxHintChars ? [] : [[name, value] as const];
    });
    const query = new URLSearchParams({
      authorization_id: authorizationId,
      ...Object.fromEntries(hints),
    });
    return `${pageUrl(settings, 'consent')}?${query}`;
  }
  if (path === '')
    throw new OAuthError('server_error', 'The page that asks for consent is not configured', 500);
  const page = `${siteUrl.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  return `${page}${page.includes('?') ? '&' : '?'}authorization_id=${authorizationId}`;
}
