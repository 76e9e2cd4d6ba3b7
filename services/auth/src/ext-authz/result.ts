import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import type { RateLimitAnswer } from './rate-limit.ts';

export type RateLimitResult =
  | RateLimitAnswer
  /** The service failed or was too slow. */
  | { readonly code: 'error'; readonly allowed: boolean };

/** Changes to the request that Envoy makes before it forwards it. */
export interface HeaderChanges {
  /**
   * Each replaces all headers of its name. No name is also in `remove`, which Envoy applies last.
   */
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** The response to the client, with the JSON body `{ code, error_code, msg }`. */
export interface AuthzDenied {
  readonly allowed: false;
  /**
   * 302 and 303 to another page, 400 ambiguous path, 401 no valid token, 403 not permitted, 405 the
   * page for the sign-out, 429 over limit, 503 unavailable.
   */
  readonly httpStatus: 302 | 303 | 400 | 401 | 403 | 405 | 429 | 503;
  readonly errorCode: string;
  readonly message: string;
  /**
   * In addition to `content-type`: `www-authenticate` (RFC 6750 §3, RFC 9470), `retry-after` with
   * 429 and 503, `ratelimit-…` with 429.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** HTML instead of the JSON. */
  readonly page?: string;
  /** Set if a limit applied. */
  readonly rateLimit?: RateLimitResult['code'];
  /** Set with `rateLimit`, unless the caller has no identity. */
  readonly identity?: CallerIdentity | undefined;
}

export type AuthzDecision = AuthzAllowed | AuthzDenied;

export interface AuthzAllowed {
  readonly allowed: true;
  /** Undefined on a public route without a valid token. */
  readonly identity: CallerIdentity | undefined;
  readonly headers: HeaderChanges;
  /** Undefined if no limit applies. */
  readonly rateLimit?: RateLimitResult['code'];
  /** The response to the client has them, such as `ratelimit-remaining`. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
}
