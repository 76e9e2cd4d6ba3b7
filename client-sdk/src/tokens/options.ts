import type { TokenMethod } from '../client-options.ts';
import type { OAuthError } from '../errors.ts';
import type { RequestOptions, WireParams } from '../http/options.ts';
import type { ApiResponse } from '../http/response.ts';
import type { JsonObject } from '../keys.ts';
import type { AccessToken } from './access-token.ts';

/** Where the access token travels. `query` and `body` are discouraged. @see RFC 6750 §2 */
export type TokenPlace = 'header' | 'query' | 'body';

/** The place for all requests, by verb (`header` for those not named), or asked for each request. */
export type TokenMode =
  | TokenPlace
  | { readonly [method: string]: TokenPlace }
  | ((method: string) => TokenPlace);

/** Options of an access token. */
export type AccessTokenOptions = {
  readonly refreshToken?: string;
  /** Seconds until it expires; 0 means never. */
  readonly expiresIn?: number | string;
  /** Epoch seconds, or an ISO 8601 time; wins over `expiresIn`. */
  readonly expiresAt?: number | string;
  /** Seconds by which it counts as expired earlier. */
  readonly expiresLatency?: number;
  /** Default `'header'`. */
  readonly mode?: TokenMode;
  /** The scheme of the Authorization header. Default `Bearer`, or `DPoP` where `token_type` says so. */
  readonly authorizationScheme?: string;
  /** Makes the whole value of the Authorization header. */
  readonly formatHeader?: (token: string) => string;
  /** The parameter of modes `query` and `body`. Default `access_token`. */
  readonly paramName?: string;
  /** The field of a token response that is the access token. Default: the first of access_token, id_token, token, accessToken, idToken. */
  readonly tokenName?: string;
};

/** Options of a token request and of the token that it gets. */
export type TokenRequestOptions<Throws extends boolean = boolean> = AccessTokenOptions &
  Omit<RequestOptions, 'body' | 'query' | 'throwOnError'> & {
    /** Default: the client's. */
    readonly tokenMethod?: TokenMethod;
    /** False: a failure is returned as a TokenFailure. Default: the client's. */
    readonly throwOnError?: Throws;
  };

/** Which of the two tokens a revocation is about. @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1 */
export type TokenTypeHint = 'access_token' | 'refresh_token';

/** Options of `client.revokeToken`. */
export type RevokeOptions = Omit<RequestOptions, 'body' | 'query'> & {
  /** Tells the server what kind of token it is; sent only when given. */
  readonly hint?: string | undefined;
  /** Further parameters. */
  readonly params?: WireParams;
  /** Where the parameters travel. Default: the client's. All but `'post'` put the token into a URL, and so into logs. */
  readonly tokenMethod?: TokenMethod;
};

/** Options of `token.revoke`. */
export type RevokeTokenOptions = Omit<RevokeOptions, 'hint'> & {
  /** Which of the two is revoked, and the hint that is sent. Default: the access token, or else the refresh token. */
  readonly tokenTypeHint?: TokenTypeHint;
};

/** What a token is made of: the parsed fields, the caller's options, and the response they came in. */
export type TokenResponse = {
  readonly fields: JsonObject;
  readonly options: AccessTokenOptions;
  readonly response: ApiResponse;
};

/** A token request that failed, where `throwOnError` is false. */
export type TokenFailure = { readonly ok: false; readonly error: OAuthError; readonly response: ApiResponse };

/** What a token request gives: the token, or with `throwOnError: false` perhaps a failure. `ok` tells which. */
export type TokenOutcome<Throws extends boolean> = Throws extends false
  ? AccessToken | TokenFailure
  : AccessToken;
