/**
 * OAuth 2.0 client: tokens by every grant, APIs called with them. Protocols around it are in subpaths.
 *
 * @module
 */

export type {
  AuthorizationFlow,
  CompleteAuthorizationOptions,
} from './authorization/authorization-flow.ts';
export type {
  StartAuthorizationOptions,
  StartedAuthorization,
} from './authorization/prepare-authorization.ts';
export type { AuthorizationTransaction } from './authorization/transaction.ts';
export { Client } from './client/client.ts';
export type { ArrayFormat, ClientOptions, Fetch, Logger, TokenMethod } from './client/client-options.ts';
export type { ClientSettings } from './client/client-settings.ts';
export type { EndpointRequest } from './client/endpoint-request.ts';
export type {
  ClientHooks,
  ErrorEvent,
  Operation,
  RequestContext,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './client/hooks.ts';
export type { HookErrorHandler } from './client/observers.ts';
export type {
  HeadersInput,
  OutgoingRequest,
  ParsedFactory,
  RequestBody,
  RequestOptions,
  ResponseOptions,
} from './client/request-options.ts';
export type { RetryPolicy } from './client/retry-policy.ts';
export type {
  AssertionClaims,
  AssertionSigning,
  AssertionStrategy,
  AssertionTuple,
} from './client/strategies/assertion.ts';
export type { AuthCodeStrategy } from './client/strategies/auth-code.ts';
export type { ClientCredentialsStrategy } from './client/strategies/client-credentials.ts';
export type { ImplicitStrategy } from './client/strategies/implicit.ts';
export type { PasswordStrategy } from './client/strategies/password.ts';
export type { WarningCode, WarningEvent } from './client/warning.ts';
export type { WireParams, WireValue } from './client/wire-params.ts';
export type {
  BasicEncoding,
  ClientAssertionAuth,
  ClientAuth,
  ClientAuthFunction,
  ClientAuthName,
  ClientSecretJwtAuth,
  MutableTokenRequest,
  PrivateKeyJwtAuth,
} from './client-auth/client-auth.ts';
export { AbortError } from './errors/abort-error.ts';
export { AuthorizationResponseError } from './errors/authorization-response-error.ts';
export { ConfigurationError } from './errors/configuration-error.ts';
export { ConnectionError } from './errors/connection-error.ts';
export { DiscoveryError } from './errors/discovery-error.ts';
export type { OAuthClientErrorKind } from './errors/error-kind.ts';
export { IdTokenError } from './errors/id-token-error.ts';
export { IssuerMismatchError } from './errors/issuer-mismatch-error.ts';
export { JwtError, type JwtErrorReason } from './errors/jwt-error.ts';
export { OAuthClientError, type OAuthClientErrorOptions } from './errors/oauth-client-error.ts';
export { type AuthChallenge, OAuthError, type OAuthErrorFields } from './errors/oauth-error.ts';
export { ParseError } from './errors/parse-error.ts';
export { ProtectedResourceError } from './errors/protected-resource-error.ts';
export { RedirectError } from './errors/redirect-error.ts';
export { RevocationError } from './errors/revocation-error.ts';
export { StateMismatchError } from './errors/state-mismatch-error.ts';
export { StoreError } from './errors/store-error.ts';
export { TimeoutError } from './errors/timeout-error.ts';
export { TokenResponseError } from './errors/token-response-error.ts';
export { TokenUnavailableError } from './errors/token-unavailable-error.ts';
export { TransportError } from './errors/transport-error.ts';
export type { IdTokenClaims } from './id-token/claims.ts';
export type { ExpectedIdToken, IdTokenValidator } from './id-token.ts';
export type { JwsAlgorithm } from './jwt/algorithms.ts';
export { camelView } from './keys/camel-view.ts';
export type { JsonObject, JsonValue } from './keys/json.ts';
export type { KeyCase } from './keys/key-case.ts';
export { dump, load, type ValueChange } from './keys/serialize.ts';
export { snakeCase } from './keys/snake-case.ts';
export type { SnakeCase, SnakeKeys } from './keys/snake-keys.ts';
export type { RedactOptions } from './redact/redact-options.ts';
export { ApiResponse, type ReadOptions, type ReceivedResponse } from './response/api-response.ts';
export type { Parse, ParsedFrom, Parser, Parsers } from './response/parse-body.ts';
export type { SchemaIssue, SchemaResult, StandardSchema } from './response/standard-schema.ts';
export { AccessToken, type AccessTokenInit } from './token/access-token.ts';
export type { IdTokenCheck } from './token/check-id-token.ts';
export type { StoredToken } from './token/stored-token.ts';
export type {
  AccessTokenOptions,
  RevokeOptions,
  RevokeTokenOptions,
  TokenMode,
  TokenPlace,
  TokenRequestOptions,
  TokenTypeHint,
} from './token/token-options.ts';
export type { TokenFailure, TokenOutcome, TokenResponse } from './token/token-response.ts';
