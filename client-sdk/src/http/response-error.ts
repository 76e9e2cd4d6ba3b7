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
import { Redactor } from './redact.ts';
import type { ReadyRequest } from './request.ts';
import type { ApiResponse } from './response.ts';

/** Characters of a body that an error message quotes. */
const EXCERPT_LENGTH = 512;

/** Characters of a line of an error message. */
const MAX_LINE_LENGTH = 1024;

/** Values sent that are shorter are not masked: they occur in ordinary words. */
const MIN_SECRET_LENGTH = 4;

/** Longer WWW-Authenticate headers are ignored. */
const MAX_CHALLENGE_LENGTH = 8192;

/** How the texts of a response are quoted in an error message. */
type Quoting = {
  /** Masks the secrets of the request where the server repeats them. */
  readonly words: (text: string) => string;
  readonly url: (url: string) => string;
  readonly excerpt: (body: string) => string;
};

type ResponseErrorOptions = {
  readonly operation: Operation;
  readonly nowMs: number;
  /** Replaces the first line of the message. */
  readonly message?: string | undefined;
  /** Verb and URL of the request, without its query. */
  readonly request?: string | undefined;
  /** Appended to the first line of the message. */
  readonly hint?: ((code: string | undefined) => string | undefined) | undefined;
  /**
   * Without it the message quotes nothing of the response but the error code, since secrets could
   * not be masked.
   */
  readonly quoting?: Quoting | undefined;
  readonly cause?: unknown;
};

/**
 * Makes the error for a response, of the operation's class. A body that cannot be parsed becomes
 * its `cause`.
 */
export function responseError(response: ApiResponse, options: ResponseErrorOptions): OAuthError {
  const { operation, nowMs, quoting } = options;
  const { fields, cause } = errorFields(response);
  const { headers } = response;
  // The code is not masked: programs compare it, and a password may be a part of `invalid_grant`.
  const code = textField(fields.error);
  const description = textField(fields.error_description, quoting?.words);
  const hint = options.hint?.(code);
  const words = options.message ?? describe(response, options, { code, description });
  const all: OAuthErrorFields = {
    response,
    message: [hint === undefined ? words : `${words} (${hint})`, quoting?.excerpt(response.body) ?? '']
      .filter((line) => line !== '')
      .map((line) => printable(line, MAX_LINE_LENGTH))
      .join('\n'),
    code,
    description,
    uri: textField(fields.error_uri, quoting?.words),
    wwwAuthenticate: parseWwwAuthenticate(headers.get('www-authenticate')),
    retryAfterMs: parseRetryAfter(headers.get('retry-after'), nowMs),
    cause: options.cause ?? cause,
  };
  if (operation === 'token') return new TokenResponseError(all);
  if (operation === 'revocation') return new RevocationError(all);
  if (operation === 'resource') return new ProtectedResourceError(all);
  return new OAuthError(all);
}

/**
 * The first line of a message. Names method and URL where the URL is probably wrong: for 404 and
 * redirects.
 */
function describe(
  { status, headers }: ApiResponse,
  { operation, request, quoting }: ResponseErrorOptions,
  { code, description }: { readonly code: string | undefined; readonly description: string | undefined },
): string {
  const said = [code, quoting && description].filter((text) => text !== undefined).join(': ');
  const isRedirect = status >= 300 && status < 400;
  if (said !== '' && status !== 404 && !isRedirect) return said;
  const parts = [`HTTP status ${status}`, said].filter((part) => part !== '').join(', ');
  const words = request === undefined ? parts : `${request}: ${parts}`;
  if (isRedirect) {
    const location = headers.get('location');
    const target = location === null || quoting === undefined ? '' : ` to ${quoting.url(location)}`;
    return `${words}, a redirect${target} that is not followed: configure the final URL`;
  }
  const isEndpoint = operation !== 'resource' && operation !== 'request';
  const isWrongUrl = isEndpoint && said === '' && status === 404;
  return isWrongUrl ? `${words}; check the endpoint's URL, or use discovery` : words;
}

/**
 * Error bodies are parsed by content type, whatever `parse` or `parsedFactory` the caller asked
 * for.
 */
function errorFields(response: ApiResponse): {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
} {
  try {
    const { parsed, body, status, headers, contentType } = response;
    if (isObject(parsed) && Object.hasOwn(parsed, 'error')) return { fields: parsed };
    const plain = parseBody(body, { status, headers, contentType }, { parse: 'automatic', parsers: {} });
    const fields = convertKeys(plain, 'snake');
    return { fields: isObject(fields) ? fields : {} };
  } catch (cause) {
    return { fields: {}, cause };
  }
}

/** Strings and numbers only: some servers send an object of their own as `error`. */
function textField(value: unknown, mask = (text: string) => text): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? mask(String(value)) : undefined;
}

/** Members of an error of a client's call. */
export type CallFailure = Pick<ResponseErrorOptions, 'operation' | 'message' | 'cause' | 'hint'> & {
  readonly settings: ClientSettings;
  /** The verb that was answered; after redirects it may differ from that of `sent`. */
  readonly method?: string;
  /** The request that failed: its secrets are masked where the server repeats them. */
  readonly sent?: ReadyRequest;
  /** Further secrets to mask. */
  readonly secrets?: readonly string[] | undefined;
};

/** Makes the error for the response to a client's call, with all secrets of the request masked. */
export function callError(response: ApiResponse, failure: CallFailure): OAuthError {
  const { settings, method, sent, secrets = [], message, ...rest } = failure;
  const redactor = new Redactor(settings.redact);
  const words = maskValues([...(sent ? secretsIn(sent, redactor) : []), ...secrets], redactor.label);
  const { status, url } = response;
  const isUnhandled = status < 200 || status >= 600;
  return responseError(response, {
    ...rest,
    message: message ?? (isUnhandled ? `Unhandled status code value of ${status}` : undefined),
    request: method && `${method} ${url.split(/[?#]/, 1)[0]}`,
    nowMs: settings.now() * 1000,
    quoting: { words, url: (url) => redactor.url(url), excerpt: (body) => words(excerpt(body, redactor)) },
  });
}

/** Masked before it is cut: half a token is still a secret. */
function excerpt(body: string, redactor: Redactor): string {
  const masked = redactor.responseText(body.slice(0, 16 * EXCERPT_LENGTH));
  return masked.length > EXCERPT_LENGTH ? `${masked.slice(0, EXCERPT_LENGTH)}…` : masked;
}

/** The secrets in a request: its credentials, and the secret parameters of query and form. */
function secretsIn({ url, headers, body }: ReadyRequest, { isSecretName }: Redactor): string[] {
  const credentials = headers.get('authorization');
  const queryAt = url.indexOf('?');
  const forms = [
    queryAt < 0 ? '' : url.slice(queryAt),
    typeof body === 'string' && body[0] !== '{' ? body : '',
  ];
  const pairs = forms.flatMap((form) => [...new URLSearchParams(form)]);
  const secrets = pairs.flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
  return credentials === null ? secrets : [credentials.slice(credentials.indexOf(' ') + 1), ...secrets];
}

function maskValues(values: readonly string[], label: string): (text: string) => string {
  const long = values
    .filter((value) => value.length >= MIN_SECRET_LENGTH)
    .sort((a, b) => b.length - a.length);
  return (text) => long.reduce((masked, value) => masked.replaceAll(value, () => label), text);
}

/**
 * Milliseconds that a Retry-After header asks to wait, given as seconds or as a date; undefined if
 * it is missing or invalid.
 * @see RFC 9110 §10.2.3 https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

/**
 * Parses a WWW-Authenticate header into its challenges. Malformed parts are skipped.
 * @see RFC 9110 §11.6.1 https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1
 */
export function parseWwwAuthenticate(header: string | null): AuthChallenge[] {
  if (header === null || header.length > MAX_CHALLENGE_LENGTH) return [];
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  // Either a parameter (`name=value`, `name="quoted"`) or a scheme.
  const parts = header.matchAll(
    /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~/:-]+)))?/g,
  );
  for (const [, name = '', quoted, token] of parts) {
    const value = quoted === undefined ? token : quoted.replace(/\\(.)/g, '$1');
    const parameters = challenges.at(-1)?.parameters;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: Object.create(null) });
    else if (parameters !== undefined) parameters[name.toLowerCase()] = value;
  }
  return challenges;
}
