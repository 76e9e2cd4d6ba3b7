import { ConfigurationError } from '../../errors/configuration-error.ts';
import type { JwsAlgorithm } from '../../jwt/algorithms.ts';
import type { KeyInput } from '../../jwt/import-key.ts';
import type { TokenRequestOptions } from '../../token/token-options.ts';
import type { TokenOutcome } from '../../token/token-response.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';
import { withoutAuthorizationUrl } from './without-authorization-url.ts';

/** The claims of an assertion; they are sent as they are. `exp` is in epoch seconds. */
export type AssertionClaims = {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | readonly string[];
  readonly exp?: number;
  readonly [claim: string]: unknown;
};

/** How an assertion is signed. */
export type AssertionSigning = {
  readonly algorithm: JwsAlgorithm;
  readonly key: KeyInput;
  readonly kid?: string;
};

/** The three together, as callers of the library this one follows know them. */
export type AssertionTuple = readonly [claims: AssertionClaims, algorithm: JwsAlgorithm, key: KeyInput];

/** The JWT bearer grant. */
export type AssertionStrategy<Throws extends boolean = boolean> = {
  /** Signs the claims and exchanges the assertion for a token. */
  readonly getToken: {
    <T extends boolean = Throws>(
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T>>;
    <T extends boolean = Throws>(
      tuple: AssertionTuple,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T>>;
  };
};

/** Makes the JWT bearer grant of a client. @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1 */
export function assertionStrategy<Throws extends boolean>(client: Client<Throws>): AssertionStrategy<Throws> {
  async function getToken<T extends boolean = Throws>(
    first: AssertionClaims | AssertionTuple,
    second?: AssertionSigning | WireParams,
    third?: WireParams | TokenRequestOptions<T>,
    fourth?: TokenRequestOptions<T>,
  ): Promise<TokenOutcome<T>> {
    // The overloads say what stands where.
    const call = isTuple(first)
      ? { claims: first[0], signing: { algorithm: first[1], key: first[2] }, params: second, options: third }
      : { claims: first, signing: second, params: third, options: fourth };
    const assertion = await sign(call.claims, call.signing as AssertionSigning | undefined);
    const params = { grant_type: JWT_BEARER, assertion, ...(call.params as WireParams | undefined) };
    return await client.getToken<T>(params, call.options as TokenRequestOptions<T> | undefined);
  }
  return withoutAuthorizationUrl('assertion', { getToken });
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

function isTuple(first: AssertionClaims | AssertionTuple): first is AssertionTuple {
  return Array.isArray(first);
}

async function sign(claims: AssertionClaims, signing: AssertionSigning | undefined): Promise<string> {
  if (typeof signing !== 'object' || signing === null || !signing.algorithm || !signing.key) {
    throw new ConfigurationError('the assertion grant signs: give { algorithm, key } beside the claims');
  }
  const { algorithm, key, kid } = signing;
  const { signJwt } = await import('../../jwt/sign.ts');
  return await signJwt(claims, { algorithm, key, keyId: kid });
}
