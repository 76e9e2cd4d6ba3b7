import type { RedactOptions } from '../redact/redact-options.ts';
import type { ApiResponse } from '../response/api-response.ts';
import type { Fetch } from './client-options.ts';
import type { EncodedBody } from './encode-body.ts';
import { followRedirects } from './follow-redirects.ts';

/** A request ready for `fetch`. */
export type ReadyRequest = {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: EncodedBody;
};

/** How redirects are treated. */
export type RedirectPolicy = {
  readonly fetch: Fetch;
  /** Given to every `fetch`, under what the request says. */
  readonly init: RequestInit;
  readonly redirect: 'follow' | 'manual' | 'error';
  readonly maxRedirects: number;
  /** Which statuses are followed, and with which verb: as the library's requests are, or as `fetch` does it. */
  readonly rules: 'request' | 'fetch';
  /** Whether the request carries credentials in its body: then it is never sent to another origin. */
  readonly isBoundToOrigin: boolean;
  /** Whether plain http is refused, as for the first request. */
  readonly isSecureOnly: boolean;
  /** Which parameters are secrets, beside those that always are. */
  readonly redact: RedactOptions;
  /** Reads a response that is refused, for its error. */
  readonly describe: (response: Response, request: ReadyRequest) => Promise<ApiResponse>;
};

/** The answer to a request, its body unread. */
export type Answer = {
  readonly response: Response;
  readonly method: string;
  readonly url: string;
  readonly redirected: boolean;
};

/**
 * Sends a request and follows its redirects as the policy says. The request given is not changed.
 * @throws {RedirectError} for what must not be followed.
 */
export async function sendFollowing(request: ReadyRequest, policy: RedirectPolicy): Promise<Answer> {
  const response = await sendOnce(request, policy);
  if (!isRedirect(response) || policy.redirect === 'manual')
    return { response, method: request.method, url: request.url, redirected: false };
  return await followRedirects(request, response, policy);
}

/** Whether a response redirects, as far as the runtime shows. */
export function isRedirect({ status, type }: Response): boolean {
  return (status >= 300 && status < 400) || type === 'opaqueredirect';
}

/** Sends a request; redirects are returned. */
export function sendOnce(
  { url, method, headers, body }: ReadyRequest,
  { fetch, init }: RedirectPolicy,
): Promise<Response> {
  const isStream = body instanceof ReadableStream;
  // Half duplex is what `fetch` demands for streams and the only kind there is.
  const streaming = isStream ? { duplex: 'half' as const } : undefined;
  return fetch(url, { ...init, method, headers, body: body ?? null, redirect: 'manual', ...streaming });
}
