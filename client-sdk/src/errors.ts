import type { ApiResponse } from './http/response.ts';
import { printable, printableLines } from './text.ts';

/** The library's own name for what went wrong; stable, never reused. Servers' names are in `OAuthError.code`. */
export type OAuthClientErrorKind =
  | 'OAUTH_CLIENT_ABORTED'
  | 'OAUTH_CLIENT_AUTHORIZATION_RESPONSE'
  | 'OAUTH_CLIENT_CONFIGURATION'
  | 'OAUTH_CLIENT_CONNECTION'
  | 'OAUTH_CLIENT_DISCOVERY'
  | 'OAUTH_CLIENT_ID_TOKEN'
  | 'OAUTH_CLIENT_ISSUER_MISMATCH'
  | 'OAUTH_CLIENT_JWT'
  | 'OAUTH_CLIENT_PARSE'
  | 'OAUTH_CLIENT_PROTECTED_RESOURCE'
  | 'OAUTH_CLIENT_REDIRECT'
  | 'OAUTH_CLIENT_RESPONSE'
  | 'OAUTH_CLIENT_REVOCATION'
  | 'OAUTH_CLIENT_STATE_MISMATCH'
  | 'OAUTH_CLIENT_STORE'
  | 'OAUTH_CLIENT_TIMEOUT'
  | 'OAUTH_CLIENT_TOKEN_RESPONSE'
  | 'OAUTH_CLIENT_TOKEN_UNAVAILABLE';

/** What every error of the library may be given beside its message. */
export type OAuthClientErrorOptions = {
  /** The error underneath. */
  readonly cause?: unknown;
  /** Whether the same call may succeed later, unchanged. Default false. */
  readonly retryable?: boolean;
};

/** Characters of a message: above what ours need, below what floods a log. */
const MAX_MESSAGE_LENGTH = 2048;

/**
 * The base of everything this library throws: `kind` tells them apart, `cause` holds what was underneath. Control characters in the
 * message are escaped, and it is cut after 2,048 characters.
 */
export class OAuthClientError extends Error {
  // A field rather than the constructor's name: bundlers rename classes.
  override readonly name: string = 'OAuthClientError';
  readonly kind: OAuthClientErrorKind;
  /** Whether the same call may succeed later, unchanged. */
  readonly retryable: boolean;

  constructor(kind: OAuthClientErrorKind, message: string, options: OAuthClientErrorOptions = {}) {
    // `cause` only when there is one: an own undefined `cause` shows in every inspection.
    super(
      printableLines(message, MAX_MESSAGE_LENGTH),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.kind = kind;
    this.retryable = options.retryable ?? false;
  }
}

/** No response came: the request did not reach the server, or its answer did not reach us. The base of three errors. */
export class TransportError extends OAuthClientError {
  override readonly name: string = 'TransportError';
}

/** The caller's `signal` aborted the call; `cause` is the signal's reason. */
export class AbortError extends TransportError {
  override readonly name: string = 'AbortError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ABORTED', message, options);
  }
}

/** Characters of the server's words that are quoted. */
const MAX_WORDS = 512;

/**
 * The authorization server sent the user back with an error instead of a code.
 * @see RFC 6749 §4.1.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1
 */
export class AuthorizationResponseError extends OAuthClientError {
  override readonly name: string = 'AuthorizationResponseError';
  /** The server's `error`, such as `access_denied`. */
  readonly code: string;
  /** The server's `error_description`. */
  readonly description: string | undefined;
  /** The server's `error_uri`. */
  readonly uri: string | undefined;

  constructor(
    response: {
      readonly code: string;
      readonly description?: string | undefined;
      readonly uri?: string | undefined;
    },
    options: OAuthClientErrorOptions = {},
  ) {
    const { code, description, uri } = response;
    // From the callback's URL, which anyone can write.
    const words = description === undefined ? code : `${code}: ${description}`;
    super('OAUTH_CLIENT_AUTHORIZATION_RESPONSE', printable(words, MAX_WORDS), options);
    this.code = code;
    this.description = description;
    this.uri = uri;
  }
}

/** The caller asked for what cannot be: a missing client id, an unknown mode, a token for an origin that is not allowed. */
export class ConfigurationError extends OAuthClientError {
  override readonly name: string = 'ConfigurationError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONFIGURATION', message, options);
  }
}

/** The server could not be reached or the connection broke; `cause` is what `fetch` threw. `retryable` unless TLS failed. */
export class ConnectionError extends TransportError {
  override readonly name: string = 'ConnectionError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONNECTION', message, options);
  }
}

/** The metadata of an authorization server, or its key set, could not be had or is unusable; asking again may help when `retryable`. */
export class DiscoveryError extends OAuthClientError {
  override readonly name: string = 'DiscoveryError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_DISCOVERY', message, options);
  }
}

/**
 * An ID token whose signature is good but whose claims are not those expected; `claim` names the first that is wrong.
 * @see OpenID Connect Core §3.1.3.7 https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export class IdTokenError extends OAuthClientError {
  override readonly name: string = 'IdTokenError';
  /** Name of the claim, such as `nonce`. */
  readonly claim: string;

  constructor(claim: string, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ID_TOKEN', `id_token: ${message}`, options);
    this.claim = claim;
  }
}

/** The issuer that answered is not the one expected. See RFC 9207 §2.4 and RFC 8414 §3.3. */
export class IssuerMismatchError extends OAuthClientError {
  override readonly name: string = 'IssuerMismatchError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ISSUER_MISMATCH', message, options);
  }
}

/** Why a JWT is not accepted: not a JWT, encrypted, of an algorithm not allowed, without a known key, not signed by it, of another type. */
export type JwtErrorReason = 'malformed' | 'encrypted' | 'algorithm' | 'key_not_found' | 'signature' | 'type';

/** A JWT, or the key set to check it with, cannot be trusted or read. The token itself is in no message. */
export class JwtError extends OAuthClientError {
  override readonly name: string = 'JwtError';
  readonly reason: JwtErrorReason;

  constructor(reason: JwtErrorReason, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_JWT', message, options);
    this.reason = reason;
  }
}

/** What of a response makes an error. */
export type OAuthErrorFields = {
  readonly response: ApiResponse;
  /** Secrets masked already. Default: the code, else the status. */
  readonly message?: string | undefined;
  /** The server's `error`. */
  readonly code?: string | undefined;
  /** The server's `error_description`. */
  readonly description?: string | undefined;
  /** The server's `error_uri`. */
  readonly uri?: string | undefined;
  /** The response's challenges. */
  readonly wwwAuthenticate?: readonly AuthChallenge[];
  /** The response's Retry-After in milliseconds from its arrival. */
  readonly retryAfterMs?: number | undefined;
  /** What went wrong underneath, such as a body that could not be parsed. */
  readonly cause?: unknown;
};

/** One challenge of a WWW-Authenticate header: scheme in lower case, parameter names in lower case. */
export type AuthChallenge = {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
};

/**
 * A server answered with a failure. `code` and `description` are its `error` and `error_description`; `response` is always there.
 * @see RFC 6749 §5.2 https://www.rfc-editor.org/rfc/rfc6749#section-5.2
 */
export class OAuthError extends OAuthClientError {
  override readonly name: string = 'OAuthError';
  /** The server's `error`, such as `invalid_grant`; undefined when it named none. */
  readonly code: string | undefined;
  /** The server's `error_description`. */
  readonly description: string | undefined;
  /** The server's `error_uri`. */
  readonly uri: string | undefined;
  /** The HTTP status. */
  readonly status: number;
  /** The challenges of WWW-Authenticate, in order. */
  readonly wwwAuthenticate: readonly AuthChallenge[];
  /** How long the server asks to wait, in milliseconds from the response's arrival. */
  readonly retryAfterMs: number | undefined;
  readonly #response: ApiResponse;

  constructor(fields: OAuthErrorFields, kind: OAuthClientErrorKind = 'OAUTH_CLIENT_RESPONSE') {
    const { status } = fields.response;
    super(kind, fields.message ?? fields.code ?? `HTTP status ${status}`, {
      cause: fields.cause,
      retryable: status === 429 || (status >= 502 && status <= 504),
    });
    this.code = fields.code;
    this.description = fields.description;
    this.uri = fields.uri;
    this.status = status;
    this.wwwAuthenticate = fields.wwwAuthenticate ?? [];
    this.retryAfterMs = fields.retryAfterMs;
    this.#response = fields.response;
  }

  /** The whole response. Not an own property, so that printing the error does not print the body. */
  get response(): ApiResponse {
    return this.#response;
  }
}

/** A body that is not what its content type says; `cause` is the parser's error. The body itself is not in the message. */
export class ParseError extends OAuthClientError {
  override readonly name: string = 'ParseError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_PARSE', message, options);
  }
}

/** An API called with an access token answered with a failure; `wwwAuthenticate` says whether the token is the reason. See RFC 6750 §3. */
export class ProtectedResourceError extends OAuthError {
  override readonly name: string = 'ProtectedResourceError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_PROTECTED_RESOURCE');
  }
}

/** A redirect that must not be followed: no Location, a downgrade from https, a token request sent to another origin. */
export class RedirectError extends OAuthClientError {
  override readonly name: string = 'RedirectError';
  /** The response that asked for it. */
  readonly response: ApiResponse;

  constructor(message: string, options: OAuthClientErrorOptions & { readonly response: ApiResponse }) {
    super('OAUTH_CLIENT_REDIRECT', message, options);
    this.response = options.response;
  }
}

/** The revocation endpoint refused: the token must be taken for alive. See RFC 7009 §2.2.1. */
export class RevocationError extends OAuthError {
  override readonly name: string = 'RevocationError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_REVOCATION');
  }
}

/** The callback's `state` is not the one the authorization began with: another session's, forged, or used before. See RFC 6749 §10.12. */
export class StateMismatchError extends OAuthClientError {
  override readonly name: string = 'StateMismatchError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_STATE_MISMATCH', message, options);
  }
}

/** A token store could not be read or written; `cause` is the store's own error. */
export class StoreError extends OAuthClientError {
  override readonly name: string = 'StoreError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_STORE', message, options);
  }
}

/** No complete answer within `timeoutMs`. */
export class TimeoutError extends TransportError {
  override readonly name: string = 'TimeoutError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TIMEOUT', message, options);
  }
}

/** The token endpoint refused, or its answer holds no token. */
export class TokenResponseError extends OAuthError {
  override readonly name: string = 'TokenResponseError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_TOKEN_RESPONSE');
  }
}

/** There is no token to use: none in what was given, no refresh token to refresh with, nothing to revoke. */
export class TokenUnavailableError extends OAuthClientError {
  override readonly name: string = 'TokenUnavailableError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TOKEN_UNAVAILABLE', message, options);
  }
}
