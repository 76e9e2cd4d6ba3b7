import { ConfigurationError } from '../../errors/configuration-error.ts';
import { signJwt } from '../../jwt/sign.ts';
import type { TokenRequestOptions } from '../../token/token-options.ts';
import type { WireParams } from '../wire-params.ts';
import type { AssertionArguments, AssertionClaims, AssertionSigning } from './assertion.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A token request with a signed assertion, and its options. */
export type AssertionRequest<T extends boolean> = {
  readonly params: WireParams;
  readonly options: TokenRequestOptions<T> | undefined;
};

/**
 * Signs an assertion and puts it into the parameters of a token request.
 * @throws {ConfigurationError} when algorithm or key are missing, or do not fit each other.
 */
export async function assertionRequest<T extends boolean>(
  args: AssertionArguments<T>,
): Promise<AssertionRequest<T>> {
  const { claims, signing, params, options } = named(args);
  // Callers without types leave it out, or pass what they passed elsewhere.
  if (typeof signing !== 'object' || signing === null || !signing.algorithm || !signing.key) {
    throw new ConfigurationError('the assertion grant signs: give { algorithm, key } beside the claims');
  }
  const { algorithm, key, kid } = signing;
  const assertion = await signJwt(claims, { algorithm, key, keyId: kid });
  return { params: { grant_type: JWT_BEARER, assertion, ...params }, options };
}

type NamedArguments<T extends boolean> = {
  readonly claims: AssertionClaims;
  readonly signing: AssertionSigning | null | undefined;
  readonly params: WireParams | undefined;
  readonly options: TokenRequestOptions<T> | undefined;
};

function named<T extends boolean>(args: AssertionArguments<T>): NamedArguments<T> {
  if (!isTupleForm(args)) return { claims: args[0], signing: args[1], params: args[2], options: args[3] };
  const [[claims, algorithm, key], params, options] = args;
  return { claims, signing: { algorithm, key }, params, options };
}

function isTupleForm<T extends boolean>(
  args: AssertionArguments<T>,
): args is Extract<AssertionArguments<T>, [readonly unknown[], ...unknown[]]> {
  return Array.isArray(args[0]);
}
