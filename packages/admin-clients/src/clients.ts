import { getRequestFailure } from '@tollgate/kit/errors';
import createClient, { type Client } from 'openapi-fetch';
import type { components as AuthComponents, paths as AuthPaths } from './generated/auth.d.ts';
import type { components as LimiterComponents, paths as LimiterPaths } from './generated/ratelimit.d.ts';
import type { components as XdsComponents, paths as XdsPaths } from './generated/xds.d.ts';

export interface ClientOptions {
  /** Base URL, such as `https://auth.example.com`. */
  readonly url: string;
  /**
   * An API key with admin scopes or a token, or a function that is called for each request. Empty:
   * none is sent.
   */
  readonly token: string | (() => Promise<string>);
  /** Time for a response. */
  readonly timeoutMs: number;
  /** How requests are sent. Its `RequestError`s are kept. Default: by the global `fetch`. */
  readonly fetch?: (request: Request, options: { readonly signal: AbortSignal }) => Promise<Response>;
}

/** The admin API of the user authentication server. @see docs/openapi-auth.json */
export type AuthClient = Client<AuthPaths>;

/** Objects of the admin API of the auth server, by their names in its OpenAPI document. */
export type AuthSchemas = AuthComponents['schemas'];

/** The counter API of the rate limit service. @see docs/openapi-ratelimit.json */
export type LimiterClient = Client<LimiterPaths>;

/** Objects of the counter API, by their names in its OpenAPI document. */
export type LimiterSchemas = LimiterComponents['schemas'];

/** The admin API of the xDS server. @see docs/openapi-xds.json */
export type XdsClient = Client<XdsPaths>;

/** Objects of the admin API of the xDS server, by their names in its OpenAPI document. */
export type XdsSchemas = XdsComponents['schemas'];

/** Errors have `code` and `message`, as those of the counter API. */
const errorFormat = { 'x-svc-api-version': '2024-01-01' };

export function createAuthClient(options: ClientOptions): AuthClient {
  return createClient<AuthPaths>(toClientOptions(options, errorFormat));
}

export function createLimiterClient(options: ClientOptions): LimiterClient {
  return createClient<LimiterPaths>(toClientOptions(options, {}));
}

export function createXdsClient(options: ClientOptions): XdsClient {
  return createClient<XdsPaths>(toClientOptions(options, {}));
}

function toClientOptions(options: ClientOptions, headers: Record<string, string>) {
  const { url, token, timeoutMs, fetch = globalThis.fetch } = options;
  return {
    baseUrl: url.replace(/\/+$/, ''),
    headers,
    fetch: async (request: Request) => {
      const text = typeof token === 'string' ? token : await token();
      if (text !== '') request.headers.set('authorization', `Bearer ${text}`);
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
      return fetch(request, { signal }).catch((cause: unknown) => {
        throw cause instanceof RequestError ? cause : unreachable(cause, url);
      });
    },
  };
}

/** Why a request failed: the service refused it, or could not be reached. */
export class RequestError extends Error {
  /** Code of the service; `unreachable` without a response. */
  readonly code: string;
  /** Absent without a response. */
  readonly status: number | undefined;
  /** Base URL of the service, where it is known. */
  readonly url: string | undefined;

  constructor(
    message: string,
    { code, status, url }: { readonly code: string; readonly status?: number; readonly url?: string },
  ) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
    this.status = status;
    this.url = url;
  }
}

/** The result of a request, for `unwrap`. */
export interface Result<T> {
  readonly data?: T | undefined;
  readonly error?: unknown;
  readonly response: Response;
}

function unreachable(cause: unknown, url?: string): RequestError {
  return new RequestError(`the service cannot be reached: ${getRequestFailure(cause)}`, {
    code: 'unreachable',
    ...(url !== undefined && { url }),
  });
}

/** The body of a successful response. @throws RequestError with the reason of the service. */
export async function unwrap<T>(request: Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await request.catch((cause: unknown) => {
    // There is no token for the request, or no response.
    if (cause instanceof RequestError) throw cause;
    throw unreachable(cause);
  });
  // Parsed boundary: 204 has no body, and its type has none.
  if (response.ok) return data as T;
  throw toRequestError(error, response);
}

function toRequestError(error: unknown, { status, statusText }: Response): RequestError {
  const { code, message } =
    typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  return typeof code === 'string' && typeof message === 'string'
    ? new RequestError(message, { code, status })
    : new RequestError(
        `the service answered ${status} ${statusText}, and no error of its API: check the URL`,
        {
          code: 'unexpected_response',
          status,
        },
      );
}

/**
 * The cursor of the next page, from `Link` (RFC 8288), or its number in `page`. Undefined on the
 * last page.
 */
export function nextCursor(
  { headers }: Response,
  parameter: 'cursor' | 'page' = 'cursor',
): string | undefined {
  const next = /<([^>]*)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (next === undefined) return undefined;
  return URL.parse(next, 'http://path.invalid')?.searchParams.get(parameter) ?? undefined;
}
