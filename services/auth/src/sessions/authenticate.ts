import { isUuid } from '@tollgate/kit/text';
import type { FastifyRequest } from 'fastify';
import type { AuditActor } from '../audit/audit-log.ts';
import { proveToken, wrongScheme } from '../dpop/request.ts';
import { errors } from '../errors.ts';
import { findBindingProblem, keyOfToken } from '../keys/bound-tokens.ts';
import { clientOfToken } from '../keys/client-tokens.ts';
import { findForeignClaim, type JwtClaims } from '../keys/jwt.ts';
import { isBanned, type User } from '../users/user.ts';
import { toAdminScopes } from './admin-scopes.ts';
import type { SessionsContext } from './context.ts';
import { sessionExpiry } from './expiry.ts';
import type { Session } from './store.ts';

declare module 'fastify' {
  // The library's way to type `config` of a route.
  interface FastifyContextConfig {
    /** Whether access tokens of OAuth clients are accepted. They must not change the account. */
    oauthClients?: boolean;
  }
}

/** The user who owns the access token. */
export interface Caller {
  readonly user: User;
  /** Undefined for a token without a session. */
  readonly session: Session | undefined;
  readonly claims: JwtClaims;
}

/**
 * Verifies the access token and loads its user and session with one statement.
 *
 * @throws AppError `no_authorization`, `bad_jwt`, `user_not_found`, `session_not_found`,
 * `session_expired`, `user_banned`; OAuthError `invalid_dpop_proof`, `use_dpop_nonce`.
 */
export async function authenticateUser(request: FastifyRequest, context: SessionsContext): Promise<Caller> {
  const caller = await findCaller(request, context);
  const { session, claims } = caller;
  const clientId = session === undefined ? claims.client_id : session.client?.id;
  if (clientId !== undefined && request.routeOptions.config.oauthClients !== true)
    throw errors.insufficient_scope({ message: 'Access tokens of OAuth clients may not be used here' });
  return caller;
}

/** The caller, who may use an OAuth client. */
async function findCaller(request: FastifyRequest, context: SessionsContext): Promise<Caller> {
  const { claims, accessToken, thumbprint } = verifyToken(request, context);
  if (thumbprint !== undefined) await proveToken(context, request, { accessToken, thumbprint });
  return loadCaller(claims, context);
}

/** @throws AppError as `authenticateUser` */
async function loadCaller(claims: JwtClaims, context: SessionsContext): Promise<Caller> {
  const { sub, session_id: sessionId } = claims;
  if (clientOfToken(claims) !== undefined)
    throw errors.bad_jwt({ message: 'invalid claim: sub is a client, not a user' });
  if (typeof sub !== 'string' || sub === '')
    throw errors.bad_jwt({ message: 'invalid claim: missing sub claim' });
  if (!isUuid(sub))
    throw errors.bad_jwt({ message: 'invalid claim: sub claim must be a UUID', httpStatus: 400 });
  const namesSession = typeof sessionId === 'string' && sessionId !== '';
  if (namesSession && !isUuid(sessionId)) throw errors.session_not_found();
  const found = await context.store.sessions.findWithUser(sub, namesSession ? sessionId : undefined);
  if (found === undefined)
    throw errors.user_not_found({ message: 'User from sub claim in JWT does not exist', httpStatus: 403 });
  const { user, session } = found;
  if (isBanned(user, context.nowMs())) throw errors.user_banned();
  if (namesSession && context.settings.statefulBearer) checkSession(session, context);
  // An exchanged token is for another service. It names the session of the first token.
  if (claims.act !== undefined && claims.client_id !== undefined)
    throw errors.insufficient_scope({ message: 'Tokens that a service has exchanged may not be used here' });
  return { user, session, claims };
}

/**
 * Authenticates users who are not anonymous: those cannot recover from the loss of a factor or a
 * passkey.
 *
 * @throws AppError `no_authorization` with 403, and others
 */
export async function authenticatePermanentUser(
  request: FastifyRequest,
  context: SessionsContext,
): Promise<Caller & { readonly session: Session }> {
  const { user, session, claims } = await authenticateUser(request, context);
  if (user.isAnonymous)
    throw errors.no_authorization({
      message: 'Anonymous user not allowed to perform these actions',
      httpStatus: 403,
    });
  if (session === undefined) throw errors.session_not_found();
  return { user, session, claims };
}

export interface AdminCaller {
  /** The audit log names the actor. */
  readonly actor: AuditActor;
  /** The rights of an API key, or of an OAuth client. Undefined: all. */
  readonly scopes?: ReadonlySet<string>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The API key or OAuth client that the guard of the route has accepted. */
    limitedAdmin: Required<AdminCaller> | undefined;
  }
}

/**
 * Verifies the access token of an administrator, whose role permits `/admin`. A user is optional; a
 * session must be active. API keys and OAuth clients have been verified by the guard of the route.
 *
 * @throws AppError as `authenticateUser`, and `not_admin`.
 */
export async function authenticateAdmin(
  request: FastifyRequest,
  context: SessionsContext,
): Promise<AdminCaller> {
  if (request.limitedAdmin !== undefined) return request.limitedAdmin;
  const claims = verifyAdmin(request, context);
  if (typeof claims.session_id === 'string' && claims.session_id !== '') {
    const { user } = await authenticateUser(request, context);
    return { actor: { ...user, kind: 'administrator' } };
  }
  return { actor: serviceActor(claims) };
}

function serviceActor({ sub, email, role }: JwtClaims): AuditActor {
  return {
    kind: 'service_token',
    id: typeof sub === 'string' ? sub : '',
    // A service without email is found in the audit log by its role.
    email: typeof email === 'string' && email !== '' ? email : String(role),
    phone: '',
    isSsoUser: false,
    userMetadata: {},
  };
}

/**
 * Authenticates an administrator who has signed in at an OAuth client, which has the admin scopes
 * of its token. Undefined for a token of another kind, whose session is not checked.
 *
 * @throws AppError as `authenticateAdmin`
 */
export async function authenticateAdminClient(
  request: FastifyRequest,
  context: SessionsContext,
): Promise<Required<AdminCaller> | undefined> {
  const { client_id: clientId, session_id: sessionId } = verifyAdmin(request, context);
  if (clientId === undefined || sessionId === undefined) return undefined;
  return toAdminClient(await findCaller(request, context), context);
}

/**
 * The administrator whose access token another service has received, with the rights that the
 * token has here. Its session must be active, and its user still an administrator.
 *
 * @throws AppError as `authenticateAdmin`
 */
export async function verifyAdminToken(accessToken: string, context: SessionsContext): Promise<AdminCaller> {
  const claims = verifyClaims(accessToken, context);
  checkAdminClaims(claims, context);
  if (claims.session_id === undefined || claims.session_id === '') return { actor: serviceActor(claims) };
  const caller = await loadCaller(claims, context);
  // Also without `statefulBearer`: the service has no other way to see that a session has ended.
  checkSession(caller.session, context);
  if (!isAdmin(caller.user, context.settings.jwtAdminRoles)) throw errors.not_admin();
  return toAdminClient(caller, context) ?? { actor: { ...caller.user, kind: 'administrator' } };
}

/** Undefined without an OAuth client. @throws AppError `not_admin` */
function toAdminClient(
  { user, session, claims }: Caller,
  context: SessionsContext,
): Required<AdminCaller> | undefined {
  if (session?.client === undefined) return undefined;
  // The role may have changed since the token was issued.
  if (!isAdmin(user, context.settings.jwtAdminRoles)) throw errors.not_admin();
  const { scope, resource } = session.client;
  // A refresh may have narrowed the scopes of the session; a hook must not widen them. The resource
  // of a token, which has the token as well, must not use it here.
  const granted = resource === null ? toAdminScopes(scope) : new Set<string>();
  const scopes = new Set([...toAdminScopes(claims.scope)].filter((name) => granted.has(name)));
  return { actor: { ...user, kind: 'administrator' }, scopes };
}

/** Does not check the session. @throws AppError `not_admin` and others. */
function verifyAdmin(request: FastifyRequest, context: SessionsContext): JwtClaims {
  const { claims } = verifyToken(request, context);
  checkAdminClaims(claims, context);
  return claims;
}

function checkAdminClaims(claims: JwtClaims, { settings }: SessionsContext): void {
  if (keyOfToken(claims) !== undefined)
    throw badJwt('tokens that are bound to a key are not for administration');
  if (!isAdmin(claims, settings.jwtAdminRoles)) throw errors.not_admin();
}

function isAdmin({ role }: { readonly role?: unknown }, adminRoles: readonly string[]): boolean {
  return typeof role === 'string' && adminRoles.includes(role);
}

function checkSession(session: Session | undefined, { settings, nowMs }: SessionsContext): void {
  if (session === undefined) throw errors.session_not_found();
  if (sessionExpiry(session, settings, nowMs()) === 'timebox') throw errors.session_expired();
}

interface PresentedToken {
  readonly accessToken: string;
  readonly claims: JwtClaims;
  /** The key that it is bound to, of which the request must have a proof. */
  readonly thumbprint: string | undefined;
}

/** @see RFC 6750 §2.1, RFC 9449 §7.1 */
function verifyToken(request: FastifyRequest, context: SessionsContext): PresentedToken {
  const [, scheme = '', accessToken] =
    /^(bearer|dpop) (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (accessToken === undefined) throw errors.no_authorization();
  const claims = verifyClaims(accessToken, context);
  const thumbprint = keyOfToken(claims);
  if ((thumbprint !== undefined) !== (scheme.toLowerCase() === 'dpop')) throw wrongScheme();
  return { accessToken, claims, thumbprint };
}

function verifyClaims(accessToken: string, { tokens, keys, nowMs, settings }: SessionsContext): JwtClaims {
  const verified = tokens.verify(accessToken, keys, nowMs());
  if (!verified.ok) throw badJwt(verified.reason);
  const { claims } = verified;
  const problem = findForeignClaim(claims, settings) ?? findBindingProblem(claims);
  if (problem !== undefined) throw badJwt(problem);
  // Only administrators may have tokens that do not expire.
  if (claims.exp === undefined && !isAdmin(claims, settings.jwtAdminRoles))
    throw badJwt('token has no exp claim');
  return claims;
}

function badJwt(reason: string) {
  return errors.bad_jwt({ message: `${errors.bad_jwt.definition.message}, ${reason}` });
}
