import type { ApiResponse } from './http/response.ts';
import { printable, printableLines } from './text.ts';

/**
 * The library's name of a failure: stable, never reused. The server's codes are in
 * `OAuthError.code`.
 */
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

/** Options of all errors. */
export type OAuthClientErrorOptions = {
  /** The underlying error. */
  readonly cause?: unknown;
  /** Whether the same call may succeed later. Default false. */
  readonly retryable?: boolean;
};

const MAX_MESSAGE_LENGTH = 2048;

/**
 * The base of all errors of this library. `kind` tells them apart. Control characters in the
 * message are escaped, and it is cut after 2,048 characters.
 */
export class OAuthClientError extends Error {
  // Not the name of the constructor, which bundlers change.
  override readonly name: string = 'OAuthClientError';
  readonly kind: OAuthClientErrorKind;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(kind: OAuthClientErrorKind, message: string, options: OAuthClientErrorOptions = {}) {
    // An own `cause` of undefined would show in every inspection.
    super(
      printableLines(message, MAX_MESSAGE_LENGTH),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.kind = kind;
    this.retryable = options.retryable ?? false;
  }
}

/** There is no response: the request did not reach the server, or its response did not arrive. */
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

/** Characters of the server's description that are quoted. */
const MAX_WORDS = 512;

/**
 * The authorization server redirected the user back with an error instead of a code.
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
    // The callback's URL is not trusted.
    const words = description === undefined ? code : `${code}: ${description}`;
    super('OAUTH_CLIENT_AUTHORIZATION_RESPONSE', printable(words, MAX_WORDS), options);
    this.code = code;
    this.description = description;
    this.uri = uri;
  }
}

/**
 * The call or the configuration is invalid: a missing client id, an unknown mode, an origin that
 * tokens may not be sent to.
 */
export class ConfigurationError extends OAuthClientError {
  override readonly name: string = 'ConfigurationError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONFIGURATION', message, options);
  }
}

/**
 * The server could not be reached or the connection broke; `cause` is what `fetch` threw.
 * `retryable` unless TLS failed.
 */
export class ConnectionError extends TransportError {
  override readonly name: string = 'ConnectionError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONNECTION', message, options);
  }
}

/** The metadata or the key set of an authorization server could not be loaded or are invalid. */
export class DiscoveryError extends OAuthClientError {
  override readonly name: string = 'DiscoveryError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_DISCOVERY', message, options);
  }
}

/**
 * An ID token with a valid signature whose claims are not the expected ones; `claim` names the
 * first.
 * @see OpenID Connect Core §3.1.3.7
 * https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export class IdTokenError extends OAuthClientError {
  override readonly name: string = 'IdTokenError';
  /** The claim's name, such as `nonce`. */
  readonly claim: string;

  constructor(claim: string, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ID_TOKEN', `id_token: ${message}`, options);
    this.claim = claim;
  }
}

/** The response is from another issuer than expected. See RFC 9207 §2.4 and RFC 8414 §3.3. */
export class IssuerMismatchError extends OAuthClientError {
  override readonly name: string = 'IssuerMismatchError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ISSUER_MISMATCH', message, options);
  }
}

/**
 * Why a JWT was rejected: not a JWT, encrypted, algorithm not allowed, unknown key, wrong
 * signature, wrong type.
 */
export type JwtErrorReason = 'malformed' | 'encrypted' | 'algorithm' | 'key_not_found' | 'signature' | 'type';

/** A JWT, or the key set to verify it with, is invalid. The message does not contain the token. */
export class JwtError extends OAuthClientError {
  override readonly name: string = 'JwtError';
  readonly reason: JwtErrorReason;

  constructor(reason: JwtErrorReason, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_JWT', message, options);
    this.reason = reason;
  }
}

/** The parts of a response that make an error. */
export type OAuthErrorFields = {
  readonly response: ApiResponse;
  /** The message, with secrets masked. Default: the code, else the status. */
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
  /** The underlying error, such as that of a parser. */
  readonly cause?: unknown;
};

/** One challenge of a WWW-Authenticate header, with scheme and parameter names in lower case. */
export type AuthChallenge = {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
};

/**
 * The server responded with a failure. `code` and `description` are its `error` and
 * `error_description`.
 * @see RFC 6749 §5.2 https://www.rfc-editor.org/rfc/rfc6749#section-5.2
 */
export class OAuthError extends OAuthClientError {
  override readonly name: string = 'OAuthError';
  /** The server's `error`, such as `invalid_grant`; undefined if there was none. */
  readonly code: string | undefined;
  /** The server's `error_description`. */
  readonly description: string | undefined;
  /** The server's `error_uri`. */
  readonly uri: string | undefined;
  /** The HTTP status. */
  readonly status: number;
  /** The challenges of WWW-Authenticate, in order. */
  readonly wwwAuthenticate: readonly AuthChallenge[];
  /** The server's Retry-After in milliseconds from the response's arrival. */
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

  /**
   * The complete response. Not an own property, so that printing the error does not print the body.
   */
  get response(): ApiResponse {
    return this.#response;
  }
}

/**
 * A body does not match its content type; `cause` is the parser's error. The message does not
 * contain the body.
 */
export class ParseError extends OAuthClientError {
  override readonly name: string = 'ParseError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_PARSE', message, options);
  }
}

/**
 * An API that was called with an access token responded with a failure; `wwwAuthenticate` tells
 * whether the token is the reason. See RFC 6750 §3.
 */
export class ProtectedResourceError extends OAuthError {
  override readonly name: string = 'ProtectedResourceError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_PROTECTED_RESOURCE');
  }
}

/**
 * A redirect that must not be followed: without Location, from https to http, or a token request to
 * another origin.
 */
export class RedirectError extends OAuthClientError {
  override readonly name: string = 'RedirectError';
  /** The redirect. */
  readonly response: ApiResponse;

  constructor(message: string, options: OAuthClientErrorOptions & { readonly response: ApiResponse }) {
    super('OAUTH_CLIENT_REDIRECT', message, options);
    this.response = options.response;
  }
}

/** The revocation endpoint refused: the token must be considered valid. See RFC 7009 §2.2.1. */
export class RevocationError extends OAuthError {
  override readonly name: string = 'RevocationError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_REVOCATION');
  }
}

/**
 * The callback's `state` is not the one the authorization started with: from another session,
 * forged, or used before. See RFC 6749 §10.12.
 */
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

/** The response was not complete within `timeoutMs`. */
export class TimeoutError extends TransportError {
  override readonly name: string = 'TimeoutError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TIMEOUT', message, options);
  }
}

/** The token endpoint refused, or its response has no token. */
export class TokenResponseError extends OAuthError {
  override readonly name: string = 'TokenResponseError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_TOKEN_RESPONSE');
  }
}

/** There is no token to use, to refresh or to revoke. */
export class TokenUnavailableError extends OAuthClientError {
  override readonly name: string = 'TokenUnavailableError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TOKEN_UNAVAILABLE', message, options);
  }
}
