import type { WarningEvent } from '../client/warning.ts';
import { convertKeys, isObject } from '../keys/convert-keys.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { parseBody } from '../response/parse-body.ts';
import { isSeconds } from './expiry.ts';
import { hasToken, type TokenFields } from './read-token-fields.ts';

type OnWarning = ((event: WarningEvent) => void) | undefined;

/**
 * Reads a successful token response that may not be what the specification says: understood where what is meant is plain, and
 * reported as warnings; else told why it is none. An empty reason means that the server gives its own.
 * @throws {ParseError} when it cannot be parsed.
 */
export function readOddFields(
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
    return { ok: false, reason: 'AccessToken has no token: none in the token response' };
  }
  onWarning?.({
    code: 'error_with_success_status',
    message: 'the token endpoint answered with an error and a status of success',
  });
  return { ok: false, reason: '' };
}

/** JSON or a form under a content type that says something else. */
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
  return convertKeys(raw, { keyCase: 'snake' });
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
    onWarning({ code: 'expires_in_string', message: '`expires_in` is text and not a number' });
  else
    onWarning({
      code: 'expires_in_invalid',
      message: '`expires_in` is no number; the token counts as expired',
    });
}
