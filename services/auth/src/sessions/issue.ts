import type { JsonObject } from '@tollgate/kit/json';
import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { ProviderTokens } from '../identity-providers/provider.ts';
import type { PasswordWeakness } from '../passwords/passwords.ts';
import type { User } from '../users/user.ts';
import {
  type AccessToken,
  type ClaimedSession,
  narrowClient,
  signAccessToken,
  type TokenAccess,
} from './access-token.ts';
import type { SessionsContext } from './context.ts';
import type { ReuseCause } from './refresh.ts';
import { makeCounterToken, makeHmacKey, makeRefreshToken } from './refresh-token.ts';
import type { Session, SessionClient } from './store.ts';

/** Tokens of a session and their user. */
export interface IssuedSession {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  readonly refreshToken: string;
  /** Outcome of a refresh; absent for sign-ins. */
  readonly refresh?: RefreshOutcome;
  readonly sessionId: string;
  readonly user: User;
  /** The OAuth client that has the session. */
  readonly client?: SessionClient | undefined;
  /** Tokens of a sign-in at an external provider. */
  readonly providerTokens?: ProviderTokens;
  /** Weakness of a password that the current policy rejects. */
  readonly weakPassword?: PasswordWeakness;
}

/** Handling of the presented token by a refresh. */
export interface RefreshOutcome {
  /** Whether a new refresh token was issued. */
  readonly rotated: boolean;
  /** Why a token that has a successor was accepted; empty for a current token. */
  readonly causes: readonly ReuseCause[];
}

interface SignIn extends Pick<TokenAccess, 'details'> {
  /** Default: a random one. */
  readonly sessionId?: string;
  /** The OAuth client that the session is for. */
  readonly client?: SessionClient;
  /** Value of the claim `amr`: `password`, `otp`, `recovery`, … */
  readonly method: string;
  /** The key that the access token is bound to. */
  readonly thumbprint?: string | undefined;
  /** More for the audit log. */
  readonly traits?: JsonObject;
}

/** A session that is not stored yet. */
interface PreparedSession extends SignIn {
  readonly user: User;
  readonly session: ClaimedSession;
  readonly token: AccessToken;
}

/** Signs a user in: starts a session with its first refresh token. One statement. */
export async function startSession(
  context: SessionsContext,
  signIn: SignIn & { readonly user: User },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  return storeSession(context, await prepareSession(context, signIn, metadata), metadata);
}

/** The part of `startSession` that may call a hook, which must not run in a transaction. */
export async function prepareSession(
  context: SessionsContext,
  { user, method, traits, sessionId, client, thumbprint, details }: SignIn & { readonly user: User },
  metadata: RequestMetadata,
): Promise<PreparedSession> {
  const at = new Date(metadata.nowMs);
  const session = {
    id: sessionId ?? context.random.uuid(),
    aal: 'aal1',
    methods: [{ method, at }],
    organization: undefined,
    client,
  } as const;
  const claimed = { ...session, client: client && narrowClient(client, { details }) };
  const token = await signAccessToken(context, { user, session: claimed, method, thumbprint }, metadata);
  return { user, method, ...(traits && { traits }), session, token };
}

export async function storeSession(
  context: SessionsContext,
  { user, method, traits, session, token }: PreparedSession,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const at = new Date(metadata.nowMs);
  const { refreshToken, hmacKey } = firstRefreshToken(context, session.id);
  await context.store.sessions.start(
    {
      id: session.id,
      userId: user.id,
      aal: session.aal,
      method,
      refreshToken,
      ...(hmacKey !== undefined && { hmacKey }),
      at,
      userAgent: metadata.userAgent,
      ip: metadata.clientAddress,
      tag: metadata.sessionTag ?? '',
      client: session.client,
    },
    auditEntry(user, 'login', { metadata, ...(traits && { traits }) }),
  );
  const signedIn = { ...user, lastSignInAt: at, updatedAt: at };
  return { ...token, refreshToken, sessionId: session.id, user: signedIn };
}

/**
 * Starts a session with the authentication of another one, which continues: single sign-on. It ends
 * when that one would have expired.
 *
 * @throws AppError `session_not_found`
 */
export async function deriveSession(
  context: SessionsContext,
  { user, session: source }: { readonly user: User; readonly session: Session },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const session = { ...source, id: context.random.uuid() };
  const method = source.methods[0]?.method ?? 'password';
  const token = await signAccessToken(context, { user, session, method }, metadata);
  const { refreshToken, hmacKey } = firstRefreshToken(context, session.id);
  const isStarted = await context.store.sessions.derive(
    {
      id: session.id,
      sourceId: source.id,
      refreshToken,
      ...(hmacKey !== undefined && { hmacKey }),
      at: new Date(metadata.nowMs),
      userAgent: metadata.userAgent,
      ip: metadata.clientAddress,
    },
    auditEntry(user, 'login', { metadata, traits: { provider: 'pages' } }),
  );
  if (!isStarted) throw errors.session_not_found();
  return { ...token, refreshToken, sessionId: session.id, user };
}

function firstRefreshToken(
  context: SessionsContext,
  sessionId: string,
): { readonly refreshToken: string; readonly hmacKey?: string } {
  const { random, settings } = context;
  if (settings.refreshTokenAlgorithmVersion < 2) return { refreshToken: makeRefreshToken(context) };
  const hmacKey = makeHmacKey(random);
  return { refreshToken: makeCounterToken({ sessionId, counter: 0 }, hmacKey), hmacKey };
}
