import { RedirectError } from '../errors.ts';
import { type RedactOptions, Redactor } from './redact.ts';
import {
  type EncodedBody,
  isRedirect,
  type ReadyRequest,
  type Reply,
  type SendOptions,
  sendOnce,
} from './request.ts';
import type { ApiResponse } from './response.ts';
import { hasScheme, isSecure } from './url.ts';

/** How redirects are treated. */
export type RedirectPolicy = SendOptions & {
  readonly redirect: 'follow' | 'manual' | 'error';
  readonly maxRedirects: number;
  /**
   * Which statuses are followed, and with which verb: like the library's requests, or like `fetch`.
   */
  readonly rules: 'request' | 'fetch';
  /**
   * Whether the request carries credentials in its body, so that it must not be sent to another
   * origin.
   */
  readonly isBoundToOrigin: boolean;
  /** Whether plain http is refused. */
  readonly isSecureOnly: boolean;
  /** Parameters that are secrets, besides the built-in ones. */
  readonly redact: RedactOptions;
  /** Reads a refused response for the error. */
  readonly read: (response: Response, request: ReadyRequest) => Promise<ApiResponse>;
};

/** The verb of the next request; undefined if the response is returned instead. */
type RedirectRules = (status: number, method: string) => string | undefined;

/** 301, 302 and 307 keep verb and body, 303 becomes a GET, others are returned. */
const requestRules: RedirectRules = (status, method) => {
  if (status === 301 || status === 302 || status === 307) return method;
  return status === 303 ? 'GET' : undefined;
};

/** The rules of `fetch`. @see https://fetch.spec.whatwg.org/#http-redirect-fetch */
const fetchRules: RedirectRules = (status, method) => {
  if (status === 307 || status === 308) return method;
  if (status === 301 || status === 302) return method === 'POST' ? 'GET' : method;
  return status === 303 ? (method === 'HEAD' ? 'HEAD' : 'GET') : undefined;
};

/** Headers that are not sent to another origin. */
const originHeaders = ['authorization', 'proxy-authorization', 'cookie', 'dpop', 'x-api-key'];

const rulesByName = { request: requestRules, fetch: fetchRules } as const;

/**
 * Follows redirects until the limit, after which the 3xx response is returned. Credentials are not
 * sent to another origin.
 * @throws {RedirectError} if a redirect would send them in the body, or leave https.
 */
export async function followRedirects(
  first: ReadyRequest,
  redirect: Response,
  policy: RedirectPolicy,
): Promise<Reply> {
  const rules = rulesByName[policy.rules];
  let request = first;
  let response = redirect;
  for (let count = 0; ; count++) {
    const answer = { response, method: request.method, url: request.url, redirected: count > 0 };
    const isOpaque = response.type === 'opaqueredirect';
    const method = isOpaque ? request.method : rules(response.status, request.method);
    if (!isRedirect(response) || method === undefined) return answer;
    if (policy.redirect === 'error') {
      throw await refusal('the server redirects, and `redirect` is `error`', response, request, policy);
    }
    if (count >= policy.maxRedirects && !isOpaque) return answer;
    request = await nextRequest(request, method, response, policy);
    await response.body?.cancel();
    response = await sendOnce(request, policy);
  }
}

async function nextRequest(
  request: ReadyRequest,
  method: string,
  response: Response,
  policy: RedirectPolicy,
): Promise<ReadyRequest> {
  const refuse = (message: string): Promise<RedirectError> => refusal(message, response, request, policy);
  if (response.type === 'opaqueredirect') {
    throw await refuse('browsers do not expose the target of a redirect; call the final URL');
  }
  const location = response.headers.get('location');
  if (location === null || location === '') {
    throw await refuse(`Got ${response.status} status code, but no Location header was present`);
  }
  const from = new URL(request.url);
  const to = resolveLocation(location, from);
  if (to === null || (to.protocol !== 'https:' && to.protocol !== 'http:'))
    throw await refuse('the redirect is not to an http(s) URL');
  if (to.username !== '' || to.password !== '')
    throw await refuse(`the redirect to ${to.host} holds a user or password`);
  if (from.protocol === 'https:' && to.protocol === 'http:')
    throw await refuse(`the redirect leaves https for http://${to.host}`);
  if (policy.isSecureOnly && !isSecure(to.href, false))
    throw await refuse(`the redirect leads to plain http at ${to.origin}`);
  const isCrossOrigin = from.origin !== to.origin;
  if (isCrossOrigin && policy.isBoundToOrigin) {
    throw await refuse(
      `the redirect would take credentials to ${to.origin}; configure the endpoint's final URL`,
    );
  }
  const keepsBody = method === request.method;
  if (keepsBody && request.body instanceof ReadableStream) {
    throw await refuse(
      'the redirect repeats the body, but a stream can be sent only once; send a string or bytes',
    );
  }
  return {
    url: redirectUrl(from, to, isCrossOrigin, policy),
    method,
    headers: redirectHeaders(request.headers, isCrossOrigin, keepsBody),
    body: keepsBody ? (isCrossOrigin ? withoutSecrets(request, policy) : request.body) : undefined,
  };
}

/**
 * Relative to the current URL. Only an absolute URL can change the host: `//host/x` and its
 * variants are paths of the same origin.
 */
function resolveLocation(location: string, from: URL): URL | null {
  if (hasScheme(location)) return URL.parse(location);
  const isNetworkPath = /^[/\\]{2}/.test(location);
  return isNetworkPath
    ? URL.parse(`${from.origin}/${location.replaceAll('\\', '/')}`)
    : URL.parse(location, from.href);
}

/**
 * Within the origin, tokens in the query are kept. For another origin, all secrets of the query are
 * removed, even if the server repeated them.
 */
function redirectUrl(from: URL, to: URL, isCrossOrigin: boolean, { redact }: RedirectPolicy): string {
  if (from.search === '') return to.href;
  const { isSecretName } = new Redactor(redact);
  for (const [name, value] of from.searchParams) {
    if (!isSecretName(name)) continue;
    if (isCrossOrigin) to.searchParams.delete(name, value);
    else if (!to.searchParams.has(name)) to.searchParams.append(name, value);
  }
  return to.href;
}

function redirectHeaders(headers: Headers, isCrossOrigin: boolean, keepsBody: boolean): Headers {
  if (!isCrossOrigin && keepsBody) return headers;
  const copy = new Headers(headers);
  if (isCrossOrigin) for (const name of originHeaders) copy.delete(name);
  // The content type is kept; a length or encoding of a body that is not sent would be wrong.
  if (!keepsBody) for (const name of ['content-length', 'content-encoding']) copy.delete(name);
  return copy;
}

/** Removes secrets from forms and JSON; other bodies are the caller's data. */
function withoutSecrets({ body, headers }: ReadyRequest, { redact }: RedirectPolicy): EncodedBody {
  const { isSecretName } = new Redactor(redact);
  if (body instanceof FormData) return strip(copyForm(body), isSecretName);
  if (typeof body !== 'string') return body;
  const type = headers.get('content-type') ?? '';
  if (type.startsWith('application/x-www-form-urlencoded'))
    return strip(new URLSearchParams(body), isSecretName).toString();
  return type.includes('json') ? withoutSecretKeys(body, isSecretName) : body;
}

function strip<Form extends FormData | URLSearchParams>(
  form: Form,
  isSecretName: (name: string) => boolean,
): Form {
  for (const name of [...form.keys()]) if (isSecretName(name)) form.delete(name);
  return form;
}

function copyForm(form: FormData): FormData {
  const copy = new FormData();
  for (const [name, value] of form) copy.append(name, value);
  return copy;
}

function withoutSecretKeys(json: string, isSecretName: (name: string) => boolean): string {
  try {
    return JSON.stringify(
      JSON.parse(json, (key: string, value: unknown) => (isSecretName(key) ? undefined : value)),
    );
  } catch {
    // The body is not JSON, but the caller's own text.
    return json;
  }
}

async function refusal(
  message: string,
  response: Response,
  request: ReadyRequest,
  policy: RedirectPolicy,
): Promise<RedirectError> {
  return new RedirectError(message, { response: await policy.read(response, request) });
}
