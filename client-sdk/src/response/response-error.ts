import type { Operation } from '../client/hooks.ts';
import { OAuthError, type OAuthErrorFields } from '../errors/oauth-error.ts';
import { ProtectedResourceError } from '../errors/protected-resource-error.ts';
import { RevocationError } from '../errors/revocation-error.ts';
import { TokenResponseError } from '../errors/token-response-error.ts';
import { convertKeys, isObject } from '../keys/convert-keys.ts';
import { printable } from '../printable.ts';
import type { Redactor } from '../redact/redactor.ts';
import type { ApiResponse } from './api-response.ts';
import { parseBody } from './parse-body.ts';
import { parseRetryAfter } from './retry-after.ts';
import { parseWwwAuthenticate } from './www-authenticate.ts';

/** Characters of a body that an error message quotes. */
const EXCERPT_LENGTH = 512;

/** Characters of a line: an excerpt, or the server's own words with what we add. */
const MAX_LINE_LENGTH = 1024;

/** What the error of a response may need beside the response. */
export type ResponseErrorOptions = {
  readonly operation: Operation;
  /** One line in place of the server's own words. */
  readonly message?: string;
  /** Verb and URL of the request, without its query. */
  readonly request?: string | undefined;
  /** What to add to the message's first line. */
  readonly hintFor?: ((error: { readonly code: string | undefined }) => string | undefined) | undefined;
  readonly nowMs: number;
  readonly redactor: Redactor;
  /** Masks the secrets of the request where the server's words repeat them. */
  readonly mask?: ((text: string) => string) | undefined;
  readonly cause?: unknown;
};

/** Makes the error that a response is, of the class for its operation. Never throws: a body that cannot be parsed is its `cause`. */
export function responseError(response: ApiResponse, options: ResponseErrorOptions): OAuthError {
  const { operation, request, hintFor, nowMs, redactor, mask = (text) => text } = options;
  const { fields, cause } = errorFields(response);
  // Not masked: programs switch on it, and a password may be a part of `invalid_grant`.
  const code = textOf(fields, 'error', (text) => text);
  const description = textOf(fields, 'error_description', mask);
  const hint = hintFor?.({ code });
  const said = [code, description].filter((text) => text !== undefined).join(': ');
  const isEndpoint = operation !== 'resource' && operation !== 'request';
  const location = locationOf(response, redactor);
  const words = options.message ?? wordsOf(response, { said, request, location, isEndpoint });
  const all: OAuthErrorFields = {
    response,
    message: [hint === undefined ? words : `${words} (${hint})`, mask(excerptOf(response.body, redactor))]
      .filter((line) => line !== '')
      .map((line) => printable(line, MAX_LINE_LENGTH))
      .join('\n'),
    code,
    description,
    uri: textOf(fields, 'error_uri', mask),
    wwwAuthenticate: parseWwwAuthenticate(response.headers.get('www-authenticate')),
    retryAfterMs: parseRetryAfter(response.headers.get('retry-after'), nowMs),
    cause: options.cause ?? cause,
  };
  if (operation === 'token') return new TokenResponseError(all);
  if (operation === 'revocation') return new RevocationError(all);
  if (operation === 'resource') return new ProtectedResourceError(all);
  return new OAuthError(all);
}

/** The start of a body. Masked before it is cut: a token cut in half is still half a token. */
function excerptOf(body: string, redactor: Redactor): string {
  const masked = redactor.responseText(body.slice(0, 16 * EXCERPT_LENGTH));
  return masked.length > EXCERPT_LENGTH ? `${masked.slice(0, EXCERPT_LENGTH)}…` : masked;
}

/** What a message says beside the status. */
type Circumstances = {
  /** The server's own words; empty where there are none. */
  readonly said: string;
  readonly request: string | undefined;
  readonly location: string | undefined;
  /** Whether it was an endpoint of the authorization server that answered. */
  readonly isEndpoint: boolean;
};

/** Method and URL are named where the URL is probably wrong: 404 and redirects. */
function wordsOf({ status }: ApiResponse, { said, request, location, isEndpoint }: Circumstances): string {
  const isRedirect = status >= 300 && status < 400;
  if (said !== '' && status !== 404 && !isRedirect) return said;
  const parts = [`HTTP status ${status}`, said].filter((part) => part !== '').join(', ');
  const words = request === undefined ? parts : `${request}: ${parts}`;
  if (!isRedirect) {
    const isWrongUrl = isEndpoint && said === '' && status === 404;
    return isWrongUrl ? `${words}; is it the endpoint's URL? Discovery knows it` : words;
  }
  const target = location === undefined ? '' : ` to ${location}`;
  return `${words}, a redirect${target} that is not followed: configure the final URL`;
}

function locationOf({ headers }: ApiResponse, redactor: Redactor): string | undefined {
  const location = headers.get('location');
  return location === null ? undefined : redactor.url(location);
}

/** The caller may have asked for text, or for a shape of its own: an error body is an error body all the same. */
function errorFields(response: ApiResponse): {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
} {
  try {
    const { parsed, body, status, headers, contentType } = response;
    if (isObject(parsed) && Object.hasOwn(parsed, 'error')) return { fields: parsed };
    const plain = parseBody(body, { status, headers, contentType }, { parse: 'automatic', parsers: {} });
    const fields = convertKeys(plain, { keyCase: 'snake' });
    return { fields: isObject(fields) ? fields : {} };
  } catch (cause) {
    return { fields: {}, cause };
  }
}

/** Strings and numbers only: some servers put an object of their own under `error`. */
function textOf(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  mask: (text: string) => string,
): string | undefined {
  const value = fields[name];
  return typeof value === 'string' || typeof value === 'number' ? mask(String(value)) : undefined;
}
