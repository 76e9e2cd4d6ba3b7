/**
 * Validation of OpenID Connect ID tokens: signature, claims, nonce.
 *
 * @module
 */

import type { Client } from './client.ts';
import { ConfigurationError, IdTokenError, JwtError } from './errors.ts';
import { checkIdTokenClaims, type IdTokenClaims, tokenHash } from './id-token-claims.ts';
import { isJwsAlgorithm, isSymmetric, type JwsAlgorithm, jwsAlgorithms } from './jwt/algorithms.ts';
import type { Jwks, KeySource } from './jwt/key-sources.ts';
import { LocalKeySource, SecretKeySource } from './jwt/key-sources.ts';
import { type RemoteKeySourceOptions, remoteKeySource } from './jwt/remote-keys.ts';
import { verifyJwt } from './jwt/verify.ts';
import type { ClientSettings } from './settings.ts';
import { quote } from './text.ts';

export type { IdTokenClaims } from './id-token-claims.ts';
export type { JwsAlgorithm } from './jwt/algorithms.ts';
export type { Jwk } from './jwt/import-key.ts';
export type { Jwks } from './jwt/key-sources.ts';
export type { RemoteKeySourceOptions } from './jwt/remote-keys.ts';

/** Seconds by which server and client clocks may differ, unless the options say otherwise. */
const DEFAULT_TOLERANCE_SECONDS = 30;

/** Whose ID tokens are accepted, and how their signatures are checked. */
export interface IdTokenValidatorOptions {
  /** The client whose id must be in `aud`; its `fetch`, clock and limits are used. */
  readonly client: Client<boolean>;
  /** Where the issuer's keys are: `jwks_uri` of its metadata. Default: the client's `jwksUri`. */
  readonly jwksUri?: string | undefined;
  /** The issuer's keys themselves, in place of `jwksUri`. */
  readonly jwks?: Jwks;
  /** Default: the client's `issuer`. */
  readonly issuer?: string;
  /**
   * Accepted `alg` values. Default: the client's `idTokenSignedResponseAlg`, else RS256, else what the server's metadata say it
   * signs with. HMAC must be named, and then needs `clientSecret`.
   */
  readonly algorithms?: readonly JwsAlgorithm[];
  /** The secret that HS256, HS384 and HS512 are checked with. */
  readonly clientSecret?: string;
  /** Seconds by which the clocks may differ. Default 30. */
  readonly toleranceSeconds?: number;
  /** How the key set at `jwksUri` is kept. */
  readonly keySet?: RemoteKeySourceOptions;
}

/** What one ID token is compared with. */
export interface ExpectedIdToken {
  /** The nonce that was sent; leave it out when none was. `false` does not compare it, as after a refresh. */
  readonly nonce?: string | false;
  /** `sub` of the ID token that came first; a refresh must not change it. */
  readonly subject?: string;
  /** Seconds since the user authenticated, at most; makes `auth_time` required. */
  readonly maxAgeSeconds?: number;
  /** The access token that came with it; compared with `at_hash` when the ID token has one. */
  readonly accessToken?: string;
  /** The code it was got with; compared with `c_hash` when the ID token has one. */
  readonly code?: string;
}

/**
 * Checks an ID token and gives its claims.
 *
 * @throws {JwtError} when its signature cannot be trusted
 * @throws {IdTokenError} when a claim is not the one expected
 * @throws {OAuthClientError} when the issuer's keys cannot be had
 */
export type IdTokenValidator = (idToken: string, expected?: ExpectedIdToken) => Promise<IdTokenClaims>;

/**
 * Makes a validator of ID tokens: signature by the issuer's keys, which it follows as they rotate, then issuer,
 * audience, times, nonce and hashes. Make it once and keep it: it holds the keys. A client whose `jwksUri` and `issuer` are
 * set, as by discovery, needs none: it validates the ID tokens of its token responses itself.
 *
 * @example
 * ```ts
 * const validateIdToken = createIdTokenValidator({ client, jwksUri: metadata.jwks_uri });
 * const { sub } = await validateIdToken(idToken, { nonce });
 * ```
 * @throws {ConfigurationError} when the options leave open whose tokens they are or how to check them
 * @see OpenID Connect Core §3.1.3.7 https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export function createIdTokenValidator(options: IdTokenValidatorOptions): IdTokenValidator {
  const { client, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = options;
  const issuer = options.issuer ?? client.settings.issuer;
  const clientId = client.settings.clientId;
  if (issuer === undefined)
    throw new ConfigurationError('ID tokens name their issuer: set `issuer` here or on the client');
  if (clientId === undefined)
    throw new ConfigurationError('ID tokens name their client: set `clientId` on the client');
  const algorithms = acceptedAlgorithms(options.algorithms, client.settings);
  const keys = keySource(options, algorithms);

  return async (idToken, expected = {}) => {
    const { header, claims } = await verifyJwt(idToken, { keys, algorithms });
    assertType(header.typ);
    const { now, clockSkew } = client.settings;
    const { nonce, subject, maxAgeSeconds, accessToken, code } = expected;
    const checked = checkIdTokenClaims(claims, {
      ...{ issuer, clientId, toleranceSeconds, nonce, subject, maxAgeSeconds },
      now: now() + clockSkew,
    });
    // verifyJwt accepted this algorithm, so it is one of ours.
    const algorithm = header.alg as JwsAlgorithm;
    await checkHash('at_hash', checked.at_hash, accessToken, algorithm);
    await checkHash('c_hash', checked.c_hash, code, algorithm);
    return checked;
  };
}

/**
 * An access token or a logout token of the same issuer for the same client has the same keys, and may have the same claims: its
 * type tells it from an ID token, which has none or `JWT`.
 * @see RFC 8725 §3.11 https://www.rfc-editor.org/rfc/rfc8725#section-3.11
 */
function assertType(typ: unknown): void {
  if (typ === undefined || (typeof typ === 'string' && /^(?:application\/)?jwt$/i.test(typ))) return;
  throw new JwtError('type', `the JWT is of type ${quote(typ)}, which is not that of an ID token`);
}

/** @see OpenID Connect Core §3.1.3.7 (7) https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation */
function acceptedAlgorithms(
  given: readonly JwsAlgorithm[] | undefined,
  { idTokenSignedResponseAlg: registered, idTokenSigningAlgValuesSupported: supported }: ClientSettings,
): readonly JwsAlgorithm[] {
  const known = Object.keys(jwsAlgorithms).filter(isJwsAlgorithm);
  if (given !== undefined) {
    if (given.length > 0 && given.every(isJwsAlgorithm)) return [...given];
    throw new ConfigurationError(`algorithms must name some of ${known.join(', ')}`);
  }
  const isOffered = (algorithm: JwsAlgorithm) => supported?.includes(algorithm) ?? true;
  const expected = registered ?? 'RS256';
  if (isOffered(expected)) return [expected];
  const offered = known.filter((algorithm) => isOffered(algorithm) && !isSymmetric(algorithm));
  if (registered === undefined && offered.length > 0) return offered;
  throw new ConfigurationError(
    `the server signs ID tokens with ${quote(supported)}, not with ${expected}; set \`idTokenSignedResponseAlg\` to what the client is registered for`,
  );
}

function keySource(options: IdTokenValidatorOptions, algorithms: readonly JwsAlgorithm[]): KeySource {
  const { jwks, clientSecret, client, keySet } = options;
  const jwksUri = options.jwksUri ?? client.settings.jwksUri;
  const symmetric = algorithms.filter(isSymmetric);
  if (
    symmetric.length === algorithms.length ||
    (symmetric.length > 0 && jwks === undefined && jwksUri === undefined)
  ) {
    if (!clientSecret)
      throw new ConfigurationError(`${symmetric.join(', ')} is checked with \`clientSecret\`: set it`);
    return new SecretKeySource(clientSecret);
  }
  if (symmetric.length > 0) {
    throw new ConfigurationError(
      'algorithms mixes HMAC with signatures by key pairs: an issuer uses one or the other',
    );
  }
  if (jwks !== undefined) return new LocalKeySource(jwks);
  if (jwksUri !== undefined) return remoteKeySource(client.settings, jwksUri, keySet);
  throw new ConfigurationError("the issuer's keys are needed: set `jwksUri` (from its metadata) or `jwks`");
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
  throw new IdTokenError(claim, `\`${claim}\` is not the hash of the ${what} it came with`);
}
