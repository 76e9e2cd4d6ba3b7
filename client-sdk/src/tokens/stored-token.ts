import type { Client } from '../client.ts';
import type { ApiResponse } from '../http/response.ts';
import type { JsonObject, JsonValue } from '../keys.ts';
import { AccessToken } from './access-token.ts';
import type { AccessTokenOptions } from './options.ts';
import { chooseToken, tokenText } from './read-response.ts';

/** A token as plain data under wire names, secrets included. */
export type StoredToken = JsonObject;

/** Options that are stored beside the fields of a token, and their names there. */
const storedOptions = [
  ['mode', 'mode'],
  ['authorizationScheme', 'authorization_scheme'],
  ['paramName', 'param_name'],
  ['tokenName', 'token_name'],
  ['expiresLatency', 'expires_latency'],
] as const satisfies readonly (readonly [keyof AccessTokenOptions, string])[];

/**
 * A token's fields and options as plain data, without `expires_in` (relative to the issue), the
 * latency (already subtracted) and functions, which `fromHash` must be given again.
 */
export function toStoredToken(token: AccessToken, options: AccessTokenOptions): StoredToken {
  const stored: Record<string, JsonValue> = Object.create(null);
  Object.assign(stored, token.params);
  // Under its own name, where `fromHash` looks for it.
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
 * Splits an object given to `fromHash` into a token's fields and its options. An invalid `mode`
 * counts as a field. For trusted input only: a server must not decide where its tokens are sent.
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
 * Makes a token from the fields of a token response; options take precedence.
 * @throws {TokenUnavailableError} if there is neither a token nor a refresh token, unless the
 * client's `throwOnError` is false.
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
  // JSON values, because they were parsed from JSON or a form; made here, so that no copy is
  // needed.
  return new AccessToken(client, token, { ...found, ...options, params: params as JsonObject, response });
}

/** `computeExpiry` handles values that are not numbers. */
type FoundOptions = { refreshToken?: string; expiresIn?: string | number; expiresAt?: string | number };

/** Fields that are options of the token; the first of several takes precedence. */
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
