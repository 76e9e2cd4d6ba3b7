import type { RequestMetadata } from '../http/request-metadata.ts';
import type { NewUser } from '../users/new-user.ts';
import type { User } from '../users/user.ts';
import type { SignUpContext } from './sign-up.ts';

type ResponseContext = SignUpContext;

/** The user in the response to a sign-up that awaits confirmation. */
export function toPendingUser(
  context: ResponseContext,
  { user, created, newUser }: { readonly user: User; readonly created: boolean; readonly newUser: NewUser },
  metadata: RequestMetadata,
): User {
  // An id that stays the same discloses an earlier sign-up, and so does the order of JSON keys from
  // the database.
  if (context.settings.uniformAnswers)
    return toNewUser(context, { newUser, ...(created && { created: user }) }, metadata);
  const pending = { ...user, confirmationSentAt: new Date(metadata.nowMs) };
  // Metadata of an invitation are not for everyone who knows the address.
  return created || user.invitedAt === undefined ? pending : { ...pending, userMetadata: {}, identities: [] };
}

/**
 * The user in the response to a sign-up with the contact of a confirmed user, who stays
 * undisclosed.
 */
export function toDecoyUser(
  context: ResponseContext,
  { newUser, data }: { readonly newUser: NewUser; readonly data: NewUser['userMetadata'] },
  metadata: RequestMetadata,
): User {
  if (context.settings.uniformAnswers) return toNewUser(context, { newUser }, metadata);
  const known = { ...newUser, role: '', userMetadata: data, identities: [] };
  return awaitingConfirmation(known, new Date(metadata.nowMs));
}

/** The user as if new, with the identity ids of the created one. */
function toNewUser(
  { random }: ResponseContext,
  { newUser, created }: { readonly newUser: NewUser; readonly created?: User },
  { nowMs }: RequestMetadata,
): User {
  const at = new Date(nowMs);
  const identities = newUser.identities.map((identity, index) => ({
    ...identity,
    id: created?.identities[index]?.id ?? random.uuid(),
    userId: newUser.id,
    email: newUser.email,
    lastSignInAt: at,
    createdAt: at,
    updatedAt: at,
  }));
  return awaitingConfirmation({ ...newUser, identities }, at);
}

function awaitingConfirmation(
  known: Pick<
    User,
    'id' | 'aud' | 'role' | 'email' | 'phone' | 'appMetadata' | 'userMetadata' | 'identities'
  >,
  at: Date,
): User {
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
