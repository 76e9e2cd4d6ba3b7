import { auditEntry } from '../../domain/audit-entry.ts';
import { expiryOf } from '../../domain/factor.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { ownFactor } from './own-factor.ts';

/** A challenge that waits for its code. */
export interface IssuedChallenge {
  readonly id: string;
  readonly type: 'totp';
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

/** Begins the verification of a factor. */
export type ChallengeFactor = (
  of: { readonly user: User; readonly factorId: string },
  facts: RequestFacts,
) => Promise<IssuedChallenge>;

/** What that takes. */
export type ChallengeFactorDeps = DepsWith<
  'store' | 'random',
  'mfaTotpVerifyEnabled' | 'mfaChallengeExpiryMs'
>;

/** Creates {@link ChallengeFactor}. */
export function createChallengeFactor({ store, random, settings }: ChallengeFactorDeps): ChallengeFactor {
  return async ({ user, factorId }, facts) => {
    const factor = ownFactor(user, factorId);
    if (factor.type !== 'totp' || !settings.mfaTotpVerifyEnabled) throw errors.mfa_totp_verify_not_enabled();
    const id = random.uuid();
    const traits = { factor_id: factor.id, factor_status: factor.status };
    await store.factors.challenge(
      { id, factorId: factor.id, ip: facts.clientAddress, at: new Date(facts.nowMs) },
      auditEntry(user, 'challenge_created', { facts, traits }),
    );
    const expiresAt = Math.floor(expiryOf(settings.mfaChallengeExpiryMs, facts.nowMs) / 1000);
    return { id, type: factor.type, expiresAt };
  };
}
