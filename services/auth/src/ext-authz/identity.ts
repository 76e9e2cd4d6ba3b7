import type { Logger } from '@tollgate/kit/logger';
import { inTime } from '@tollgate/kit/time';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { isUuid } from '../http/api.ts';
import type { VerifiedJwt } from '../keys/jwt.ts';
import { type AssuranceLevel, type SessionLimits, sessionExpiry } from '../sessions/sessions.ts';
import { isBanned } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import { type AuthzDenied, badToken, forbidden, noToken, unavailable } from './decision.ts';
import { readLimitOverride } from './headers.ts';
import type { IdentityState, IdentityStates } from './identity-cache.ts';

/** A limit of its own that a user's `app_metadata.limit` gives them, as Envoy takes it from dynamic metadata. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** A value of envoy.type.v3.RateLimitUnit: `SECOND` … `YEAR`. */
  readonly unit: 'SECOND' | 'MINUTE' | 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR';
}

/** Who makes a request, as upstreams and rate limits see it. */
export interface CallerIdentity {
  /** Absent for a token of a program, which names no user. */
  readonly userId: string | undefined;
  /** Absent for a token that names no session. */
  readonly sessionId: string | undefined;
  readonly role: string;
  readonly plan: string;
  readonly aal: AssuranceLevel;
  readonly isAnonymous: boolean;
  readonly limit: LimitOverride | undefined;
}

/** Claims of a token whose signature and times are good. */
type TokenClaims = Readonly<Record<string, unknown>>;

/** Whose token it is. */
interface TokenSubject {
  /** In lower case. Absent for a token of a program, which names no user. */
  readonly userId: string | undefined;
  /** In lower case. Absent for a token that names no session. */
  readonly sessionId: string | undefined;
}

/** A subject, or why there is none that can be looked up. */
type ReadSubject =
  | { readonly ok: true; readonly subject: TokenSubject }
  | { readonly ok: false; readonly reason: string };

/** Reads `sub` and `session_id`; an empty one is none, as in tokens of administrators. */
function readTokenSubject({ sub, session_id: session }: TokenClaims): ReadSubject {
  const userId = readUuid(sub);
  const sessionId = readUuid(session);
  if (userId === null) return refuse('sub claim must be a UUID');
  if (sessionId === null) return refuse('session_id claim must be a UUID');
  if (sessionId !== undefined && userId === undefined) return refuse('missing sub claim');
  return { ok: true, subject: { userId, sessionId } };
}

/** Null for what is there and is no UUID. */
function readUuid(claim: unknown): string | undefined | null {
  if (claim === undefined || claim === null || claim === '') return undefined;
  return typeof claim === 'string' && isUuid(claim) ? claim.toLowerCase() : null;
}

function refuse(reason: string): ReadSubject {
  return { ok: false, reason };
}

/** What may change while a token is good. */
type IdentityTraits = Pick<IdentityState, 'role' | 'appMetadata' | 'isAnonymous'>;

const assuranceLevels: ReadonlySet<unknown> = new Set<AssuranceLevel>(['aal1', 'aal2', 'aal3']);

/** Longer names of plans are taken for none: roles are bounded the same, and both are sent to upstreams with every request. */
const maxPlanChars = 255;

/** The traits that a token itself tells. */
function claimedTraits(claims: TokenClaims): IdentityTraits {
  const { role, app_metadata: appMetadata, is_anonymous: isAnonymous } = claims;
  return {
    role: typeof role === 'string' ? role : '',
    appMetadata: isJsonObject(appMetadata) ? appMetadata : {},
    isAnonymous: isAnonymous === true,
  };
}

/**
 * Puts together who calls. A token that names no user is one of an administrator's program; others without user, such as a key that a
 * web page carries, say nothing of who calls and count as anonymous.
 */
function identityOf(
  token: { readonly subject: TokenSubject; readonly claims: TokenClaims },
  traits: IdentityTraits,
  options: {
    readonly defaultPlan: string;
    readonly adminRoles: readonly string[];
    readonly limit: LimitOverride | undefined;
  },
): CallerIdentity {
  const { userId, sessionId } = token.subject;
  const { role, isAnonymous } = traits;
  return {
    userId,
    sessionId,
    role,
    plan: planOf(traits.appMetadata) ?? options.defaultPlan,
    aal: isAssuranceLevel(token.claims.aal) ? token.claims.aal : 'aal1',
    isAnonymous: isAnonymous || (userId === undefined && !options.adminRoles.includes(role)),
    limit: options.limit,
  };
}

function planOf({ plan }: JsonObject): string | undefined {
  return typeof plan === 'string' && plan !== '' && plan.length <= maxPlanChars ? plan : undefined;
}

function isAssuranceLevel(claim: unknown): claim is AssuranceLevel {
  return assuranceLevels.has(claim);
}

/** Claims were parsed from JSON: an object in them holds nothing else. */
function isJsonObject(claim: unknown): claim is JsonObject {
  return typeof claim === 'object' && claim !== null && !Array.isArray(claim);
}

/** Why a token that is good by itself is not good any more. */
type StateProblem = 'user_not_found' | 'user_banned' | 'session_not_found' | 'session_expired';

/** What has happened since the token was issued that ends it; undefined when nothing has. */
function stateProblem(
  state: IdentityState | undefined,
  token: { readonly subject: TokenSubject; readonly claims: TokenClaims },
  { limits, nowMs }: { readonly limits: SessionLimits; readonly nowMs: number },
): StateProblem | undefined {
  if (state === undefined) return 'user_not_found';
  if (isBanned(state, nowMs)) return 'user_banned';
  if (token.subject.sessionId === undefined) return undefined;
  const { session } = state;
  if (session === undefined) return 'session_not_found';
  const { createdAt, notAfter } = session;
  // A token is issued with a sign-in or a refresh. So one older than the longest pause is to be refreshed, which the session may outlive.
  const refreshedAt = issuedAt(token.claims);
  const end = sessionExpiry({ createdAt, refreshedAt, notAfter }, limits, nowMs);
  return end === undefined ? undefined : 'session_expired';
}

function issuedAt({ iat }: TokenClaims): Date | undefined {
  return typeof iat === 'number' ? new Date(iat * 1000) : undefined;
}

/** The token of a request, none, or too many to know which one others believe. */
type BearerToken =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'bad'; readonly reason: string };

const scheme = /^bearer(?: |$)/i;
/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const tokenForm = /^[\w.~+/-]+=*$/;

/** Finds the one token that the values of `authorization` have. Where there are several headers, servers differ in which they believe. */
function bearerToken(values: readonly string[]): BearerToken {
  const [value = ''] = values;
  if (values.length > 1) return { kind: 'bad', reason: 'there is more than one Authorization header' };
  if (!scheme.test(value)) return { kind: 'none' };
  const token = value.slice('bearer'.length).trim();
  if (!tokenForm.test(token)) return { kind: 'bad', reason: 'the Authorization header has no single token' };
  return { kind: 'token', token };
}

/** Makes a function that tells whether a key is seen for the first time. It remembers the last `capacity` new keys. */
function createFirstTime(capacity: number): (key: string) => boolean {
  const seen = new Set<string>();
  return (key) => {
    if (seen.has(key)) return false;
    const [oldest] = seen.size < capacity ? [] : seen;
    if (oldest !== undefined) seen.delete(oldest);
    seen.add(key);
    return true;
  };
}

/** What that takes. */
export interface IdentifyCallerDeps {
  /** Verifies signature and times of a token. */
  readonly verifyToken: (token: string, nowMs: number) => VerifiedJwt;
  /** Tells what has happened since a token was issued; undefined: the token alone is believed. */
  readonly states: IdentityStates | undefined;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Pick<Logger, 'error' | 'warn'>;
  readonly settings: Pick<
    Settings,
    'extAuthzDefaultPlan' | 'jwtAdminRoles' | 'sessionTimeboxMs' | 'sessionInactivityTimeoutMs'
  >;
}

/** Who calls, or how a route that wants to know it answers. */
export type Caller =
  | { readonly ok: true; readonly identity: CallerIdentity }
  | { readonly ok: false; readonly denial: AuthzDenied };

/** Finds out who calls by the values of `authorization`, for somebody who waits no longer than `timeoutMs`. */
export type IdentifyCaller = (
  authorization: readonly string[],
  timeoutMs?: number,
) => Caller | Promise<Caller>;

/** Users whose bad limit has been logged; beyond that many, a user is logged again. */
const maxUsersRemembered = 10_000;

/** Time between two lines of a log about the same outage. */
const quietMs = 10_000;

/** Part of the time until a proxy gives up that is waited for the database: the rest is for the way of the answer. */
const shareOfTimeout = 0.8;

interface Token {
  readonly subject: TokenSubject;
  readonly claims: TokenClaims;
}

type ReadToken =
  | { readonly ok: true; readonly token: Token }
  | { readonly ok: false; readonly denial: AuthzDenied };

/** Makes the function. It waits for nothing where the state of user and session is known. */
export function createIdentifyCaller(deps: IdentifyCallerDeps): IdentifyCaller {
  const { states, settings, nowMs, logger } = deps;
  const isFirstTime = createFirstTime(maxUsersRemembered);
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return (authorization, timeoutMs = Number.POSITIVE_INFINITY) => {
    const read = readToken(authorization);
    if (!read.ok) return read;
    const { subject, claims } = read.token;
    if (states === undefined || subject.userId === undefined)
      return identify(read.token, claimedTraits(claims));
    try {
      const state = states.find(subject.userId, subject.sessionId);
      return state instanceof Promise
        ? identifyLater(read.token, state, timeoutMs)
        : checkState(read.token, state);
    } catch (error) {
      return cannotTell(error);
    }
  };

  function readToken(authorization: readonly string[]): ReadToken {
    const sent = bearerToken(authorization);
    if (sent.kind === 'none') return { ok: false, denial: noToken() };
    if (sent.kind === 'bad') return { ok: false, denial: badJwt(sent.reason) };
    const verified = deps.verifyToken(sent.token, nowMs());
    if (!verified.ok) return { ok: false, denial: badJwt(verified.reason) };
    const { claims } = verified;
    // Administrators are given keys that do not expire; users are not.
    if (claims.exp === undefined && !settings.jwtAdminRoles.includes(claimedTraits(claims).role))
      return { ok: false, denial: badJwt('token has no exp claim') };
    const read = readTokenSubject(claims);
    if (!read.ok) return { ok: false, denial: badJwt(read.reason) };
    return { ok: true, token: { subject: read.subject, claims } };
  }

  async function identifyLater(
    token: Token,
    found: Promise<IdentityState | undefined>,
    timeoutMs: number,
  ): Promise<Caller> {
    try {
      const state = Number.isFinite(timeoutMs)
        ? inTime(found, timeoutMs * shareOfTimeout, () => tooLate(timeoutMs))
        : found;
      return checkState(token, await state);
    } catch (error) {
      return cannotTell(error);
    }
  }

  function checkState(token: Token, state: IdentityState | undefined): Caller {
    const problem = stateProblem(state, token, { limits: settings, nowMs: nowMs() });
    if (problem === 'user_banned') return { ok: false, denial: forbidden(problem) };
    if (problem !== undefined) return { ok: false, denial: badToken(problem) };
    return identify(token, state ?? claimedTraits(token.claims));
  }

  function identify(token: Token, traits: IdentityTraits): Caller {
    const limit = limitOf(token.subject, traits);
    const { extAuthzDefaultPlan: defaultPlan, jwtAdminRoles: adminRoles } = settings;
    return { ok: true, identity: identityOf(token, traits, { defaultPlan, adminRoles, limit }) };
  }

  function limitOf(
    { userId = '' }: TokenSubject,
    { appMetadata }: IdentityTraits,
  ): LimitOverride | undefined {
    const read = readLimitOverride(appMetadata);
    if (read.ok) return read.limit;
    if (isFirstTime(userId))
      logger.warn({ user_id: userId, reason: read.reason }, 'limit in app_metadata is ignored');
    return undefined;
  }

  function cannotTell(error: unknown): Caller {
    // Every request of that time fails alike.
    if (nowMs() >= quietUntilMs) {
      quietUntilMs = nowMs() + quietMs;
      logger.error({ err: error }, 'state of users is not known, their requests are denied');
    }
    return { ok: false, denial: unavailable() };
  }
}

function tooLate(timeoutMs: number): Error {
  const detail = `the database did not answer before the proxy gives up, after ${timeoutMs} ms`;
  return errors.authorization_unavailable({ detail });
}

function badJwt(reason: string): AuthzDenied {
  return badToken('bad_jwt', `${errors.bad_jwt.definition.message}, ${reason}`);
}
