import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import type { KeyInput } from '../jwt/import-key.ts';

/** A request to an endpoint of the authorization server, before it is sent; client authentication writes into it. */
export type MutableTokenRequest = {
  url: string;
  method: string;
  readonly headers: Headers;
  /** The parameters, wherever they will travel (form, JSON or query). */
  readonly body: URLSearchParams;
};

/** Signs an assertion with the client's private key. @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
export type PrivateKeyJwtAuth = {
  readonly method: 'private_key_jwt';
  readonly key: KeyInput;
  /** JWS algorithm, such as `RS256`, `PS256`, `ES256` or `EdDSA`. */
  readonly algorithm: JwsAlgorithm;
  /** The header's `kid`. */
  readonly keyId?: string;
  /** The claim `aud`. Default: the issuer when known, else the token endpoint's URL. */
  readonly audience?: string | readonly string[];
  /** Seconds from now to the claim `exp`. Default 60. */
  readonly lifetime?: number;
  /** Changes header and claims before they are signed. */
  readonly modify?: (header: Record<string, unknown>, claims: Record<string, unknown>) => void;
};

/** Signs an assertion with the client secret. @see OpenID Connect Core §9 https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication */
export type ClientSecretJwtAuth = {
  readonly method: 'client_secret_jwt';
  /** Default HS256. */
  readonly algorithm?: 'HS256' | 'HS384' | 'HS512';
  /** The claim `aud`. Default: the issuer when known, else the token endpoint's URL. */
  readonly audience?: string | readonly string[];
  /** Seconds from now to the claim `exp`. Default 60. */
  readonly lifetime?: number;
};

/** Sends an assertion someone else signed: Kubernetes, SPIFFE, a cloud's workload identity. Asked for again for every request. */
export type ClientAssertionAuth = {
  readonly method: 'client_assertion';
  readonly assertion: () => string | Promise<string>;
  /** Default `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`. */
  readonly type?: string;
};

/** Writes the client's credentials into a request by hand. */
export type ClientAuthFunction = (request: MutableTokenRequest) => void | Promise<void>;

/** The methods that need no more than their name. */
export type ClientAuthName = 'client_secret_basic' | 'client_secret_post' | 'tls_client_auth' | 'none';

/**
 * How the client proves who it is at the authorization server's endpoints.
 * @see RFC 6749 §2.3 https://www.rfc-editor.org/rfc/rfc6749#section-2.3
 */
export type ClientAuth =
  | ClientAuthName
  | PrivateKeyJwtAuth
  | ClientSecretJwtAuth
  | ClientAssertionAuth
  | ClientAuthFunction;

/** What client authentication knows of the client. */
export type ClientAuthContext = {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly basicEncoding: BasicEncoding;
  readonly issuer: string | undefined;
  /** The absolute URL of the token endpoint. */
  readonly tokenEndpoint: string;
  /** Epoch seconds. */
  readonly now: () => number;
};

/**
 * How id and secret become Basic credentials: form-encoded as RFC 6749 §2.3.1 says, or raw as many servers expect.
 * They differ only for characters outside `[A-Za-z0-9*._-]`.
 */
export type BasicEncoding = 'rfc6749' | 'raw';
