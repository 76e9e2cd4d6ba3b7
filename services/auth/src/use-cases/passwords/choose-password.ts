import type { RequestFacts } from '../../domain/request-facts.ts';
import type { Session } from '../../domain/session.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { FoundOneTimeToken } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { GuessLimiter, type GuessLimiterDeps } from '../guessing/guess-limiter.ts';
import { type CheckNonceDeps, createCheckNonce } from '../reauthentication/check-nonce.ts';

/** A new password, and what proves that its owner asks for it. */
export interface NewPassword {
  /** Has been checked against the policy. */
  readonly password: string;
  readonly currentPassword: string | undefined;
  /** Empty for none. */
  readonly nonce: string;
}

/** A password that may take the place of the old one. */
export interface ChosenPassword {
  readonly hash: string;
  /** The token of the nonce, to be spent with the change; absent when none was asked for. */
  readonly nonceToken: FoundOneTimeToken | undefined;
}

/**
 * Makes sure that a user may choose a new password, and hashes it.
 *
 * @throws AppError `reauthentication_needed`, `reauthentication_not_valid`, `current_password_required`, `current_password_invalid`,
 * `same_password`, `over_request_rate_limit`.
 */
export type ChoosePassword = (
  owner: { readonly user: User; readonly session: Session | undefined },
  wanted: NewPassword,
  facts: RequestFacts,
) => Promise<ChosenPassword>;

/** What that takes. */
export type ChoosePasswordDeps = CheckNonceDeps &
  GuessLimiterDeps &
  DepsWith<
    'store' | 'passwords',
    'updatePasswordRequireReauthentication' | 'updatePasswordRequireCurrentPassword'
  >;

/** A session that is younger says by itself that its user has just been there. */
const recentMs = 24 * 3_600_000;

/** Creates {@link ChoosePassword}. */
export function createChoosePassword(deps: ChoosePasswordDeps): ChoosePassword {
  const { passwords, settings } = deps;
  const checkNonce = createCheckNonce(deps);
  const limiter = new GuessLimiter(deps);

  function needsNonce(session: Session | undefined, nowMs: number): boolean {
    if (!settings.updatePasswordRequireReauthentication) return false;
    return session === undefined || session.createdAt.getTime() + recentMs < nowMs;
  }

  async function checkCurrent(
    { id, email, phone }: User,
    { hash, current = '' }: { readonly hash: string; readonly current: string | undefined },
    facts: RequestFacts,
  ): Promise<void> {
    if (current === '') throw errors.current_password_required();
    const guess = { kind: 'password', contact: email || phone || id } as const;
    const matches = await limiter.guess(guess, facts, async () =>
      (await passwords.verify(current, hash, id)) ? { matches: true } : undefined,
    );
    if (matches === undefined) throw errors.current_password_invalid();
  }

  return async ({ user, session }, { password, currentPassword, nonce }, facts) => {
    const asksNonce = needsNonce(session, facts.nowMs);
    if (asksNonce && nonce === '') throw errors.reauthentication_needed();
    const nonceToken = asksNonce ? await checkNonce(user, nonce, facts) : undefined;
    const { passwordHash: old } = user;
    if (old !== undefined) {
      // Whoever has come by a recovery mail does not know it.
      const recovers = session?.methods.some(({ method }) => method === 'recovery') ?? false;
      if (settings.updatePasswordRequireCurrentPassword && !recovers)
        await checkCurrent(user, { hash: old, current: currentPassword }, facts);
      if (await passwords.verify(password, old, user.id)) throw errors.same_password();
    }
    return { hash: await passwords.hash(password), nonceToken };
  };
}
