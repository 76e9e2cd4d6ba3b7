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

/** The arguments in either form. */
export type AssertionArguments<T extends boolean> =
  | [
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams | undefined,
      options?: TokenRequestOptions<T> | undefined,
    ]
  | [tuple: AssertionTuple, params?: WireParams | undefined, options?: TokenRequestOptions<T> | undefined];

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
    ...args: AssertionArguments<T>
  ): Promise<TokenOutcome<T>> {
    const { assertionRequest } = await import('../on-demand.ts');
    const { params, options } = await assertionRequest(args);
    return await client.getToken<T>(params, options);
  }
  return withoutAuthorizationUrl('assertion', { getToken });
}
