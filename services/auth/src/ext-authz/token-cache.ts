import { createRecentlyUsed } from '@tollgate/kit/collections';
import { checkJwtTimes, type JwtClaims, type VerifiedJwt, verifyJwt } from '../keys/jwt.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';

/** Verifies access tokens as {@link verifyJwt} does, and the signature of one that comes again only once. */
export interface VerifiedTokens {
  verify(token: string, keys: SigningKeys, nowMs: number): VerifiedJwt;
}

/** Tokens are mostly below 1,000 characters: some 10,000 of them, each a user who is there at the moment. */
const defaultCapacityChars = 8 * 1024 * 1024;

/** Creates {@link VerifiedTokens} that remember nothing yet; `capacityChars` is the length of all tokens together that they may remember. */
export function createVerifiedTokens(options: { readonly capacityChars?: number } = {}): VerifiedTokens {
  const { capacityChars = defaultCapacityChars } = options;
  // By the whole token, which the Map compares to the last character: nothing that only looks alike is taken for it.
  const verified = createRecentlyUsed<JwtClaims>({
    capacity: capacityChars,
    weightOf: (token) => token.length,
  });
  let verifiedBy: SigningKeys['byKid'] | undefined;

  /** A key that is no longer there may have been withdrawn because somebody else knows it. */
  function forgetWithOldKeys({ byKid }: SigningKeys): void {
    if (byKid === verifiedBy) return;
    verifiedBy = byKid;
    verified.clear();
  }

  return {
    verify(token, keys, nowMs) {
      forgetWithOldKeys(keys);
      const claims = verified.get(token);
      if (claims !== undefined) return checkJwtTimes(claims, nowMs) ?? { ok: true, claims };
      const result = verifyJwt(token, keys, nowMs);
      if (result.ok) verified.set(token, result.claims);
      return result;
    },
  };
}
