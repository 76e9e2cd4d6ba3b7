import { ConfigurationError } from '../errors/configuration-error.ts';
import { parseWwwAuthenticate } from '../response/www-authenticate.ts';

/** The `init` of `fetch`; its body may also be a function that makes one, called for each attempt. */
export interface ReplayableInit extends Omit<RequestInit, 'body'> {
  body?: RequestInit['body'] | (() => RequestInit['body']);
}

/** The `init` of one attempt. */
export function initOfAttempt(init: ReplayableInit | undefined): RequestInit | undefined {
  if (init === undefined) return undefined;
  const { body, ...rest } = init;
  if (body === undefined) return rest;
  return { ...rest, body: (typeof body === 'function' ? body() : body) ?? null };
}

/**
 * Whether a response says that the access token is the reason: a 401 that names `invalid_token`, or nothing at all.
 *
 * @see RFC 6750 §3.1 https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
export function saysTokenIsInvalid({ status, headers }: Response): boolean {
  if (status !== 401) return false;
  const header = headers.get('www-authenticate');
  if (header === null) return true;
  return parseWwwAuthenticate(header).some(({ parameters }) => parameters.error === 'invalid_token');
}

/**
 * Refuses to send again what can be read only once.
 *
 * @throws ConfigurationError when the body is a stream, or belongs to a Request.
 */
export function assertReplayable(input: string | URL | Request, init: ReplayableInit | undefined): void {
  const body = init?.body ?? (input instanceof Request ? input.body : undefined);
  if (!isReadOnce(body)) return;
  throw new ConfigurationError(
    'the API answered 401 and the body was a stream that has been read: the token is renewed, so call again; or give `body` as a function that makes it',
    { retryable: true },
  );
}

function isReadOnce(body: unknown): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    (body instanceof ReadableStream || Symbol.asyncIterator in body)
  );
}
