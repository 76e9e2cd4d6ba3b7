import type { WarningEvent } from '../client/warning.ts';
import { isObject } from '../keys/convert-keys.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { chooseToken, tokenText } from './choose-token.ts';
import { readOddFields } from './read-odd-fields.ts';

/** The fields of a token response, or why there is no token in it. */
export type TokenFields =
  | { readonly ok: true; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string; readonly cause?: unknown };

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
  try {
    const { parsed } = response;
    const isUsual = isObject(parsed) && hasToken(parsed, tokenName);
    if (isUsual && onWarning === undefined) return { ok: true, fields: parsed };
    return readOddFields(response, tokenName, onWarning);
  } catch (cause) {
    return { ok: false, reason: 'the token response cannot be parsed', cause };
  }
}

/** Whether there is anything to make a token of: under the name given or else a usual one, or a refresh token. */
export function hasToken(fields: Readonly<Record<string, unknown>>, tokenName: string | undefined): boolean {
  const name = chooseToken(fields, tokenName, undefined);
  const candidates = [name, 'refresh_token', 'refreshToken'];
  return candidates.some((field) => field !== undefined && tokenText(fields[field]) !== '');
}
