import type { WarningEvent } from '../hooks.ts';
import { convertKeys, parseBody } from '../http/body.ts';
import { type ApiResponse, parsedBeforeFactory } from '../http/response.ts';
import { snakeCase } from '../key-case.ts';
import { isObject } from '../objects.ts';
import { printable, quote } from '../text.ts';
import { isSeconds } from './expiry.ts';
import type { AccessTokenOptions } from './options.ts';

/** Fields that may be the access token, in order of precedence. */
const tokenNames = ['access_token', 'token', 'accessToken'] as const;

/**
 * The name of the access token's field: the given one (or its snake_case), else the first of
 * access_token, token, accessToken; undefined if there is none. An ID token is for this client, and
 * no API may accept it.
 */
export function chooseToken(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): string | undefined {
  const named = tokenName === undefined ? undefined : fieldNamed(fields, tokenName);
  if (onWarning !== undefined) warn(fields, named, onWarning);
  return named ?? tokenNames.find((name) => Object.hasOwn(fields, name));
}

/** The field of that name, or of its snake_case: the keys of responses are converted. */
function fieldNamed(fields: Readonly<Record<string, unknown>>, tokenName: string): string {
  if (Object.hasOwn(fields, tokenName)) return tokenName;
  const converted = snakeCase(tokenName);
  return Object.hasOwn(fields, converted) ? converted : tokenName;
}

/** The text of a token; empty if the value is no token. */
export function tokenText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function warn(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: (event: WarningEvent) => void,
): void {
  const present = tokenNames.filter((name) => Object.hasOwn(fields, name));
  if (tokenName === undefined && present.length > 1) {
    onWarning({
      code: 'extra_tokens',
      message: `more than one token: ${present.join(', ')}; using ${present[0]}`,
    });
  }
  if (tokenName !== undefined && !Object.hasOwn(fields, tokenName)) {
    const names = printable(Object.keys(fields).join(', '), 512);
    onWarning({
      code: 'token_name_missing',
      message: `no \`${tokenName}\` among ${names}; are its keys converted? See \`keyCase\``,
    });
  }
}

/** Why no token can be made of a response. An empty reason means that the server sent one. */
export type TokenProblem = { readonly reason: string; readonly cause?: unknown };

/** The fields of a token response, or why it has no token. */
export type TokenFields =
  | {
      readonly ok: true;
      readonly fields: Readonly<Record<string, unknown>>;
      /** If `parsedFactory` lost the fields. */
      readonly problem?: TokenProblem;
    }
  | ({ readonly ok: false } & TokenProblem);

/**
 * Reads the fields of a successful token response. Deviations from the specification are tolerated
 * if their meaning is clear, and reported as warnings.
 * @see RFC 6749 §5.1 https://www.rfc-editor.org/rfc/rfc6749#section-5.1
 */
export function readTokenFields(
  response: ApiResponse,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): TokenFields {
  const read = readParsed(response, tokenName, onWarning);
  if (read.ok) return read;
  const received = parsedBeforeFactory(response);
  const hasIssued = isObject(received) && hasToken(received, tokenName);
  return hasIssued ? { ok: true, fields: received, problem: read } : read;
}

function readParsed(
  response: ApiResponse,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): TokenFields {
  try {
    const { parsed } = response;
    const isUsual = isObject(parsed) && hasToken(parsed, tokenName);
    if (isUsual && onWarning === undefined) return { ok: true, fields: parsed };
    return readOddFields(response, tokenName, onWarning);
  } catch (cause) {
    return { ok: false, reason: 'the token response cannot be parsed', cause };
  }
}

/** Whether there is a token or a refresh token. */
function hasToken(fields: Readonly<Record<string, unknown>>, tokenName: string | undefined): boolean {
  const name = chooseToken(fields, tokenName, undefined);
  const candidates = [name, 'refresh_token', 'refreshToken'];
  return candidates.some((field) => field !== undefined && tokenText(fields[field]) !== '');
}

type OnWarning = ((event: WarningEvent) => void) | undefined;

/**
 * Reads a successful token response that may deviate from the specification; deviations are
 * reported as warnings. An empty reason means that the server sent one.
 * @throws {ParseError} if it cannot be parsed.
 */
function readOddFields(
  response: ApiResponse,
  tokenName: string | undefined,
  onWarning: OnWarning,
): TokenFields {
  const { parsed } = response;
  const fields = typeof parsed === 'string' ? reread(response, onWarning) : parsed;
  if (!isObject(fields) || Object.keys(fields).length === 0) {
    return { ok: false, reason: 'the token response is not an object of fields' };
  }
  if (hasToken(fields, tokenName)) {
    if (onWarning !== undefined) reportOddities(fields, onWarning);
    return { ok: true, fields };
  }
  if (!Object.hasOwn(fields, 'error')) {
    const hasIdToken = Object.hasOwn(fields, 'id_token') || Object.hasOwn(fields, 'idToken');
    const what = hasIdToken
      ? 'the token response contains an ID token alone, which is no access token; if the API expects it, set `tokenName`'
      : 'the token response contains none';
    return { ok: false, reason: `AccessToken has no token: ${what}` };
  }
  onWarning?.({
    code: 'error_with_success_status',
    message: 'the token endpoint responded with an error and a successful status',
  });
  return { ok: false, reason: '' };
}

/** Parses JSON or a form despite another content type. */
function reread(response: ApiResponse, onWarning: OnWarning): unknown {
  const { body, status, headers, contentType } = response;
  const text = body.trim();
  const parse = text.startsWith('{') ? 'json' : /^[^\s<>]+=/.test(text) ? 'form' : undefined;
  if (parse === undefined) return body;
  onWarning?.({
    code: 'content_type_mismatch',
    message: `the token response is ${parse}, but its content type is \`${contentType}\``,
  });
  const raw = parseBody(text, { status, headers, contentType }, { parse, parsers: {} });
  return convertKeys(raw, 'snake');
}

function reportOddities(
  fields: Readonly<Record<string, unknown>>,
  onWarning: (event: WarningEvent) => void,
): void {
  if (!fields.token_type && !fields.tokenType) {
    onWarning({
      code: 'token_type_missing',
      message: 'the token response has no `token_type`; Bearer is assumed',
    });
  }
  const { expires_in: expiresIn } = fields;
  if (expiresIn === undefined || expiresIn === null || typeof expiresIn === 'number') return;
  if (isSeconds(expiresIn))
    onWarning({ code: 'expires_in_string', message: '`expires_in` is a string instead of a number' });
  else
    onWarning({
      code: 'expires_in_invalid',
      message: '`expires_in` is not a number; the token counts as expired',
    });
}

/**
 * Why a token of this type must not be used; undefined if it may. A missing type means Bearer.
 * Types other than Bearer and DPoP need `authorizationScheme` or `formatHeader`.
 * @see RFC 6749 §7.1 https://www.rfc-editor.org/rfc/rfc6749#section-7.1
 * @see RFC 9449 §5 https://www.rfc-editor.org/rfc/rfc9449#section-5
 */
export function tokenTypeProblem(
  type: unknown,
  { authorizationScheme, formatHeader }: Pick<AccessTokenOptions, 'authorizationScheme' | 'formatHeader'>,
  isProven = false,
): string | undefined {
  const name = type === undefined || type === null || type === '' ? 'bearer' : type;
  const known = typeof name === 'string' ? name.toLowerCase() : undefined;
  if (known === 'dpop') return undefined;
  if (known === 'bearer') {
    return isProven
      ? 'a DPoP token was requested, but a Bearer token received, which is not bound to the key: DPoP is not supported by the server, or not enabled for this client'
      : undefined;
  }
  // Token exchange issued a token that is no access token. @see RFC 8693 §2.2.1
  if (known === 'n_a') return undefined;
  if (authorizationScheme !== undefined || formatHeader !== undefined) return undefined;
  return `the token_type ${quote(type)} is unknown: set \`authorizationScheme\` to the scheme that its tokens are sent with`;
}
