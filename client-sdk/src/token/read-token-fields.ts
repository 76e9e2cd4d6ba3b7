import type { WarningEvent } from '../client/warning.ts';
import { convertKeys, isObject } from '../keys/convert-keys.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { parseBody } from '../response/parse-body.ts';

/** The fields of a token response, or why there is no token in it. */
export type TokenFields =
  | { readonly ok: true; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string; readonly cause?: unknown };

const tokenNames = [
  'access_token',
  'id_token',
  'token',
  'accessToken',
  'idToken',
  'refresh_token',
  'refreshToken',
];

/**
 * Reads the fields of a successful token response. Servers that stray from the specification are understood where what they mean is
 * plain, and reported as warnings. An empty reason means that the server gives its own.
 * @see RFC 6749 §5.1 https://www.rfc-editor.org/rfc/rfc6749#section-5.1
 */
export function readTokenFields(
  response: ApiResponse,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): TokenFields {
  let fields: unknown;
  try {
    fields = response.parsed;
    if (typeof fields === 'string') fields = reread(response, onWarning);
  } catch (cause) {
    return { ok: false, reason: 'the token response cannot be parsed', cause };
  }
  if (!isObject(fields) || Object.keys(fields).length === 0)
    return { ok: false, reason: 'the token response is not an object of fields' };
  const hasToken = isPresent(fields, tokenName) || tokenNames.some((name) => isPresent(fields, name));
  if (!hasToken) return failureOf(fields, onWarning);
  if (onWarning !== undefined) reportOddities(fields, onWarning);
  return { ok: true, fields };
}

function isPresent(fields: object, name: string | undefined): boolean {
  const value: unknown = name === undefined ? undefined : Reflect.get(fields, name);
  return value !== undefined && value !== null && value !== '';
}

/** JSON or a form under a content type that says something else. */
function reread(response: ApiResponse, onWarning: ((event: WarningEvent) => void) | undefined): unknown {
  const { body, status, headers, contentType } = response;
  const text = body.trim();
  const parse = text.startsWith('{') ? 'json' : /^[^\s<>]+=/.test(text) ? 'form' : undefined;
  if (parse === undefined) return body;
  onWarning?.({
    code: 'content_type_mismatch',
    message: `the token response is ${parse}, but its content type is \`${contentType}\``,
  });
  return convertKeys(parseBody(text, { status, headers, contentType }, { parse, parsers: {} }), {
    keyCase: 'snake',
  });
}

/** Some servers answer 200 with an error in the body. */
function failureOf(
  fields: Readonly<Record<string, unknown>>,
  onWarning: ((event: WarningEvent) => void) | undefined,
): TokenFields {
  if (!Object.hasOwn(fields, 'error'))
    return { ok: false, reason: 'AccessToken has no token: none in the token response' };
  onWarning?.({
    code: 'error_with_success_status',
    message: 'the token endpoint answered with an error and a status of success',
  });
  return { ok: false, reason: '' };
}

function reportOddities(
  fields: Readonly<Record<string, unknown>>,
  onWarning: (event: WarningEvent) => void,
): void {
  if (!isPresent(fields, 'token_type') && !isPresent(fields, 'tokenType')) {
    onWarning({
      code: 'token_type_missing',
      message: 'the token response has no `token_type`; Bearer is assumed',
    });
  }
  if (typeof fields.expires_in === 'string') {
    onWarning({ code: 'expires_in_string', message: '`expires_in` is text and not a number' });
  }
}
