import type { PasskeysContext } from '../passkeys/context.ts';
import type { PasswordsContext } from '../passwords/passwords.ts';
import type { RecoveryCodeStore } from './recovery-code-store.ts';
import type { FactorStore } from './store.ts';

export type MfaContext = PasskeysContext &
  PasswordsContext & {
    readonly store: { readonly factors: FactorStore; readonly recoveryCodes: RecoveryCodeStore };
  };

/** Lower settings count as five minutes, as in GoTrue: users need time to find their phone. */
const minLifeMs = 300_000;

export function challengeLifeMs({ settings }: MfaContext): number {
  return Math.max(settings.mfaChallengeExpiryMs, minLifeMs);
}

/** Whether a challenge or an unverified factor has expired. */
export function hasExpired(createdAt: Date, lifeMs: number, nowMs: number): boolean {
  return createdAt.getTime() <= getLastExpiredMs(lifeMs, nowMs);
}

/** Creation time of the youngest challenge or unverified factor that has expired. */
export function getLastExpiredMs(lifeMs: number, nowMs: number): number {
  return nowMs - Math.max(lifeMs, minLifeMs);
}
