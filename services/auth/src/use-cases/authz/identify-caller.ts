import type { Logger } from '@tollgate/kit/logger';
import type { AuthzDenied } from '../../domain/authz/authz-decision.ts';
import type { CallerIdentity, LimitOverride } from '../../domain/authz/caller-identity.ts';
import { claimedTraits, type IdentityTraits, identityOf } from '../../domain/authz/identity-of.ts';
import { readLimitOverride } from '../../domain/authz/limit-override.ts';
import { stateProblem } from '../../domain/authz/state-problem.ts';
import { readTokenSubject, type TokenClaims, type TokenSubject } from '../../domain/authz/token-subject.ts';
import { errors } from '../../errors.ts';
import type { IdentityState, IdentityStates } from '../../ports/identity-states.ts';
import type { Settings } from '../../settings/settings.ts';
import type { VerifiedJwt } from '../../tokens/jwt.ts';
import { bearerToken } from './bearer-token.ts';
import { badToken, forbidden, noToken, unavailable } from './denials.ts';
import { createFirstTime } from './first-time.ts';

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

/** Finds out who calls by the values of `authorization`. */
export type IdentifyCaller = (authorization: readonly string[]) => Caller | Promise<Caller>;

/** Users whose bad limit has been logged; beyond that many, a user is logged again. */
const maxUsersRemembered = 10_000;

/** Time between two lines of a log about the same outage. */
const quietMs = 10_000;

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
  return (authorization) => {
    const read = readToken(authorization);
    if (!read.ok) return read;
    const { subject, claims } = read.token;
    if (states === undefined || subject.userId === undefined)
      return identify(read.token, claimedTraits(claims));
    try {
      const state = states.find(subject.userId, subject.sessionId);
      return state instanceof Promise ? identifyLater(read.token, state) : checkState(read.token, state);
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
  async function identifyLater(token: Token, found: Promise<IdentityState | undefined>): Promise<Caller> {
    try {
      return checkState(token, await found);
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

function badJwt(reason: string): AuthzDenied {
  return badToken('bad_jwt', `${errors.bad_jwt.definition.message}, ${reason}`);
}
