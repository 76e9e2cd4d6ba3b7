import type { Client } from './client.ts';
import type { BasicEncoding, ClientAuth } from './client-auth.ts';
import type { ClientHooks, HookErrorHandler, WarningEvent } from './hooks.ts';
import type { Parsers } from './http/body.ts';
import type { ParsedFactory, RetryPolicy } from './http/options.ts';
import type { RedactOptions } from './http/redact.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyCase } from './keys.ts';
import type { AccessToken } from './tokens/access-token.ts';
import type { TokenResponse } from './tokens/options.ts';

/** `fetch`, or anything shaped as it: a proxy, a transport with client certificates, a test's. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Where a token request carries its parameters: a form, the query of a GET, or the query of a POST. */
export type TokenMethod = 'post' | 'get' | 'post_query';

/** How arrays are written: `a[]=1&a[]=2` or `a=1&a=2`. `resource` and `audience` always repeat (RFC 8707 §2, RFC 8693 §2.1). */
export type ArrayFormat = 'brackets' | 'repeat';

/** Where debug output goes; one call a line. `console` is one. */
export type Logger = { readonly info: (message: string) => void };

/** Options of a Client. The object is not changed and not kept. */
export type ClientOptions<Throws extends boolean = boolean> = {
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Base URL for relative paths; may hold a path of its own. */
  readonly site?: string;
  /** Default `oauth/authorize`. Without a leading `/` relative to `site` with its path, with one to the host's root; or absolute. */
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
  /** Its origin may be sent access tokens. @see OpenID Connect Core §5.3 */
  readonly userinfoEndpoint?: string;
  /** The authorization server's issuer identifier. @see RFC 8414 §2 */
  readonly issuer?: string;
  /** Where the issuer's keys are, which its ID tokens are checked with. @see RFC 8414 §2 */
  readonly jwksUri?: string;
  /**
   * The algorithm that ID tokens are signed with for this client, as registered at the server. Default `RS256`, or what the server
   * supports if that is not among it. HS256, HS384 and HS512 are checked with the client secret.
   * @see OpenID Connect Dynamic Client Registration §2
   */
  readonly idTokenSignedResponseAlg?: JwsAlgorithm;
  /** The server's `id_token_signing_alg_values_supported`; nothing else is accepted. */
  readonly idTokenSigningAlgValuesSupported?: readonly string[];
  /**
   * The server's `authorization_response_iss_parameter_supported`: callbacks without `iss` are refused then. Default false.
   * @see RFC 9207 §2.4
   */
  readonly authorizationResponseIssParameterSupported?: boolean;
  /** Sent with authorization and code requests; the call's own `redirect_uri` wins. */
  readonly redirectUri?: string;
  /** Default `'client_secret_basic'`; a client without a secret sends only its `client_id`. */
  readonly clientAuth?: ClientAuth;
  /** Default `'rfc6749'`. */
  readonly basicEncoding?: BasicEncoding;
  /** Default `'post'`. */
  readonly tokenMethod?: TokenMethod;
  /** Default the global `fetch`. */
  readonly fetch?: Fetch;
  /** Given to `fetch` with every request, under what the library sets. */
  readonly requestInit?: RequestInit;
  /** Milliseconds until an answer must be complete; 0 means no end. Default 10,000. */
  readonly timeoutMs?: number;
  /** Bytes of a response body that are read before giving up. Default 10 MiB. */
  readonly maxBodyBytes?: number;
  /** Redirects followed before the 3xx itself is returned. Default 5. */
  readonly maxRedirects?: number;
  /** Whether statuses of 400 and above throw. Default true. */
  readonly throwOnError?: Throws;
  /** Default `'snake'`. */
  readonly keyCase?: KeyCase;
  readonly parsedFactory?: ParsedFactory;
  /** Parsers by MIME type, beside and before the built-in ones. */
  readonly parsers?: Parsers;
  /** Default `'brackets'`. */
  readonly arrayFormat?: ArrayFormat;
  /** Where debug output goes. Default `console`. */
  readonly logger?: Logger;
  /** Whether requests and responses are logged, secrets masked. Default: whether the environment's `OAUTH_DEBUG` is `true`. */
  readonly debug?: boolean;
  readonly redact?: RedactOptions;
  /** Told of what is tolerated but odd. Default: nobody. */
  readonly onWarning?: (event: WarningEvent) => void;
  /** Makes the token of a token response, in place of `new AccessToken`. */
  readonly accessTokenFactory?: (client: Client<boolean>, response: TokenResponse) => AccessToken;
  /** Origins that access tokens may be sent to, beside the site's; `'*'` for any. Default: the site's alone. */
  readonly allowedOrigins?: readonly string[];
  /**
   * Whether credentials, metadata and key sets may travel over plain http. Without it they may only to this machine itself:
   * `localhost`, 127.0.0.0/8 and [::1]. Default false.
   */
  readonly allowInsecure?: boolean;
  /** Seconds the server's clock is ahead of ours (negative: behind). Default 0. */
  readonly clockSkew?: number;
  /** Epoch seconds. Default from `Date`. */
  readonly now?: () => number;
  readonly hooks?: ClientHooks;
  /**
   * Takes what a hook, `onWarning` or the logger threw or rejected with, and the name of it. Default: a warning of the process
   * (`console.warn` where there is none) for the first failure of each.
   */
  readonly onHookError?: HookErrorHandler;
  /** Tries failed calls again; see `@tollgate/oauth2-client/retry`. Default: one attempt. */
  readonly retry?: RetryPolicy;
};
