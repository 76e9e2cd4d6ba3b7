import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Client } from '@tollgate/oauth2-client';
import {
  createIdTokenValidator,
  type ExpectedIdToken,
  type IdTokenClaims,
  type IdTokenValidator,
} from '@tollgate/oauth2-client/id-token';
import { toObject } from '../outbound/post-form.ts';
import { type IdTokenRules, ProviderError } from './provider.ts';

/** Azure has an issuer per tenant. Each validator caches the keys. */
const maxIssuers = 100;

/** Validates ID tokens of a provider that has several issuers. */
export class IdTokenVerifier {
  readonly #client: Client<true, 'preserve'>;
  readonly #rules: IdTokenRules;
  readonly #baseUrl: string;
  readonly #otherClientIds: readonly string[];
  readonly #validators = new RecentlyUsed<IdTokenValidator>({ capacity: maxIssuers });

  /** @param options.otherClientIds accepted besides that of the client */
  constructor(
    client: Client<true, 'preserve'>,
    rules: IdTokenRules,
    options: { readonly baseUrl: string; readonly otherClientIds?: readonly string[] },
  ) {
    this.#client = client;
    this.#rules = rules;
    this.#baseUrl = options.baseUrl;
    this.#otherClientIds = options.otherClientIds ?? [];
  }

  /** @throws ProviderError for another issuer, and the errors of the validator */
  async verify(idToken: string, expected: ExpectedIdToken): Promise<IdTokenClaims> {
    const claims = readUnverified(idToken);
    const issuer = this.#rules.issuers(claims, this.#baseUrl).find((accepted) => accepted === claims.iss);
    if (issuer === undefined) throw new ProviderError('the ID token is of another issuer');
    return await this.#validator(issuer)(idToken, expected);
  }

  #validator(issuer: string): IdTokenValidator {
    const known = this.#validators.get(issuer);
    if (known !== undefined) return known;
    const jwksUri = this.#rules.keys(this.#baseUrl);
    const validator = createIdTokenValidator({
      ...{ client: this.#client, issuer, jwksUri, otherClientIds: this.#otherClientIds },
    });
    this.#validators.set(issuer, validator);
    return validator;
  }
}

/** The claims before validation, to choose the issuer; empty for a malformed token. */
function readUnverified(idToken: string): Readonly<Record<string, unknown>> {
  const [, payload = ''] = idToken.split('.');
  try {
    return toObject(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
  } catch {
    return {};
  }
}
