import type { Client } from '../client.ts';
import type { ApiResponse } from '../http/response.ts';
import type { JsonObject, JsonValue } from '../keys.ts';
import { AccessToken } from './access-token.ts';
import type { AccessTokenOptions } from './options.ts';
import { chooseToken, tokenText } from './read-response.ts';

/** A token as it is kept: plain data under wire names, secrets included. */
export type StoredToken = JsonObject;

/** Options that an object may hold beside the fields of a token, and their names there. */
const storedOptions = [
  ['mode', 'mode'],
  ['authorizationScheme', 'authorization_scheme'],
  ['paramName', 'param_name'],
  ['tokenName', 'token_name'],
  ['expiresLatency', 'expires_latency'],
] as const satisfies readonly (readonly [keyof AccessTokenOptions, string])[];

/**
 * A token's fields and options as plain data. Left out: `expires_in` (it counts from the issue) and the latency (it is taken off
 * already); also a mode or header format that is a function, which `fromHash` must then be given again.
 */
export function toStoredToken(token: AccessToken, options: AccessTokenOptions): StoredToken {
  const stored: Record<string, JsonValue> = Object.create(null);
  Object.assign(stored, token.params);
  // Under its own name, so that `fromHash` finds it there again.
  stored[options.tokenName ?? 'access_token'] = token.token;
  if (token.refreshToken !== undefined) stored.refresh_token = token.refreshToken;
  if (token.expiresAt !== undefined) stored.expires_at = token.expiresAt;
  for (const [name, storedName] of storedOptions) {
    const value = options[name];
    if (value !== undefined && typeof value !== 'function' && name !== 'expiresLatency')
      stored[storedName] = value;
  }
  return stored;
}

/**
 * Parts an object given to `fromHash` into a token's fields and its options. A `mode` that is none is a field as any other. Only for
 * what the caller trusts: a server must not choose where its tokens travel.
 */
export function splitStored(hash: object): {
  readonly fields: Record<string, unknown>;
  readonly stored: AccessTokenOptions;
} {
  const fields: Record<string, unknown> = Object.create(null);
  const stored: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(hash)) {
    const found = storedOptions.find(([name, storedName]) => key === name || key === storedName)?.[0];
    if (found !== undefined && isOption(found, value)) stored[found] = value;
    else fields[key] = value;
  }
  // The names are those of the table, the values are checked.
  return { fields, stored: stored as AccessTokenOptions };
}

/**
 * Makes a token of the fields of a token response; the options win over them.
 * @throws {TokenUnavailableError} when there is neither a token nor a refresh token, unless the client's `throwOnError` is false.
 */
export function fromFields(
  client: Client<boolean>,
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
  response?: ApiResponse,
): AccessToken {
  const name = chooseToken(fields, options.tokenName, client.settings.onWarning);
  const params: Record<string, unknown> = Object.create(null);
  const found: FoundOptions = {};
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (key === name) continue;
    const option = fieldOptions.get(key);
    if (option === undefined) params[key] = value;
    else if (found[option] === undefined && isFieldValue(option, value)) found[option] = value;
  }
  const token = name === undefined ? '' : tokenText(fields[name]);
  // Parsed from JSON or a form, and so JSON values; made here, and so not to be copied.
  return new AccessToken(client, token, { ...found, ...options, params: params as JsonObject, response });
}

/** Unconverted: `computeExpiry` decides about values that are not numbers. */
type FoundOptions = { refreshToken?: string; expiresIn?: string | number; expiresAt?: string | number };

/** Fields that are options of the token; of several for one the first that comes is taken. */
const fieldOptions = new Map<string, keyof FoundOptions>([
  ['refresh_token', 'refreshToken'],
  ['refreshToken', 'refreshToken'],
  ['expires_in', 'expiresIn'],
  ['expiresIn', 'expiresIn'],
  ['expires', 'expiresIn'],
  ['expires_at', 'expiresAt'],
  ['expiresAt', 'expiresAt'],
]);

function isFieldValue(option: keyof FoundOptions, value: unknown): value is string {
  return option === 'refreshToken' ? typeof value === 'string' : value !== null && value !== undefined;
}

function isOption(name: (typeof storedOptions)[number][0], value: unknown): boolean {
  if (name === 'mode') return isMode(value);
  return typeof value === 'string' || name === 'expiresLatency';
}

function isMode(value: unknown): boolean {
  if (typeof value === 'function' || isPlace(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).every(isPlace);
}

function isPlace(value: unknown): boolean {
  return value === 'header' || value === 'query' || value === 'body';
}

/** What a token's expiry is worked out from. */
export type ExpiryInput = {
  readonly expiresIn?: unknown;
  readonly expiresAt?: unknown;
  readonly expiresLatency?: unknown;
};

/** When a token expires; all in seconds, `expiresAt` since the epoch. */
export type Expiry = {
  readonly expiresIn: number | undefined;
  readonly expiresAt: number | undefined;
  readonly expiresLatency: number | undefined;
};

/**
 * Works out when a token expires. `expiresAt` wins over `expiresIn`, of which 0 means never; the latency is taken off once, here.
 * Numbers may come as text. What is neither a number nor a time counts as past, which is the safe way to be wrong.
 */
export function computeExpiry(input: ExpiryInput, nowSeconds: number): Expiry {
  const expiresIn = toSeconds(input.expiresIn);
  const expiresLatency = numberOrUndefined(toSeconds(input.expiresLatency));
  const expiresAt = toEpochSeconds(input.expiresAt) ?? expiresAfter(expiresIn, Math.floor(nowSeconds));
  return {
    expiresIn: numberOrUndefined(expiresIn),
    expiresAt: expiresAt === undefined ? undefined : expiresAt - (expiresLatency ?? 0),
    expiresLatency,
  };
}

function numberOrUndefined(seconds: number | undefined): number | undefined {
  return Number.isNaN(seconds) ? undefined : seconds;
}

function expiresAfter(expiresIn: number | undefined, now: number): number | undefined {
  if (expiresIn === undefined || expiresIn === 0) return undefined;
  return Number.isNaN(expiresIn) ? now : now + expiresIn;
}

/** NaN for what is no number. */
function toSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return isSeconds(value) ? Math.trunc(Number(value)) : Number.NaN;
}

/** Whether a value is a number of seconds, perhaps as text. */
export function isSeconds(value: unknown): boolean {
  const isNumber = typeof value === 'string' ? numeric.test(value) : typeof value === 'number';
  return isNumber && Number.isFinite(Number(value));
}

/** A decimal number and nothing else: of `3600 seconds` or `1h` only the caller could say what is meant. */
const numeric = /^\s*[+-]?\d+(?:\.\d+)?\s*$/;

function toEpochSeconds(value: unknown): number | undefined {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)) {
    const ms = Date.parse(value);
    return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
  }
  const seconds = toSeconds(value);
  return Number.isNaN(seconds) ? 0 : seconds;
}
