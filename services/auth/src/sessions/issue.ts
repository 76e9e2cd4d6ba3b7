import type { Context } from '../context.ts';
import { type AuditAction, auditEntry } from '../db/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { signJwt } from '../keys/jwt.ts';
import type { PasswordWeakness } from '../passwords/policy.ts';
import type { User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import { makeCounterToken, type ReuseCause } from './refresh-token.ts';
import type { Session } from './sessions.ts';

/** The settings that access tokens depend on. */
interface AccessTokenPolicy {
  readonly jwtExpMs: number;
  /** Left out when empty. */
  readonly jwtIssuer: string;
}

/**
 * With more than this a token does not fit into the headers that servers take, and nobody could use it. Metadata have a bound of their
 * own; some that were there before, or were written by several requests at once, may be larger.
 */
const maxClaimsBytes = 10 * 1024;

/**
 * What an access token says of a user and a session; times in seconds since 1970. Metadata that do not fit are left out: first what the
 * user says, then, but for the providers, what the operator says.
 */
function accessTokenClaims(
  user: User,
  session: Pick<Session, 'id' | 'aal' | 'methods'>,
  { policy, nowMs }: { readonly policy: AccessTokenPolicy; readonly nowMs: number },
): JsonObject & { readonly exp: number } {
  const claims = allClaims(user, session, { policy, nowMs });
  if (fits(claims)) return claims;
  const withoutOwn = { ...claims, user_metadata: {} };
  if (fits(withoutOwn)) return withoutOwn;
  const { provider = '', providers = [] } = user.appMetadata;
  return { ...withoutOwn, app_metadata: { provider, providers } };
}

function fits(claims: JsonObject): boolean {
  return Buffer.byteLength(JSON.stringify(claims)) <= maxClaimsBytes;
}

function allClaims(
  user: User,
  session: Pick<Session, 'id' | 'aal' | 'methods'>,
  { policy, nowMs }: { readonly policy: AccessTokenPolicy; readonly nowMs: number },
): JsonObject & { readonly exp: number } {
  const issuedAt = Math.floor(nowMs / 1000);
  return {
    ...(policy.jwtIssuer !== '' && { iss: policy.jwtIssuer }),
    sub: user.id,
    aud: user.aud,
    exp: issuedAt + Math.floor(policy.jwtExpMs / 1000),
    iat: issuedAt,
    email: user.email,
    phone: user.phone,
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    role: user.role,
    aal: session.aal,
    amr: session.methods.map(({ method, at }) => ({ method, timestamp: Math.floor(at.getTime() / 1000) })),
    session_id: session.id,
    is_anonymous: user.isAnonymous,
  };
}

/** What a sign-in answers: the tokens, and the user they are for. */
export interface IssuedSession {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  readonly refreshToken: string;
  /** Of a refresh: what it did with the token that was presented. */
  readonly refresh?: RefreshOutcome;
  readonly sessionId: string;
  readonly user: User;
  /** For somebody who has signed in with a password that is not good enough any more. */
  readonly weakPassword?: PasswordWeakness;
}

/** What a refresh did with the token that was presented. */
export interface RefreshOutcome {
  /** Is the token that was answered a new one? */
  readonly rotated: boolean;
  /** Why a token that another one has replaced was taken; none for one that was good. */
  readonly causes: readonly ReuseCause[];
}

/** How the user proved who they are. */
interface SignIn {
  /** Value of the claim `amr`: `password`, `otp`, `recovery`, … */
  readonly method: string;
  readonly aal?: Session['aal'];
  /** Default `login`. */
  readonly action?: AuditAction;
  /** More for the audit log. */
  readonly traits?: JsonObject;
}

/** Signs a user in: a new session, its first refresh token, and an access token. One statement. */
export type StartSession = (user: User, signIn: SignIn, metadata: RequestMetadata) => Promise<IssuedSession>;

/** Creates {@link StartSession}. */
export function createStartSession(deps: Context): StartSession {
  return async (user, { method, aal = 'aal1', action = 'login', traits }, metadata) => {
    const at = new Date(metadata.nowMs);
    const session = { id: deps.random.uuid(), aal, methods: [{ method, at }] };
    const { refreshToken, hmacKey } = firstRefreshToken(session.id, deps);
    await deps.store.sessions.start(
      {
        id: session.id,
        userId: user.id,
        aal,
        method,
        refreshToken,
        ...(hmacKey !== undefined && { hmacKey }),
        at,
        userAgent: metadata.userAgent,
        ip: metadata.clientAddress,
        tag: metadata.sessionTag ?? '',
      },
      auditEntry(user, action, { metadata, ...(traits && { traits }) }),
    );
    const signedIn = { ...user, lastSignInAt: at, updatedAt: at };
    return issueTokens(deps, { user: signedIn, session, refreshToken, nowMs: metadata.nowMs });
  };
}

/** In the form that the settings ask for; with the key that signs it and those that follow, if that is the second one. */
function firstRefreshToken(
  sessionId: string,
  { random, settings }: Context,
): { readonly refreshToken: string; readonly hmacKey?: string } {
  if (settings.refreshTokenAlgorithmVersion < 2) return { refreshToken: random.refreshToken() };
  const hmacKey = random.hmacKey();
  return { refreshToken: makeCounterToken({ sessionId, counter: 0 }, hmacKey), hmacKey };
}

/** Signs an access token for a session that exists. */
export function issueTokens(
  { keys, settings }: Context,
  of: {
    readonly user: User;
    readonly session: Pick<Session, 'id' | 'aal' | 'methods'>;
    readonly refreshToken: string;
    readonly nowMs: number;
  },
): IssuedSession {
  const { user, session, refreshToken, nowMs } = of;
  const claims = accessTokenClaims(user, session, { policy: settings, nowMs });
  return {
    accessToken: signJwt(claims, keys),
    expiresInSeconds: Math.floor(settings.jwtExpMs / 1000),
    expiresAt: claims.exp,
    refreshToken,
    sessionId: session.id,
    user,
  };
}
