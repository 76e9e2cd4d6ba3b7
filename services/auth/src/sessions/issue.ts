import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import { customizeClaims } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { signJwt, tokenAudience, tokenIssuer } from '../keys/jwt.ts';
import {
  deriveDigestedToken,
  isDigest,
  type Randomness,
  randomBase32,
  randomDigestedToken,
  toStoredForm,
} from '../keys/secrets.ts';
import type { PasswordWeakness } from '../passwords/passwords.ts';
import { type JsonObject, toUserJson, type User } from '../users/user.ts';
import type { ReuseCause } from './refresh.ts';
import type { Session } from './store.ts';

/** Tokens of a session and their user. */
export interface IssuedSession {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  readonly refreshToken: string;
  /** Of a refresh only. */
  readonly refresh?: RefreshOutcome;
  readonly sessionId: string;
  readonly user: User;
  /** Of a sign-in at an external provider only. */
  readonly providerTokens?: ProviderTokens;
  /** Of a sign-in with a password that the current policy rejects. */
  readonly weakPassword?: PasswordWeakness;
}

/** Tokens of the provider that a user has signed in at. They are not stored. */
export interface ProviderTokens {
  readonly accessToken: string;
  /** Empty if the provider issued none. */
  readonly refreshToken: string;
}

/** What a refresh did with the presented token. */
export interface RefreshOutcome {
  /** Whether a new refresh token was issued. */
  readonly rotated: boolean;
  /** Why a token that has a successor was accepted; empty for a current token. */
  readonly causes: readonly ReuseCause[];
}

interface SignIn {
  /** Value of the claim `amr`: `password`, `otp`, `recovery`, … */
  readonly method: string;
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
  context: Context,
  signIn: SignIn & { readonly user: User },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  return storeSession(context, await prepareSession(context, signIn, metadata), metadata);
}

/** The part of `startSession` that may call a hook, which must not run in a transaction. */
export async function prepareSession(
  context: Context,
  { user, method, traits }: SignIn & { readonly user: User },
  metadata: RequestMetadata,
): Promise<PreparedSession> {
  const at = new Date(metadata.nowMs);
  const session = { id: context.random.uuid(), aal: 'aal1', methods: [{ method, at }] } as const;
  const token = await signAccessToken(context, { user, session, method }, metadata);
  return { user, method, ...(traits && { traits }), session, token };
}

export async function storeSession(
  context: Context,
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
    },
    auditEntry(user, 'login', { metadata, ...(traits && { traits }) }),
  );
  const signedIn = { ...user, lastSignInAt: at, updatedAt: at };
  return { ...token, refreshToken, sessionId: session.id, user: signedIn };
}

function firstRefreshToken(
  context: Context,
  sessionId: string,
): { readonly refreshToken: string; readonly hmacKey?: string } {
  const { random, settings } = context;
  if (settings.refreshTokenAlgorithmVersion < 2) return { refreshToken: makeRefreshToken(context) };
  const hmacKey = makeHmacKey(random);
  return { refreshToken: makeCounterToken({ sessionId, counter: 0 }, hmacKey), hmacKey };
}

type ClaimedSession = Pick<Session, 'id' | 'aal' | 'methods'>;

type AccessToken = Pick<IssuedSession, 'accessToken' | 'expiresInSeconds' | 'expiresAt'>;

/**
 * Signs an access token. Runs before the session is written: a hook may reject the request.
 *
 * @throws AppError of the hook for access tokens
 */
export async function signAccessToken(
  context: Context,
  {
    user,
    session,
    method,
  }: {
    readonly user: User;
    readonly session: ClaimedSession;
    /** Of this sign-in, or `token_refresh`. */
    readonly method: string;
  },
  metadata: RequestMetadata,
): Promise<AccessToken> {
  const { keys, hooks, settings } = context;
  const { nowMs } = metadata;
  const own = limitClaims(accessTokenClaims(user, session, { settings, nowMs }), user);
  const claims = hooks.enabled.has('CUSTOM_ACCESS_TOKEN')
    ? await customizeClaims(context, { claims: own, method }, metadata)
    : own;
  if (claims !== own && !fits(claims))
    throw errors.hook_payload_over_size_limit({
      message: `The claims exceed the size limit of ${maxClaimsBytes} bytes`,
    });
  return {
    accessToken: signJwt(claims, keys),
    expiresInSeconds: claims.exp - Math.floor(nowMs / 1000),
    expiresAt: claims.exp,
  };
}

type AccessTokenClaims = JsonObject & { readonly sub: string; readonly exp: number };

function accessTokenClaims(
  user: User,
  session: ClaimedSession,
  {
    settings,
    nowMs,
  }: {
    readonly settings: Settings;
    readonly nowMs: number;
  },
): AccessTokenClaims {
  const issuedAt = Math.floor(nowMs / 1000);
  const issuer = tokenIssuer(settings);
  return {
    ...(issuer !== '' && { iss: issuer }),
    sub: user.id,
    aud: tokenAudience(user.aud, settings),
    exp: issuedAt + Math.floor(settings.jwtExpMs / 1000),
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

/**
 * A larger token does not fit into the request headers that servers accept. Writes of metadata are
 * limited too, but concurrent writes and rows of earlier versions can exceed that limit.
 */
const maxClaimsBytes = 10 * 1024;

/**
 * Drops metadata that do not fit: the user's own first, then the application's, except providers.
 */
function limitClaims(claims: AccessTokenClaims, { appMetadata }: User): AccessTokenClaims {
  if (fits(claims)) return claims;
  const withoutOwn = { ...claims, user_metadata: {} };
  if (fits(withoutOwn)) return withoutOwn;
  const { provider = '', providers = [] } = appMetadata;
  return { ...withoutOwn, app_metadata: { provider, providers } };
}

function fits(claims: JsonObject): boolean {
  return Buffer.byteLength(JSON.stringify(claims)) <= maxClaimsBytes;
}

/**
 * Replies with tokens, which must not be cached.
 *
 * @see RFC 6749 §5.1 https://www.rfc-editor.org/rfc/rfc6749#section-5.1
 */
export function sendSession(
  reply: FastifyReply,
  session: IssuedSession,
  more: JsonObject = {},
): FastifyReply {
  return reply
    .header('cache-control', 'no-store')
    .header('pragma', 'no-cache')
    .header('sb-auth-user-id', session.user.id)
    .header('sb-auth-session-id', session.sessionId)
    .headers(refreshTokenHeaders(session))
    .send({
      access_token: session.accessToken,
      token_type: 'bearer',
      expires_in: session.expiresInSeconds,
      expires_at: session.expiresAt,
      refresh_token: session.refreshToken,
      user: toUserJson(session.user),
      ...providerTokenMembers(session.providerTokens),
      ...(session.weakPassword && { weak_password: session.weakPassword }),
      ...more,
    });
}

/** Tells clients that the fragment is for them. */
export const fragmentMarker = { sb: '' };

/** Parameters of a redirect that signs a user in. */
export function sessionFragment(session: IssuedSession): Readonly<Record<string, string>> {
  return {
    ...fragmentMarker,
    access_token: session.accessToken,
    expires_at: String(session.expiresAt),
    expires_in: String(session.expiresInSeconds),
    ...providerTokenMembers(session.providerTokens),
    refresh_token: session.refreshToken,
    token_type: 'bearer',
  };
}

/** Members of a response, or parameters of a redirect. */
function providerTokenMembers(tokens: ProviderTokens | undefined): Readonly<Record<string, string>> {
  if (tokens === undefined) return {};
  const { accessToken, refreshToken } = tokens;
  return {
    provider_token: accessToken,
    ...(refreshToken !== '' && { provider_refresh_token: refreshToken }),
  };
}

/** Help to find out why a user was signed out; they disclose no secret. */
function refreshTokenHeaders({ refreshToken, refresh }: IssuedSession): Record<string, string> {
  const counter = parseCounterToken(refreshToken)?.counter;
  return {
    'sb-auth-refresh-token-prefix': refreshToken.slice(0, 5),
    ...(counter !== undefined && { 'sb-auth-refresh-token-counter': String(counter) }),
    ...(refresh !== undefined && {
      'sb-auth-refresh-token-rotated': String(refresh.rotated),
      'sb-auth-refresh-token-reuse': String(refresh.causes.length > 0),
      ...(refresh.causes.length > 0 && { 'sb-auth-refresh-token-reuse-cause': refresh.causes.join() }),
    }),
  };
}

/** The length of GoTrue's: 60 bits. They can only be guessed online, where requests are limited. */
const refreshTokenChars = 12;
/** The length of the hash, as RFC 2104 §3 recommends. */
const hmacKeyBytes = 32;

/** Makes a refresh token of version 1. */
function makeRefreshToken({ random, settings }: Pick<Context, 'random' | 'settings'>): string {
  return settings.tokenDigests ? randomDigestedToken(random) : randomBase32(random, refreshTokenChars);
}

/** Makes the refresh token of version 1 that replaces another one, by the stored form of that. */
export function makeSuccessor(context: Pick<Context, 'random' | 'settings'>, stored: string): string {
  const { tokenDigests, jwtSecret } = context.settings;
  return tokenDigests && stored !== '' ? deriveDigestedToken(stored, jwtSecret) : makeRefreshToken(context);
}

/**
 * The successor of a token, by the stored forms of both. Undefined after a change of the secret.
 */
export function findSuccessor(
  { settings }: Pick<Context, 'settings'>,
  { stored, successor }: { readonly stored: string; readonly successor: string },
): string | undefined {
  if (!isDigest(successor)) return successor;
  const token = deriveDigestedToken(stored, settings.jwtSecret);
  return toStoredForm(token) === successor ? token : undefined;
}

/** Makes the key of a session with refresh tokens of version 2, in base64url. */
export function makeHmacKey(random: Randomness): string {
  return random.bytes(hmacKeyBytes).toString('base64url');
}

/** Payload of a refresh token of version 2. */
interface CounterTokenPayload {
  /** A UUID. */
  readonly sessionId: string;
  /** 0 for the first token of a session. */
  readonly counter: number;
}

/** A presented refresh token of version 2, whose signature is not verified yet. */
export interface CounterToken extends CounterTokenPayload {
  isSignedWith(hmacKey: string): boolean;
}

const version = 0;
const uuidBytes = 16;
/** HMAC-SHA256, truncated to 128 bits: enough for a token that can only be guessed online. */
const signatureBytes = 16;
/** SHA-256, truncated: rejects mistyped tokens without a query. */
const checksumBytes = 4;
/** Of `Number.MAX_SAFE_INTEGER` in LEB128. */
const maxCounterBytes = 8;
const minBytes = 1 + uuidBytes + 1 + signatureBytes + checksumBytes;
const maxBytes = minBytes - 1 + maxCounterBytes;

/**
 * Makes a refresh token of version 2: base64url of a zero byte, the id of the session, the counter
 * (unsigned LEB128), their signature with the key of the session (base64url), and a checksum.
 */
export function makeCounterToken({ sessionId, counter }: CounterTokenPayload, hmacKey: string): string {
  const id = Buffer.from(sessionId.replaceAll('-', ''), 'hex');
  const content = Buffer.concat([Buffer.from([version]), id, encodeCounter(counter)]);
  const signed = Buffer.concat([content, sign(content, hmacKey)]);
  return Buffer.concat([signed, checksum(signed)]).toString('base64url');
}

/** Parses a refresh token of version 2; undefined for any other text. */
export function parseCounterToken(text: string): CounterToken | undefined {
  if (text.length > Math.ceil((maxBytes * 4) / 3) || !/^[\w-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < minBytes || bytes[0] !== version) return undefined;
  const signed = bytes.subarray(0, -checksumBytes);
  if (!checksum(signed).equals(bytes.subarray(-checksumBytes))) return undefined;
  const content = signed.subarray(0, -signatureBytes);
  const signature = signed.subarray(-signatureBytes);
  const counter = decodeCounter(content.subarray(1 + uuidBytes));
  if (counter === undefined) return undefined;
  return {
    sessionId: formatUuid(content.subarray(1, 1 + uuidBytes)),
    counter,
    isSignedWith: (hmacKey) => timingSafeEqual(sign(content, hmacKey), signature),
  };
}

function sign(content: Buffer, hmacKey: string): Buffer {
  const key = Buffer.from(hmacKey, 'base64url');
  return createHmac('sha256', key).update(content).digest().subarray(0, signatureBytes);
}

function checksum(signed: Buffer): Buffer {
  return createHash('sha256').update(signed).digest().subarray(0, checksumBytes);
}

function formatUuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function encodeCounter(counter: number): Buffer {
  const bytes: number[] = [];
  let rest = counter;
  // No shifts: they truncate numbers to 32 bits.
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** Undefined for a non-canonical encoding as well: each token has exactly one text. */
function decodeCounter(bytes: Buffer): number | undefined {
  const counter = bytes.reduceRight((sum, byte) => sum * 128 + (byte % 128), 0);
  return Number.isSafeInteger(counter) && encodeCounter(counter).equals(bytes) ? counter : undefined;
}
