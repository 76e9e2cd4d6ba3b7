import type { CallerIdentity } from './caller-identity.ts';

/** Headers that Envoy is to put in place of what the client sent, and those it is to remove. */
export interface HeaderChanges {
  /** Each replaces every header of that name. No name is in `remove` as well: Envoy removes last. */
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** May a request pass? */
export type AuthzDecision = AuthzAllowed | AuthzDenied;

/** It may; `identity` is absent on a public route without a valid token. */
export interface AuthzAllowed {
  readonly allowed: true;
  readonly identity: CallerIdentity | undefined;
  readonly headers: HeaderChanges;
}

/** It may not, and this is what the client is told, as JSON `{ code, error_code, msg }`. */
export interface AuthzDenied {
  readonly allowed: false;
  /** 400 a path that could be read in two ways, 401 no valid token, 403 not this user, 503 nobody can tell right now. */
  readonly httpStatus: 400 | 401 | 403 | 503;
  readonly errorCode: string;
  readonly message: string;
  /** Besides `content-type`: `www-authenticate` with 401 and 403 (RFC 6750 §3, RFC 9470), `retry-after` with 503. */
  readonly headers: Readonly<Record<string, string>>;
}
