import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Settings } from '../config/settings.ts';

/** State of a presented refresh token. */
export interface RefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The current token of the session; absent if it is unknown. */
  readonly successor: Successor | undefined;
}

export interface Successor {
  readonly token: string;
  /** Whether it directly follows the presented token. */
  readonly isNext: boolean;
}

/**
 * Why a token may be used again: concurrent refreshes, a lost response, a setting. Values of a
 * header.
 */
export type ReuseCause = 'concurrent-refresh' | 'fail-to-save' | 'always-allow';

export type RefreshDecision =
  /** Revoke it and issue a successor. */
  | { readonly action: 'rotate' }
  /** Rotation is disabled: record the refresh and return the same token. */
  | { readonly action: 'keep' }
  /** Return this token, the current one. */
  | { readonly action: 'answer'; readonly token: string; readonly causes: readonly ReuseCause[] }
  /** Reject it. Without rotation, reuse of a replaced token does not indicate theft. */
  | { readonly action: 'refuse' }
  /** Token reuse, which indicates theft: end the session. */
  | { readonly action: 'end-session' };

type RotationSettings = Pick<
  Settings,
  'refreshTokenRotationEnabled' | 'refreshTokenReuseIntervalMs' | 'refreshTokenAllowReuse'
>;

export function decideRefresh(
  token: RefreshToken,
  settings: RotationSettings,
  nowMs: number,
): RefreshDecision {
  if (!token.revoked) return { action: settings.refreshTokenRotationEnabled ? 'rotate' : 'keep' };
  const { successor } = token;
  const causes = reuseCauses(token, settings, nowMs);
  if (successor !== undefined && causes.length > 0)
    return { action: 'answer', token: successor.token, causes };
  return { action: settings.refreshTokenRotationEnabled ? 'end-session' : 'refuse' };
}

/**
 * Why a second use is legitimate. A lost response alone is no reason unless the settings allow
 * reuse.
 */
function reuseCauses(token: RefreshToken, settings: RotationSettings, nowMs: number): readonly ReuseCause[] {
  const isRecent = nowMs - token.updatedAt.getTime() < settings.refreshTokenReuseIntervalMs;
  const isNext = token.successor?.isNext === true;
  const isAllowed = isNext && settings.refreshTokenAllowReuse;
  if (!isRecent && !isAllowed) return [];
  return [
    ...(isRecent ? (['concurrent-refresh'] as const) : []),
    ...(isNext ? (['fail-to-save'] as const) : []),
    ...(isAllowed ? (['always-allow'] as const) : []),
  ];
}

/** Whether the text has the form of a refresh token of version 1. Saves a query for other texts. */
export function isRefreshToken(text: string): boolean {
  return /^[a-z0-9_-]{12,64}$/i.test(text);
}

/** Whether a session is among `percentage` percent of all sessions; deterministic. */
export function isSampled(sessionId: string, percentage: number): boolean {
  return Number.parseInt(sessionId.slice(0, 8), 16) % 100 < percentage;
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
