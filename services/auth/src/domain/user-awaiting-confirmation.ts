import type { User } from './user.ts';

/** What is known of a user who has just signed up. */
export type SignedUpUser = Pick<
  User,
  'id' | 'aud' | 'role' | 'email' | 'phone' | 'appMetadata' | 'userMetadata' | 'identities'
>;

/** Somebody who has just signed up and been sent a confirmation: what callers see, whether or not there is such a user. */
export function userAwaitingConfirmation(known: SignedUpUser, at: Date): User {
  return {
    ...known,
    passwordHash: undefined,
    emailConfirmedAt: undefined,
    phoneConfirmedAt: undefined,
    confirmedAt: undefined,
    invitedAt: undefined,
    confirmationSentAt: at,
    recoverySentAt: undefined,
    newEmail: '',
    emailChangeSentAt: undefined,
    emailChangeConfirmStatus: 0,
    newPhone: '',
    phoneChangeSentAt: undefined,
    reauthenticationSentAt: undefined,
    lastSignInAt: undefined,
    isAnonymous: false,
    isSsoUser: false,
    bannedUntil: undefined,
    deletedAt: undefined,
    createdAt: at,
    updatedAt: at,
    factors: [],
  };
}
