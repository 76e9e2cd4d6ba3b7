import { RecentlyUsed } from '@tollgate/kit/collections';
import { checkJwtTimes, type JwtClaims, type VerifiedJwt, verifyJwt } from '../keys/jwt.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';

/** Tokens usually have fewer than 1,000 characters, so this holds about 10,000. */
const defaultCapacityChars = 8 * 1024 * 1024;

/**
 * Verifies access tokens as {@link verifyJwt} does, and the signature of a repeated token only
 * once.
 */
export class TokenCache {
  readonly #claims;
  #verifiedBy: SigningKeys['byKid'] | undefined;

  /** `capacityChars` limits the total length of the cached tokens. */
  constructor({ capacityChars = defaultCapacityChars }: { readonly capacityChars?: number } = {}) {
    // The key is the whole token: a Map compares it up to the last character.
    this.#claims = new RecentlyUsed<JwtClaims>({
      capacity: capacityChars,
      weigh: (token) => token.length,
    });
  }

  verify(token: string, keys: SigningKeys, nowMs: number): VerifiedJwt {
    this.#clearAfterRotation(keys);
    const claims = this.#claims.get(token);
    if (claims !== undefined) return checkJwtTimes(claims, nowMs) ?? { ok: true, claims };
    const result = verifyJwt(token, keys, nowMs);
    if (result.ok) this.#claims.set(token, result.claims);
    return result;
  }

  /** A key may have been removed because it was compromised. */
  #clearAfterRotation({ byKid }: SigningKeys): void {
    if (byKid === this.#verifiedBy) return;
    this.#verifiedBy = byKid;
    this.#claims.clear();
  }
}
