import { ConfigurationError } from '../errors.ts';
import { isJwsAlgorithm, isSymmetric, type JwsAlgorithm, jwsAlgorithms } from '../jwt/algorithms.ts';
import { type KeySource, LocalKeySource, SecretKeySource } from '../jwt/key-sources.ts';
import type { ClientSettings } from '../settings.ts';
import { quote } from '../text.ts';
import type { IdTokenValidatorOptions } from './id-token.ts';
import { remoteKeySource } from './remote-keys.ts';

/**
 * @see OpenID Connect Core §3.1.3.7 (7)
 * https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export function acceptedAlgorithms(
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

export function keySource(options: IdTokenValidatorOptions, algorithms: readonly JwsAlgorithm[]): KeySource {
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
