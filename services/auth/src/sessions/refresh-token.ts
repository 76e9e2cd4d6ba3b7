import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Millis } from '@tollgate/kit/time';

/** What is known of a refresh token that was presented. */
export interface RefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The token that is good now in its place; absent when nobody can tell. */
  readonly successor: Successor | undefined;
}

/** The token that took the place of another one. */
export interface Successor {
  readonly token: string;
  /** Is it the very next one? */
  readonly isNext: boolean;
}

/** Why a token may be used again: clients that refresh at once, a lost answer, a setting. Values of a header. */
export type ReuseCause = 'concurrent-refresh' | 'fail-to-save' | 'always-allow';

/** What is to happen with a refresh token that was presented. */
export type RefreshDecision =
  /** Revoke it and issue a successor. */
  | { readonly action: 'rotate' }
  /** It stays good: note that it was used, and answer it. */
  | { readonly action: 'keep' }
  /** Answer this token, which is good now. */
  | { readonly action: 'answer'; readonly token: string; readonly causes: readonly ReuseCause[] }
  /** Refuse it: without rotation a token that another one has replaced says nothing of a theft. */
  | { readonly action: 'refuse' }
  /** It was stolen or used twice: the session ends. */
  | { readonly action: 'end-session' };

/** The settings that say what reuse means. */
export interface RotationPolicy {
  readonly refreshTokenRotationEnabled: boolean;
  readonly refreshTokenReuseIntervalMs: Millis;
  /** The previous token is no sign of a theft, however long after. */
  readonly refreshTokenAllowReuse: boolean;
}

/** Decides what a refresh token is good for. */
export function decideRefresh(token: RefreshToken, policy: RotationPolicy, nowMs: number): RefreshDecision {
  if (!token.revoked) {
    return { action: policy.refreshTokenRotationEnabled ? 'rotate' : 'keep' };
  }
  const { successor } = token;
  const causes = reuseCauses(token, policy, nowMs);
  if (successor !== undefined && causes.length > 0)
    return { action: 'answer', token: successor.token, causes };
  return { action: policy.refreshTokenRotationEnabled ? 'end-session' : 'refuse' };
}

/** What speaks for a second use; a lost answer alone does not, unless the settings say so. */
function reuseCauses(token: RefreshToken, policy: RotationPolicy, nowMs: number): readonly ReuseCause[] {
  const isRecent = nowMs - token.updatedAt.getTime() < policy.refreshTokenReuseIntervalMs;
  const isNext = token.successor?.isNext === true;
  const isAllowed = isNext && policy.refreshTokenAllowReuse;
  if (!isRecent && !isAllowed) return [];
  return [
    ...(isRecent ? (['concurrent-refresh'] as const) : []),
    ...(isNext ? (['fail-to-save'] as const) : []),
    ...(isAllowed ? (['always-allow'] as const) : []),
  ];
}

/** Has the text the form of a refresh token of version 1? Whatever has not is unknown without a look at the database. */
export function isRefreshToken(text: string): boolean {
  return /^[a-z0-9_-]{12,64}$/i.test(text);
}

/** Does a session belong to so many percent of all? The answer is the same each time. */
export function isAmongPercent(sessionId: string, percentage: number): boolean {
  // Ids are random.
  return Number.parseInt(sessionId.slice(0, 8), 16) % 100 < percentage;
}

/** Which refresh of which session a token is for. */
export interface CounterTokenContent {
  /** A UUID. */
  readonly sessionId: string;
  /** 0 for the first token of a session. */
  readonly counter: number;
}

/** A refresh token as it was presented: nobody knows yet whether the session's key has signed it. */
export interface CounterToken extends CounterTokenContent {
  isSignedWith(hmacKey: string): boolean;
}

const version = 0;
const uuidBytes = 16;
/** Of HMAC-SHA256: enough against guessing, where each guess is a request. */
const signatureBytes = 16;
/** Of SHA-256: tells a slip from a token without asking the database. */
const checksumBytes = 4;
/** A counter that JavaScript counts exactly takes no more. */
const mostCounterBytes = 8;
const leastBytes = 1 + uuidBytes + 1 + signatureBytes + checksumBytes;
const mostBytes = leastBytes - 1 + mostCounterBytes;

/**
 * Makes a refresh token of version 2: base64url of a zero byte, the session's id, the counter (unsigned LEB128), their signature with the
 * key of the session, and a checksum. Of it nothing is kept but key and counter. `hmacKey` is in base64url.
 */
export function makeCounterToken({ sessionId, counter }: CounterTokenContent, hmacKey: string): string {
  const id = Buffer.from(sessionId.replaceAll('-', ''), 'hex');
  const content = Buffer.concat([Buffer.from([version]), id, encodeCounter(counter)]);
  const signed = Buffer.concat([content, signatureOf(content, hmacKey)]);
  return Buffer.concat([signed, checksumOf(signed)]).toString('base64url');
}

/** Reads a refresh token of version 2; undefined for any other text. */
export function readCounterToken(text: string): CounterToken | undefined {
  if (text.length > Math.ceil((mostBytes * 4) / 3) || !/^[\w-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < leastBytes || bytes[0] !== version) return undefined;
  const signed = bytes.subarray(0, -checksumBytes);
  if (!checksumOf(signed).equals(bytes.subarray(-checksumBytes))) return undefined;
  const content = signed.subarray(0, -signatureBytes);
  const signature = signed.subarray(-signatureBytes);
  const counter = decodeCounter(content.subarray(1 + uuidBytes));
  if (counter === undefined) return undefined;
  return {
    sessionId: uuidOf(content.subarray(1, 1 + uuidBytes)),
    counter,
    isSignedWith: (hmacKey) => timingSafeEqual(signatureOf(content, hmacKey), signature),
  };
}

function signatureOf(content: Buffer, hmacKey: string): Buffer {
  const key = Buffer.from(hmacKey, 'base64url');
  return createHmac('sha256', key).update(content).digest().subarray(0, signatureBytes);
}

function checksumOf(signed: Buffer): Buffer {
  return createHash('sha256').update(signed).digest().subarray(0, checksumBytes);
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function encodeCounter(counter: number): Buffer {
  const bytes: number[] = [];
  let rest = counter;
  // Not by shifts, which cut numbers to 32 bits.
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** Undefined for what has another spelling, too: of one token there is one text. */
function decodeCounter(bytes: Buffer): number | undefined {
  const counter = bytes.reduceRight((sum, byte) => sum * 128 + (byte % 128), 0);
  return Number.isSafeInteger(counter) && encodeCounter(counter).equals(bytes) ? counter : undefined;
}
