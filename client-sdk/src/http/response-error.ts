import { type ClientAuthContext, dependsOnEncoding } from '../client-auth.ts';
import {
  type AuthChallenge,
  OAuthError,
  type OAuthErrorFields,
  ProtectedResourceError,
  RevocationError,
  TokenResponseError,
} from '../errors.ts';
import type { Operation } from '../hooks.ts';
import { isObject } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { printable } from '../text.ts';
import { convertKeys, parseBody } from './body.ts';
import { createRedactor, type Redactor } from './redact.ts';
import type { ReadyRequest } from './redirects.ts';
import type { ApiResponse } from './response.ts';

/**
 * Milliseconds that a Retry-After header asks to wait, given as seconds or as a date; undefined when there is none that can be read.
 * @see RFC 9110 §10.2.3 https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

/** A header longer than this is not worth reading: no honest server sends it. */
const MAX_LENGTH = 8192;

/**
 * Parses a WWW-Authenticate header into its challenges. What is malformed is passed over.
 * @see RFC 9110 §11.6.1 https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1
 */
export function parseWwwAuthenticate(header: string | null): AuthChallenge[] {
  if (header === null || header.length > MAX_LENGTH) return [];
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  // One piece: a parameter (`name=value`, `name="quoted"`), or else a scheme.
  const pieces = header.matchAll(
    /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~/:-]+)))?/g,
  );
  for (const [, name = '', quoted, token] of pieces) {
    const value = quoted === undefined ? token : quoted.replace(/\\(.)/g, '$1');
    const parameters = challenges.at(-1)?.parameters;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: Object.create(null) });
    else if (parameters !== undefined) parameters[name.toLowerCase()] = value;
  }
  return challenges;
}

/** Characters of a body that an error message quotes. */
const EXCERPT_LENGTH = 512;

/** Characters of a line: an excerpt, or the server's own words with what we add. */
const MAX_LINE_LENGTH = 1024;

/** What the error of a response may need beside the response. */
type ResponseErrorOptions = {
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
function responseError(response: ApiResponse, options: ResponseErrorOptions): OAuthError {
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

/** Shorter values are not masked: they would be found inside ordinary words. */
const MIN_LENGTH = 4;

/** The secrets that a request carried: its credentials, and the secret parameters of query and form. */
function secretsOf({ url, headers, body }: ReadyRequest, { isSecretName }: Redactor): string[] {
  const secrets: string[] = [];
  const authorization = headers.get('authorization');
  if (authorization !== null) secrets.push(authorization.slice(authorization.indexOf(' ') + 1));
  const queryAt = url.indexOf('?');
  if (queryAt >= 0) collect(new URLSearchParams(url.slice(queryAt)));
  if (typeof body === 'string' && !body.startsWith('{')) collect(new URLSearchParams(body));
  return secrets;

  function collect(pairs: URLSearchParams): void {
    for (const [name, value] of pairs) if (isSecretName(name)) secrets.push(value);
  }
}

/** Makes the function that masks these values wherever a server repeats them. */
function maskValues(values: readonly string[], label: string): (text: string) => string {
  const long = values.filter((value) => value.length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
  return (text) => long.reduce((masked, value) => masked.replaceAll(value, () => label), text);
}

/** What the failure of a call is made of. */
export type FailureOptions = Pick<ResponseErrorOptions, 'operation' | 'message' | 'cause'> & {
  readonly settings: ClientSettings;
  /** The verb that was answered; after redirects perhaps another than that of `sent`. */
  readonly method?: string;
  /** The request that failed: its secrets are masked where the server repeats them. */
  readonly sent?: ReadyRequest;
  /** Further secrets. */
  readonly secrets?: readonly string[] | undefined;
  /** What Basic credentials were made of, where they were sent. */
  readonly basic?: ClientAuthContext | undefined;
};

/** Makes the error that a response to a request is. */
export function failureOf(response: ApiResponse, options: FailureOptions): OAuthError {
  const { settings, method, sent, secrets = [], basic, ...rest } = options;
  const redactor = createRedactor(settings.redact);
  const found = sent === undefined ? [] : secretsOf(sent, redactor);
  const { status } = response;
  return responseError(response, {
    ...((status < 200 || status >= 600) && { message: `Unhandled status code value of ${status}` }),
    ...rest,
    ...(method !== undefined && { request: `${method} ${response.url.split(/[?#]/, 1)[0]}` }),
    redactor,
    nowMs: settings.now() * 1000,
    mask: maskValues([...found, ...secrets], redactor.label),
    hintFor: ({ code }) => (code === 'invalid_client' ? encodingHint(basic) : undefined),
  });
}

/** Servers that do not decode the credentials refuse them only where the encodings differ, and never say why. */
function encodingHint(basic: ClientAuthContext | undefined): string | undefined {
  if (basic === undefined || !dependsOnEncoding(basic)) return undefined;
  const other = basic.basicEncoding === 'raw' ? 'rfc6749' : 'raw';
  return `client id or secret have characters that servers decode differently: try \`basicEncoding: '${other}'\``;
}
