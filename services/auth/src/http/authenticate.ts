import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { AuditActor } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import { type JwtClaims, verifyJwt } from '../keys/jwt.ts';
import { type Session, sessionExpiry } from '../sessions/sessions.ts';
import { isBanned, type User } from '../users/user.ts';
import { type Api, isUuid } from './api.ts';

/** Who calls with a user's access token. */
export interface Caller {
  readonly user: User;
  /** Absent for a token that names no session. */
  readonly session: Session | undefined;
  readonly claims: JwtClaims;
}

/**
 * Verifies the access token and loads its user and session, in one statement.
 *
 * @throws AppError `no_authorization`, `bad_jwt`, `user_not_found`, `session_not_found`, `session_expired`, `user_banned`.
 */
export async function authenticateUser(request: FastifyRequest, deps: Context): Promise<Caller> {
  const claims = verifyBearer(request, deps);
  const { sub, session_id: sessionId } = claims;
  if (typeof sub !== 'string' || sub === '')
    throw errors.bad_jwt({ message: 'invalid claim: missing sub claim' });
  if (!isUuid(sub))
    throw errors.bad_jwt({ message: 'invalid claim: sub claim must be a UUID', httpStatus: 400 });
  const namesSession = typeof sessionId === 'string' && sessionId !== '';
  if (namesSession && !isUuid(sessionId)) throw errors.session_not_found();
  const found = await deps.store.sessions.findWithUser(sub, namesSession ? sessionId : undefined);
  if (found === undefined)
    throw errors.user_not_found({ message: 'User from sub claim in JWT does not exist', httpStatus: 403 });
  const { user, session } = found;
  if (isBanned(user, deps.nowMs())) throw errors.user_banned();
  if (namesSession && deps.settings.statefulBearer) checkSession(session, deps);
  return { user, session, claims };
}

/** Who calls as an administrator. */
export interface AdminCaller {
  readonly claims: JwtClaims;
  /** Who the audit log names. */
  readonly actor: AuditActor;
}

/**
 * Verifies the access token of an administrator: one whose role may call `/admin`. It need not name a user; where it names a session,
 * that session must last.
 *
 * @throws AppError as `authenticateUser`, and `not_admin`.
 */
export async function authenticateAdmin(request: FastifyRequest, deps: Context): Promise<AdminCaller> {
  const claims = verifyAdmin(request, deps);
  if (typeof claims.session_id === 'string' && claims.session_id !== '') {
    const { user } = await authenticateUser(request, deps);
    return { claims, actor: user };
  }
  const { sub, email } = claims;
  const actor = {
    id: typeof sub === 'string' ? sub : '',
    email: typeof email === 'string' ? email : '',
    phone: '',
    isSsoUser: false,
    userMetadata: {},
  };
  return { claims, actor };
}

/** Verifies the access token of an administrator, but not that its session lasts. @throws AppError `not_admin` and others. */
function verifyAdmin(request: FastifyRequest, deps: Context): JwtClaims {
  const claims = verifyBearer(request, deps);
  if (!isAdmin(claims, deps.settings.jwtAdminRoles)) throw errors.not_admin();
  return claims;
}

function isAdmin({ role }: JwtClaims, adminRoles: readonly string[]): boolean {
  return typeof role === 'string' && adminRoles.includes(role);
}

function checkSession(session: Session | undefined, { settings, nowMs }: Context): void {
  if (session === undefined) throw errors.session_not_found();
  if (sessionExpiry(session, settings, nowMs()) === 'timebox') throw errors.session_expired();
}

function verifyBearer(request: FastifyRequest, { keys, nowMs, settings }: Context): JwtClaims {
  const token = /^bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) throw errors.no_authorization();
  const verified = verifyJwt(token, keys, nowMs());
  if (!verified.ok) throw badJwt(verified.reason);
  const { claims } = verified;
  // Administrators are given keys that do not expire; users are not.
  if (claims.exp === undefined && !isAdmin(claims, settings.jwtAdminRoles))
    throw badJwt('token has no exp claim');
  return claims;
}

function badJwt(reason: string) {
  return errors.bad_jwt({ message: `${errors.bad_jwt.definition.message}, ${reason}` });
}

/**
 * Refuses whoever is no administrator at every route of theirs, before the body is taken in. That the session of the token still lasts
 * is asked in the route, which needs to know who it is.
 */
export function guardAdminRoutes(api: Api, deps: Context): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (isAdminRoute(request.routeOptions.url ?? '')) verifyAdmin(request, deps);
    done();
  });
}

function isAdminRoute(pattern: string): boolean {
  return pattern === '/invite' || pattern.startsWith('/admin/');
}
