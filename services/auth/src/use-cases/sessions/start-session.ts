import { accessTokenClaims } from '../../domain/access-token-claims.ts';
import { type AuditAction, auditEntry } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { PasswordWeakness } from '../../domain/password-policy.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { Session } from '../../domain/session.ts';
import type { User } from '../../domain/user.ts';
import type { DepsWith } from '../../services.ts';
import { signJwt } from '../../tokens/jwt.ts';

/** What a sign-in answers: the tokens, and the user they are for. */
export interface IssuedSession {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  readonly refreshToken: string;
  readonly sessionId: string;
  readonly user: User;
  /** For somebody who has signed in with a password that is not good enough any more. */
  readonly weakPassword?: PasswordWeakness;
}

/** How the user proved who they are. */
export interface SignIn {
  /** Value of the claim `amr`: `password`, `otp`, `recovery`, … */
  readonly method: string;
  readonly aal?: Session['aal'];
  /** Default `login`. */
  readonly action?: AuditAction;
  /** More for the audit log. */
  readonly traits?: JsonObject;
}

/** Signs a user in: a new session, its first refresh token, and an access token. One statement. */
export type StartSession = (user: User, signIn: SignIn, facts: RequestFacts) => Promise<IssuedSession>;

/** What issuing tokens takes. */
export type IssueDeps = DepsWith<'keys', 'jwtExpMs' | 'jwtIssuer'>;

/** Creates {@link StartSession}. */
export function createStartSession(deps: IssueDeps & DepsWith<'store' | 'random', never>): StartSession {
  return async (user, { method, aal = 'aal1', action = 'login', traits }, facts) => {
    const at = new Date(facts.nowMs);
    const session = { id: deps.random.uuid(), aal, methods: [{ method, at }] };
    const refreshToken = deps.random.refreshToken();
    await deps.store.sessions.start(
      {
        id: session.id,
        userId: user.id,
        aal,
        method,
        refreshToken,
        at,
        userAgent: facts.userAgent,
        ip: facts.clientAddress,
        tag: facts.sessionTag ?? '',
      },
      auditEntry(user, action, { facts, ...(traits && { traits }) }),
    );
    const signedIn = { ...user, lastSignInAt: at, updatedAt: at };
    return issueTokens(deps, { user: signedIn, session, refreshToken, nowMs: facts.nowMs });
  };
}

/** Signs an access token for a session that exists. */
export function issueTokens(
  { keys, settings }: IssueDeps,
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
