import type { Client } from '../client/client.ts';
import type { JsonObject, JsonValue } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { AccessToken } from './access-token.ts';
import { chooseToken } from './choose-token.ts';
import type { AccessTokenOptions, TokenMode } from './token-options.ts';

/** A token as it is kept: plain data under wire names, secrets included. */
export type StoredToken = JsonObject;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A token's fields and options as plain data. Left out: `expires_in` (it counts from the issue) and the latency (it is taken off
 * already); also a mode or header format that is a function, which `fromHash` must then be given again.
 */
export function toStoredToken(token: AccessToken, options: AccessTokenOptions): StoredToken {
  const { tokenName, paramName, authorizationScheme, mode } = options;
  const stored: Record<string, JsonValue> = Object.create(null);
  Object.assign(stored, token.params);
  // Under its own name, so that `fromHash` finds it there again.
  stored[tokenName ?? 'access_token'] = token.token;
  if (token.refreshToken !== undefined) stored.refresh_token = token.refreshToken;
  if (token.expiresAt !== undefined) stored.expires_at = token.expiresAt;
  if (mode !== undefined && typeof mode !== 'function') stored.mode = mode;
  if (authorizationScheme !== undefined) stored.authorization_scheme = authorizationScheme;
  if (paramName !== undefined) stored.param_name = paramName;
  if (tokenName !== undefined) stored.token_name = tokenName;
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
  const stored: Writable<AccessTokenOptions> = {};
  for (const [key, value] of Object.entries(hash)) {
    if (key === 'mode' && isMode(value)) stored.mode = value;
    else if (isText(value) && (key === 'param_name' || key === 'paramName')) stored.paramName = value;
    else if (isText(value) && (key === 'token_name' || key === 'tokenName')) stored.tokenName = value;
    else if (isText(value) && (key === 'authorization_scheme' || key === 'authorizationScheme'))
      stored.authorizationScheme = value;
    else if (key === 'expires_latency' || key === 'expiresLatency')
      stored.expiresLatency = Number(value ?? 0);
    else fields[key] = value;
  }
  return { fields, stored };
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

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function timeOf(value: unknown): string | number | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

function isMode(value: unknown): value is TokenMode {
  if (typeof value === 'function' || value === 'header' || value === 'query' || value === 'body') return true;
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
