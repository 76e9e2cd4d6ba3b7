/**
 * Validation of OpenID Connect ID tokens: signature, claims, nonce.
 *
 * @module id-token
 */

import type { AnyClient } from '../client.ts';
import { ConfigurationError, IdTokenError, JwtError } from '../errors.ts';
import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import type { Jwks } from '../jwt/key-sources.ts';
import { verifyJwt } from '../jwt/verify.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { quote } from '../text.ts';
import { checkIdTokenClaims, type IdTokenClaims, tokenHash } from './claims.ts';
import { acceptedAlgorithms, keySource } from './keys.ts';
import type { RemoteKeySourceOptions } from './remote-keys.ts';

export type { JwsAlgorithm } from '../jwt/algorithms.ts';
export type { Jwk } from '../jwt/import-key.ts';
export type { Jwks } from '../jwt/key-sources.ts';
export type { IdTokenClaims } from './claims.ts';
export type { RemoteKeySourceOptions } from './remote-keys.ts';

/** Default tolerance between the clocks of server and client. */
const DEFAULT_TOLERANCE_SECONDS = 30;

/** The ID tokens to accept, and the keys to verify them with. */
export interface IdTokenValidatorOptions {
  /** The client whose id must be in `aud`; its `fetch`, clock and limits are used. */
  readonly client: AnyClient;
  /**
   * Further clients of the same application, such as its mobile ones, whose ID tokens are accepted.
   * Default: none.
   */
  readonly otherClientIds?: readonly string[];
  /** The URL of the issuer's keys. Default: the client's `jwksUri`. */
  readonly jwksUri?: string | undefined;
  /** The issuer's keys, instead of `jwksUri`. */
  readonly jwks?: Jwks;
  /** Default: the client's `issuer`. */
  readonly issuer?: string;
  /**
   * Accepted `alg` values. Default: the client's `idTokenSignedResponseAlg`, else RS256, else those
   * of the server's metadata. HMAC must be named, and needs `clientSecret`.
   */
  readonly algorithms?: readonly JwsAlgorithm[];
  /** The secret that HS256, HS384 and HS512 are verified with. */
  readonly clientSecret?: string;
  /** Tolerance between the clocks in seconds. Default 30. */
  readonly toleranceSeconds?: number;
  /** How the keys at `jwksUri` are cached. */
  readonly keySet?: RemoteKeySourceOptions;
}

const idTokenValidatorOptionNames: OptionNames<IdTokenValidatorOptions> = {
  ...{ client: 1, otherClientIds: 1, jwksUri: 1, jwks: 1, issuer: 1 },
  ...{ algorithms: 1, clientSecret: 1, toleranceSeconds: 1, keySet: 1 },
};

/** The expected values of an ID token. */
export interface ExpectedIdToken {
  /**
   * The nonce that was sent, if there was one. With `false` it is not compared, as after a refresh.
   */
  readonly nonce?: string | false;
  /** `sub` of the first ID token; a refresh must not change it. */
  readonly subject?: string;
  /** Maximum of seconds since the user authenticated; requires `auth_time`. */
  readonly maxAgeSeconds?: number;
  /** The access token of the same response, compared with `at_hash` if the ID token has one. */
  readonly accessToken?: string;
  /** The code that was exchanged, compared with `c_hash` if the ID token has one. */
  readonly code?: string;
}

/**
 * Validates an ID token and returns its claims.
 *
 * @throws {JwtError} if its signature is not valid
 * @throws {IdTokenError} if a claim is not the expected one
 * @throws {OAuthClientError} if the issuer's keys cannot be loaded
 */
export type IdTokenValidator = (idToken: string, expected?: ExpectedIdToken) => Promise<IdTokenClaims>;

/**
 * Makes a validator for ID tokens: signature, issuer, audience, times, nonce and hashes. It caches
 * the issuer's keys and follows their rotation, so make it once. Not needed for a client with
 * `jwksUri` and `issuer`, as from discovery: it validates the ID tokens of its token responses.
 *
 * @example
 * ```ts
 * const validateIdToken = createIdTokenValidator({ client, jwksUri: metadata.jwks_uri }); const {
 * sub } = await validateIdToken(idToken, { nonce });
 * ```
 * @throws {ConfigurationError} if issuer, client id or keys are missing
 * @see OpenID Connect Core §3.1.3.7 https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export function createIdTokenValidator(options: IdTokenValidatorOptions): IdTokenValidator {
  assertKnownOptions('createIdTokenValidator', options, idTokenValidatorOptionNames);
  const { client, otherClientIds, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = options;
  const issuer = options.issuer ?? client.settings.issuer;
  const clientId = client.settings.clientId;
  if (issuer === undefined)
    throw new ConfigurationError('validating ID tokens needs the issuer: set `issuer` here or on the client');
  if (clientId === undefined)
    throw new ConfigurationError('validating ID tokens needs the client id: set `clientId` on the client');
  const algorithms = acceptedAlgorithms(options.algorithms, client.settings);
  const keys = keySource(options, algorithms);

  return async (idToken, expected = {}) => {
    const { header, claims } = await verifyJwt(idToken, { keys, algorithms });
    assertType(header.typ);
    const { now, clockSkew } = client.settings;
    const { nonce, subject, maxAgeSeconds, accessToken, code } = expected;
    const checked = checkIdTokenClaims(claims, {
      ...{ issuer, clientId, otherClientIds, toleranceSeconds, nonce, subject, maxAgeSeconds },
      now: now() + clockSkew,
    });
    // verifyJwt has accepted this algorithm.
    const algorithm = header.alg as JwsAlgorithm;
    await checkHash('at_hash', checked.at_hash, accessToken, algorithm);
    await checkHash('c_hash', checked.c_hash, code, algorithm);
    return checked;
  };
}

/**
 * Access tokens and logout tokens of the same issuer may have the same keys and claims. They have a
 * type of their own, an ID token has none or `JWT`.
 * @see RFC 8725 §3.11 https://www.rfc-editor.org/rfc/rfc8725#section-3.11
 */
function assertType(typ: unknown): void {
  if (typ === undefined || (typeof typ === 'string' && /^(?:application\/)?jwt$/i.test(typ))) return;
  throw new JwtError('type', `the JWT is of type ${quote(typ)}, which is not that of an ID token`);
}

async function checkHash(
  claim: 'at_hash' | 'c_hash',
  hash: unknown,
  value: string | undefined,
  algorithm: JwsAlgorithm,
): Promise<void> {
  if (hash === undefined || value === undefined) return;
  if (hash === (await tokenHash(value, algorithm))) return;
  const what = claim === 'at_hash' ? 'access token' : 'code';
  throw new IdTokenError(claim, `\`${claim}\` is not the hash of its ${what}`);
}
