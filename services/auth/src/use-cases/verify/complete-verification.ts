import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { Store } from '../../ports/store.ts';
import type { DepsWith } from '../../services.ts';
import { createChangeContact } from '../users/change-contact.ts';
import { confirmContact } from './confirm-contact.ts';
import type { FoundToken } from './find-token.ts';
import { verifications } from './verification.ts';

/** The user as changed, or a change of email that the other address has yet to confirm. */
export type Completed =
  | { readonly kind: 'user'; readonly user: User }
  | { readonly kind: 'other-address-to-confirm' };

/**
 * Spends a token and does what it is for, within a transaction of the caller. Of several that present it at once one gets through, the
 * others get `otp_expired`.
 */
export type CompleteVerification = (
  within: Store,
  found: FoundToken,
  more: { readonly passwordHash: string | undefined; readonly facts: RequestFacts },
) => Promise<Completed>;

/** What that takes. */
export type CompleteVerificationDeps = DepsWith<
  never,
  'mailerSecureEmailChangeEnabled' | 'mailerAutoconfirm'
>;

/** Creates {@link CompleteVerification}. */
export function createCompleteVerification({ settings }: CompleteVerificationDeps): CompleteVerification {
  /** Is this the second of two addresses, or is one enough? */
  async function isLastAddress(within: Store, { email, id }: User, at: Date): Promise<boolean> {
    const needsBoth = settings.mailerSecureEmailChangeEnabled && !settings.mailerAutoconfirm && email !== '';
    return !needsBoth || (await within.users.countEmailConfirmation(id, at)) > 1;
  }

  async function complete(
    within: Store,
    found: FoundToken,
    passwordHash: string | undefined,
    facts: RequestFacts,
  ) {
    const { type, user } = found;
    if (type === 'email_change') {
      if (!(await isLastAddress(within, user, new Date(facts.nowMs)))) return undefined;
      return createChangeContact({ store: within })(user, { kind: 'email', email: user.newEmail }, facts);
    }
    if (type === 'phone_change')
      return createChangeContact({ store: within })(user, { kind: 'phone', phone: user.newPhone }, facts);
    const { contact } = verifications[type];
    const isConfirmed = (contact === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
    if (isConfirmed && passwordHash === undefined) return user;
    const action = user.invitedAt === undefined ? 'user_signedup' : 'invite_accepted';
    return confirmContact(
      within,
      user,
      { contact, action, passwordHash: passwordHash ?? lost(found) },
      facts,
    );
  }

  return async (within, found, { passwordHash, facts }) => {
    if (!(await within.oneTimeTokens.spend(found.token))) throw errors.otp_expired();
    const user = await complete(within, found, passwordHash, facts);
    return user === undefined ? { kind: 'other-address-to-confirm' } : { kind: 'user', user };
  };
}

/**
 * Takes away the password of a user whom nobody has confirmed and who comes by another link than that of the sign-up: somebody else
 * may have chosen it, waiting for the owner of the address to confirm.
 */
function lost({ token, user }: FoundToken): null | undefined {
  return token.type === 'recovery_token' && user.confirmedAt === undefined ? null : undefined;
}
