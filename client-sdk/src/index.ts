/**
 * OAuth 2.0 client: tokens by every grant, APIs called with them. Protocols around it are in
 * subpaths.
 *
 * @module
 */

export type {
  AuthorizationFlow,
  AuthorizationTransaction,
  CompleteAuthorizationOptions,
  StartAuthorizationOptions,
  StartedAuthorization,
} from './authorization.ts';
export { type AnyClient, Client } from './client.ts';
export type {
  BasicEncoding,
  ClientAssertionAuth,
  ClientAuth,
  ClientAuthFunction,
  ClientAuthName,
  ClientSecretJwtAuth,
  MutableTokenRequest,
  PrivateKeyJwtAuth,
} from './client-auth/methods.ts';
export type { ArrayFormat, ClientOptions, Fetch, Logger, TokenMethod } from './client-options.ts';
export type { OAuthClientErrorKind } from './errors.ts';
export {
  AbortError,
  type AuthChallenge,
  AuthorizationResponseError,
  ConfigurationError,
  ConnectionError,
  DiscoveryError,
  IdTokenError,
  IssuerMismatchError,
  JwtError,
  type JwtErrorReason,
  OAuthClientError,
  type OAuthClientErrorOptions,
  OAuthError,
  type OAuthErrorFields,
  ParseError,
  ProtectedResourceError,
  RedirectError,
  RevocationError,
  StateMismatchError,
  StoreError,
  TimeoutError,
  TokenResponseError,
  TokenUnavailableError,
  TransportError,
} from './errors.ts';
export type {
  ClientHooks,
  ErrorEvent,
  HookErrorHandler,
  Operation,
  RequestContext,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
  WarningCode,
  WarningEvent,
} from './hooks.ts';
export type { Parse, ParsedFrom, Parser, Parsers } from './http/body.ts';
export type {
  HeadersInput,
  OutgoingRequest,
  ParsedFactory,
  RequestBody,
  RequestOptions,
  ResponseOptions,
  RetryPolicy,
  UnconvertedOptions,
  WireParams,
  WireValue,
} from './http/options.ts';
export type { RedactOptions } from './http/redact.ts';
export type { EndpointRequest } from './http/request.ts';
export type { SchemaIssue, SchemaResult, StandardSchema } from './http/response.ts';
export { ApiResponse, type ReadOptions, type ReceivedResponse } from './http/response.ts';
export type { IdTokenClaims } from './id-token/claims.ts';
export type { ExpectedIdToken, IdTokenValidator } from './id-token/id-token.ts';
export type { JwsAlgorithm } from './jwt/algorithms.ts';
export type { SignFunction } from './jwt/sign.ts';
export type { JsonObject, JsonValue, KeyCase, ParsedKeys, SnakeCase, SnakeKeys } from './key-case.ts';
export type { ClientSettings } from './settings.ts';
export type {
  AssertionClaims,
  AssertionSigning,
  AssertionStrategy,
  AssertionTuple,
  AuthCodeStrategy,
  ClientCredentialsStrategy,
  ImplicitStrategy,
  PasswordStrategy,
} from './strategies.ts';
export { AccessToken, type AccessTokenInit, type AnyAccessToken } from './tokens/access-token.ts';
export type { ApiCalls } from './tokens/api-calls.ts';
export type { IdTokenCheck } from './tokens/id-token-check.ts';
export type {
  AccessTokenOptions,
  RevokeOptions,
  RevokeTokenOptions,
  TokenFailure,
  TokenMode,
  TokenOutcome,
  TokenPlace,
  TokenRequestOptions,
  TokenResponse,
  TokenTypeHint,
} from './tokens/options.ts';
export type { StoredToken } from './tokens/stored-token.ts';
