import type { Client } from '../client/client.ts';
import type { JsonObject, JsonValue } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { AccessToken } from './access-token.ts';
import { chooseToken } from './choose-token.ts';
import type { AccessTokenOptions } from './token-options.ts';

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
 * @throws {TokenUnavailableError} when there is neither a token nor a refresh token.
 */
export function fromFields(
  client: Client<boolean>,
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
  response?: ApiResponse,
): AccessToken {
  const { token, rest } = chooseToken(fields, options.tokenName, client.settings.onWarning);
  const { refresh_token, refreshToken, expires_in, expiresIn, expires_at, expiresAt, expires, ...params } =
    rest;
  return new AccessToken(client, token, {
    ...withoutUndefined({
      refreshToken: textOf(refresh_token ?? refreshToken),
      expiresIn: timeOf(expires_in ?? expiresIn ?? expires),
      expiresAt: timeOf(expires_at ?? expiresAt),
    }),
    ...options,
    // Parsed from JSON or a form, and so JSON values.
    params: params as JsonObject,
    response,
  });
}

function isOption(name: (typeof storedOptions)[number][0], value: unknown): boolean {
  if (name === 'mode') return isMode(value);
  return typeof value === 'string' || name === 'expiresLatency';
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function timeOf(value: unknown): string | number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

function isMode(value: unknown): boolean {
  if (typeof value === 'function' || isPlace(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).every(isPlace);
}

function isPlace(value: unknown): boolean {
  return value === 'header' || value === 'query' || value === 'body';
}

function withoutUndefined<T extends object>(from: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(from).filter(([, value]) => value !== undefined);
  // Absent rather than undefined, which is what the options' types ask for.
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
