import type { OAuthError } from '../errors/oauth-error.ts';
import type { JsonObject } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import type { AccessToken } from './access-token.ts';
import type { AccessTokenOptions } from './token-options.ts';

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
