import { isUuid } from '@tollgate/kit/text';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { type AddRoutes, bodyLimits } from '../http/api.ts';
import { pageUrl } from '../http/page-url.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { issuerUrl, verifyIdToken } from '../keys/jwt.ts';
import { signOut } from '../sessions/sessions.ts';
import { hasHostedPage, queryOf, readParameter } from './authorization-request.ts';
import type { AuthorizationContext } from './authorize.ts';
import { requireOAuthServer } from './client-routes.ts';
import { findClient } from './find-client.ts';
import { splitScope } from './scopes.ts';

const parameterNames = [
  'id_token_hint',
  'client_id',
  'post_logout_redirect_uri',
  'state',
  'ui_locales',
] as const;
const maxStateChars = 4096;

type LogoutParameters = { readonly [Name in (typeof parameterNames)[number]]?: string | undefined };

/**
 * `/oauth/logout`: sends the browser to the hosted page, also from a form of another site, with
 * which browsers send no cookies.
 *
 * @see OpenID Connect RP-Initiated Logout §2 https://openid.net/specs/openid-connect-rpinitiated-1_0.html
 */
export const addEndSessionRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const options = { config: { limiter: 'oauth_authorize' }, bodyLimit: bodyLimits.token } as const;
  const answer = (request: FastifyRequest, reply: FastifyReply) => {
    const { settings } = context;
    requireOAuthServer(context);
    if (!hasHostedPage(settings))
      throw errors.feature_disabled({ message: 'The page of the application signs out', httpStatus: 404 });
    const given = request.method === 'POST' ? (request.form ?? new URLSearchParams()) : queryOf(request);
    const passed = parameterNames.flatMap((name) => {
      const value = readParameter(given, name);
      return value === undefined ? [] : [[name, value] as const];
    });
    const query = new URLSearchParams(Object.fromEntries(passed));
    return reply
      .headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
      .redirect(`${pageUrl(settings, 'logout')}${query.size === 0 ? '' : `?${query}`}`, 303);
  };
  api.get('/oauth/logout', options, answer);
  api.post('/oauth/logout', options, answer);
};

interface LogoutHint {
  readonly userId: string;
  readonly sessionId: string;
  /** The id that the client knows. */
  readonly clientId: string;
  readonly issuedMs: number;
}

/** The request of a client to sign a user out. */
export interface Logout {
  /**
   * The user and the session of the client, as an ID token names them. Undefined: the user decides,
   * since anyone could have sent the request.
   */
  readonly hint: LogoutHint | undefined;
  /** Undefined: the browser stays. */
  readonly target: LogoutTarget | undefined;
}

/** Where the browser goes after the user has signed out. */
export interface LogoutTarget {
  readonly url: string;
  /** Parameters that name it again. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** An ID token is a hint for a day after the session of its client has ended. */
const recentMs = 24 * 60 * 60_000;

/** @throws AppError `validation_failed`, `oauth_client_not_found` */
export async function readLogout(
  context: AuthorizationContext,
  parameters: LogoutParameters,
  metadata: RequestMetadata,
): Promise<Logout> {
  const { id_token_hint: token, client_id: clientId } = parameters;
  const hint = token === undefined ? undefined : readHint(context, token);
  if (hint !== undefined && clientId !== undefined && clientId !== hint.clientId)
    throw errors.validation_failed({ message: 'client_id is not that of id_token_hint' });
  const named = hint?.clientId ?? clientId;
  return {
    hint: hint !== undefined && (await isCurrent(context, hint, metadata)) ? hint : undefined,
    target:
      named === undefined
        ? undefined
        : await readTarget(context, { ...parameters, client_id: named }, metadata),
  };
}

/**
 * Whether the client has, or had until recently, the session of an ID token. An old one, as from a
 * log, must not sign the user out.
 *
 * @see OpenID Connect RP-Initiated Logout §4
 */
async function isCurrent(
  { store }: AuthorizationContext,
  { userId, sessionId, clientId, issuedMs }: LogoutHint,
  { nowMs }: RequestMetadata,
): Promise<boolean> {
  if (issuedMs > nowMs - recentMs) return true;
  const { session } = (await store.sessions.findWithUser(userId, sessionId)) ?? {};
  return session?.client?.identifier === clientId;
}

/** @see OpenID Connect RP-Initiated Logout §3 */
async function readTarget(
  context: AuthorizationContext,
  {
    client_id: clientId,
    post_logout_redirect_uri: uri,
    state = '',
  }: LogoutParameters & { readonly client_id: string },
  metadata: RequestMetadata,
): Promise<LogoutTarget | undefined> {
  if (uri === undefined) return undefined;
  const client = await findClient(context, clientId, { metadata, allowsExpired: true });
  if (client === undefined)
    throw errors.oauth_client_not_found({ httpStatus: 400, message: 'invalid client_id' });
  if (client.metadata.post_logout_redirect_uris?.includes(uri) !== true)
    throw errors.validation_failed({
      message:
        'invalid post_logout_redirect_uri: it has to be, to the letter, one that is registered for the client',
    });
  if (state.length > maxStateChars) throw errors.validation_failed({ message: 'state is too long' });
  const query = state === '' ? '' : `${uri.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`;
  return {
    url: `${uri}${query}`,
    parameters: {
      ...{ client_id: clientId, post_logout_redirect_uri: uri },
      ...(state !== '' && { state }),
    },
  };
}

/** Reads an ID token, which may have expired. */
function readHint({ keys, settings }: AuthorizationContext, token: string): LogoutHint {
  const verified = verifyIdToken(token, keys);
  if (!verified.ok) throw errors.validation_failed({ message: `invalid id_token_hint: ${verified.reason}` });
  const { iss, aud: clientId, sub: userId, sid: sessionId, iat } = verified.claims;
  if (iss === issuerUrl(settings) && typeof clientId === 'string' && isId(userId) && isId(sessionId))
    return { clientId, userId, sessionId, issuedMs: Number(iat) * 1000 };
  throw errors.validation_failed({ message: 'invalid id_token_hint: it is of another issuer' });
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && isUuid(value);
}

/**
 * Ends the session of the client, unless the user has given it access for the time after.
 *
 * @see OpenID Connect Back-Channel Logout §2.7
 */
export async function endClientSession(
  context: AuthorizationContext,
  { userId, sessionId, clientId }: LogoutHint,
  metadata: RequestMetadata,
): Promise<void> {
  const { user, session } = (await context.store.sessions.findWithUser(userId, sessionId)) ?? {};
  if (user === undefined || session?.client?.identifier !== clientId) return;
  if (splitScope(session.client.scope).includes('offline_access')) return;
  await signOut(context, { user, sessionId, scope: 'local' }, metadata);
}
