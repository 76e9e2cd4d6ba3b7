import type { JsonObject, JsonValue } from '../key-case.ts';
import type { AnyAccessToken } from './access-token.ts';
import type { AccessTokenOptions } from './options.ts';

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
 * A token's fields and options as plain data, without the latency (already subtracted) and
 * functions, which `fromHash` must be given again. `expires_in` is the lifetime: it bounds how long
 * a restored token is valid where the clock was set back.
 */
export function toStoredToken(
  token: AnyAccessToken,
  options: AccessTokenOptions,
  lifetimeSeconds: number | undefined,
): StoredToken {
  const stored: Record<string, JsonValue> = Object.create(null);
  Object.assign(stored, token.params);
  // `fromHash` looks for the token under its own name.
  stored[options.tokenName ?? 'access_token'] = token.token;
  if (token.refreshToken !== undefined) stored.refresh_token = token.refreshToken;
  if (token.expiresAt !== undefined) stored.expires_at = token.expiresAt;
  if (lifetimeSeconds !== undefined) stored.expires_in = lifetimeSeconds;
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
