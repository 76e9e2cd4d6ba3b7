import type { TokenMethod } from '../client-options.ts';
import type { OAuthError } from '../errors.ts';
import type { RequestOptions, WireParams } from '../http/options.ts';
import type { ApiResponse } from '../http/response.ts';
import type { JsonObject, KeyCase } from '../key-case.ts';
import type { OptionNames } from '../option-names.ts';
import type { AccessToken } from './access-token.ts';

/** Where the access token is sent. `query` and `body` are discouraged. @see RFC 6750 §2 */
export type TokenPlace = 'header' | 'query' | 'body';

/**
 * Where the token is sent: for all requests, by verb (default `header`), or decided for each
 * request.
 */
export type TokenMode =
  | TokenPlace
  | { readonly [method: string]: TokenPlace }
  | ((method: string) => TokenPlace);

/** Options of an access token. */
export type AccessTokenOptions = {
  readonly refreshToken?: string;
  /** Seconds until it expires; 0 means never. */
  readonly expiresIn?: number | string;
  /** Epoch seconds, or an ISO 8601 time; takes precedence over `expiresIn`. */
  readonly expiresAt?: number | string;
  /** Seconds before its expiry from which it counts as expired. */
  readonly expiresLatency?: number;
  /** Default `'header'`. */
  readonly mode?: TokenMode;
  /**
   * The scheme of the Authorization header. Default `Bearer`, or `DPoP` if `token_type` says so.
   */
  readonly authorizationScheme?: string;
  /** Makes the complete value of the Authorization header. */
  readonly formatHeader?: (token: string) => string;
  /** The parameter name in modes `query` and `body`. Default `access_token`. */
  readonly paramName?: string;
  /**
   * The field of a token response that holds the access token. Default: the first of access_token,
   * token, accessToken.
   */
  readonly tokenName?: string;
};

/** The names of the options of an access token. */
export const accessTokenOptionNames: OptionNames<AccessTokenOptions> = {
  ...{ refreshToken: 1, expiresIn: 1, expiresAt: 1, expiresLatency: 1, mode: 1 },
  ...{ authorizationScheme: 1, formatHeader: 1, paramName: 1, tokenName: 1 },
};

/** Options of a token request and of its token. */
export type TokenRequestOptions<Throws extends boolean = boolean> = AccessTokenOptions &
  Omit<RequestOptions, 'body' | 'query' | 'throwOnError'> & {
    /** Default: the client's. */
    readonly tokenMethod?: TokenMethod;
    /** With false, a failure is returned as a TokenFailure. Default: the client's. */
    readonly throwOnError?: Throws;
  };

/**
 * The kind of token to revoke.
 * @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1
 */
export type TokenTypeHint = 'access_token' | 'refresh_token';

/** Options of `client.revokeToken`. */
export type RevokeOptions = Omit<RequestOptions, 'body' | 'query'> & {
  /** The kind of token, sent only if given. */
  readonly hint?: string | undefined;
  /** Further parameters. */
  readonly params?: WireParams;
  /**
   * Where the parameters are sent. Default: the client's. All but `'post'` put the token into a
   * URL, and so into logs.
   */
  readonly tokenMethod?: TokenMethod;
};

/** Options of `token.revoke`. */
export type RevokeTokenOptions = Omit<RevokeOptions, 'hint'> & {
  /**
   * The token to revoke, and the hint that is sent. Default: the access token, or the refresh token
   * if there is no other.
   */
  readonly tokenTypeHint?: TokenTypeHint;
};

/** A token response: the parsed fields, the caller's options, and the response itself. */
export type TokenResponse = {
  readonly fields: JsonObject;
  readonly options: AccessTokenOptions;
  readonly response: ApiResponse;
};

/** A failed token request, with `throwOnError: false`. */
export type TokenFailure = { readonly ok: false; readonly error: OAuthError; readonly response: ApiResponse };

/**
 * The result of a token request: the token or, with `throwOnError: false`, possibly a failure. `ok`
 * tells them apart.
 */
export type TokenOutcome<Throws extends boolean, Keys extends KeyCase = 'snake'> = Throws extends false
  ? AccessToken<JsonObject, Keys> | TokenFailure
  : AccessToken<JsonObject, Keys>;
