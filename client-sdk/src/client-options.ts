import type { AnyClient } from './client.ts';
import type { BasicEncoding, ClientAuth } from './client-auth/methods.ts';
import type { DocumentCache } from './document-cache.ts';
import type { ClientHooks, HookErrorHandler, WarningEvent } from './hooks.ts';
import type { Parsers } from './http/body.ts';
import type { ParsedFactory, RetryPolicy } from './http/options.ts';
import type { RedactOptions } from './http/redact.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyCase } from './key-case.ts';
import type { AnyAccessToken } from './tokens/access-token.ts';
import type { TokenResponse } from './tokens/options.ts';

/**
 * `fetch`, or a function with its signature: a proxy, a transport with client certificates, a test
 * server.
 */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * Where a token request carries its parameters: in a form, in the query of a GET, or in the query
 * of a POST.
 */
export type TokenMethod = 'post' | 'get' | 'post_query';

/**
 * How arrays are encoded: `a[]=1&a[]=2` or `a=1&a=2`. `resource` and `audience` are always repeated
 * (RFC 8707 §2, RFC 8693 §2.1).
 */
export type ArrayFormat = 'brackets' | 'repeat';

/** The destination of debug output, called once per line. `console` is one. */
export type Logger = { readonly info: (message: string) => void };

/** Options of a Client. The object is copied. */
export type ClientOptions<Throws extends boolean = boolean, Keys extends KeyCase = KeyCase> = {
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Base URL for relative paths; may have a path. */
  readonly site?: string;
  /**
   * Default `oauth/authorize`. Relative to the path of `site`, to its host if it starts with `/`,
   * or absolute.
   */
  readonly authorizationEndpoint?: string;
  /** Default `oauth/token`. */
  readonly tokenEndpoint?: string;
  /** Default `oauth/revoke`. @see RFC 7009 */
  readonly revocationEndpoint?: string;
  /** @see RFC 7662 */
  readonly introspectionEndpoint?: string;
  /** @see RFC 8628 */
  readonly deviceAuthorizationEndpoint?: string;
  /** @see RFC 9126 */
  readonly pushedAuthorizationRequestEndpoint?: string;
  /** Access tokens may be sent to its origin. @see OpenID Connect Core §5.3 */
  readonly userinfoEndpoint?: string;
  /** The authorization server's issuer identifier. @see RFC 8414 §2 */
  readonly issuer?: string;
  /** The URL of the issuer's keys, used to validate ID tokens. @see RFC 8414 §2 */
  readonly jwksUri?: string;
  /** Keeps the issuer's metadata and keys; clients may share one. Default: one for each. */
  readonly cache?: DocumentCache;
  /**
   * The algorithm that ID tokens for this client are signed with, as registered at the server.
   * Default `RS256`, or one that the server supports. HS256, HS384 and HS512 are verified with the
   * client secret.
   * @see OpenID Connect Dynamic Client Registration §2
   */
  readonly idTokenSignedResponseAlg?: JwsAlgorithm;
  /** The server's `id_token_signing_alg_values_supported`; other algorithms are rejected. */
  readonly idTokenSigningAlgValuesSupported?: readonly string[];
  /**
   * The server's `authorization_response_iss_parameter_supported`: callbacks without `iss` are
   * rejected. Default false.
   * @see RFC 9207 §2.4
   */
  readonly authorizationResponseIssParameterSupported?: boolean;
  /**
   * The server's `token_endpoint_auth_methods_supported`. Without `clientAuth`, a method for the
   * secret is chosen from it; a `clientAuth` that is not in it is rejected, except `'none'`,
   * functions and assertions of third parties.
   * @see RFC 8414 §2
   */
  readonly tokenEndpointAuthMethodsSupported?: readonly string[];
  /**
   * The server's `code_challenge_methods_supported`; without `S256`, PKCE is rejected.
   * @see RFC 8414 §2
   */
  readonly codeChallengeMethodsSupported?: readonly string[];
  /**
   * The server's `dpop_signing_alg_values_supported`; a DPoP key with another algorithm is
   * rejected.
   * @see RFC 9449 §5.1
   */
  readonly dpopSigningAlgValuesSupported?: readonly string[];
  /**
   * The server's `require_pushed_authorization_requests`, or that of the client's registration:
   * `startAuthorization` pushes its request, and other authorization URLs are rejected. Default
   * false.
   * @see RFC 9126 §5
   */
  readonly requirePushedAuthorizationRequests?: boolean;
  /** Sent with authorization and code requests. A `redirect_uri` of the call takes precedence. */
  readonly redirectUri?: string;
  /**
   * Default: the first of `'client_secret_basic'`, `'client_secret_post'` and `client_secret_jwt`
   * that the server supports. A client without a secret sends only its `client_id`.
   */
  readonly clientAuth?: ClientAuth;
  /** Default `'rfc6749'`. */
  readonly basicEncoding?: BasicEncoding;
  /** Default `'post'`. */
  readonly tokenMethod?: TokenMethod;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Passed to `fetch` with every request; what the library sets takes precedence. */
  readonly requestInit?: RequestInit;
  /** Milliseconds until a response must be complete; 0 means no limit. Default 10,000. */
  readonly timeoutMs?: number;
  /** Maximum size of a response body in bytes. Default 10 MiB. */
  readonly maxBodyBytes?: number;
  /** Redirects that are followed before the 3xx response is returned. Default 5. */
  readonly maxRedirects?: number;
  /** Whether statuses of 400 and above throw. Default true. */
  readonly throwOnError?: Throws;
  /** Default `'snake'`: `orderId` in a response becomes `order_id`, also in its type. */
  readonly keyCase?: Keys;
  /**
   * Makes `parsed` of the object in a response. If it fails for a token response, a TokenManager
   * stores the tokens of the response, as with `accessTokenFactory`.
   */
  readonly parsedFactory?: ParsedFactory;
  /** Parsers by MIME type. They take precedence over the built-in ones. */
  readonly parsers?: Parsers;
  /** Default `'brackets'`. */
  readonly arrayFormat?: ArrayFormat;
  /** The destination of debug output. Default `console`. */
  readonly logger?: Logger;
  /**
   * Whether requests and responses are logged, with secrets masked. Default: whether the
   * environment variable `OAUTH_DEBUG` is `true`.
   */
  readonly debug?: boolean;
  readonly redact?: RedactOptions;
  /** Called for deviations from the specification that are tolerated. */
  readonly onWarning?: (event: WarningEvent) => void;
  /**
   * Makes the token for a token response, instead of `new AccessToken`. If it throws, the
   * TokenResponseError has the `response`, and a TokenManager stores the tokens of the response.
   */
  readonly accessTokenFactory?: (client: AnyClient, response: TokenResponse) => AnyAccessToken;
  /**
   * Origins, besides the site's, that access tokens may be sent to; `'*'` for any. Default: none.
   */
  readonly allowedOrigins?: readonly string[];
  /**
   * Whether credentials, metadata and key sets may be sent over plain http to hosts other than
   * `localhost`, 127.0.0.0/8 and [::1]. Default false.
   */
  readonly allowInsecure?: boolean;
  /** Seconds by which the server's clock is ahead of ours (negative: behind). Default 0. */
  readonly clockSkew?: number;
  /**
   * The wall clock in epoch seconds. Default from `Date`. Ages are measured by a monotonic clock as
   * well, so that setting this one back prolongs nothing.
   */
  readonly now?: () => number;
  readonly hooks?: ClientHooks;
  /**
   * Called with what a hook, `onWarning` or the logger threw or rejected with, and its name.
   * Default: a process warning (`console.warn` if there is no process) for the first failure of
   * each.
   */
  readonly onHookError?: HookErrorHandler;
  /** Retries failed calls; see `@tollgate/oauth2-client/retry`. Default: one attempt. */
  readonly retry?: RetryPolicy;
};
