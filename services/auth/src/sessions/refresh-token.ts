import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import {
  deriveDigestedToken,
  isDigest,
  type Randomness,
  randomBase32,
  randomDigestedToken,
  toStoredForm,
} from '../keys/secrets.ts';
import type { SessionsContext } from './context.ts';

/** The length of GoTrue's: 60 bits. They can only be guessed online, where requests are limited. */
const refreshTokenChars = 12;
/** The length of the hash, as RFC 2104 §3 recommends. */
const hmacKeyBytes = 32;

/** Makes a refresh token of version 1. */
export function makeRefreshToken({ random, settings }: SessionsContext): string {
  return settings.tokenDigests ? randomDigestedToken(random) : randomBase32(random, refreshTokenChars);
}

/** Makes the refresh token of version 1 that replaces another one, by the stored form of that. */
export function makeSuccessor(context: SessionsContext, stored: string): string {
  const { tokenDigests, jwtSecret } = context.settings;
  return tokenDigests && stored !== '' ? deriveDigestedToken(stored, jwtSecret) : makeRefreshToken(context);
}

/**
 * The successor of a token, by the stored forms of both. Undefined after a change of the secret.
 */
export function findSuccessor(
  { settings }: SessionsContext,
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
/** Length of `Number.MAX_SAFE_INTEGER` in LEB128. */
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
