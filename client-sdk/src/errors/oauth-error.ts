import type { ApiResponse } from '../response/api-response.ts';
import type { OAuthClientErrorKind } from './error-kind.ts';
import { OAuthClientError } from './oauth-client-error.ts';

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
