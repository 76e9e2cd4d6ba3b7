import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { userAwaitingConfirmation } from '../../domain/user-awaiting-confirmation.ts';
import type { Randomness } from '../../ports/randomness.ts';
import type { NewUser } from '../../ports/user-store.ts';

interface AnswerOptions {
  readonly newUser: NewUser;
  readonly settings: { readonly uniformAnswers: boolean };
  readonly random: Randomness;
}

/** What a caller sees of a user who has been sent a confirmation. */
export function answerFor(
  user: User,
  { created, ...options }: AnswerOptions & { readonly created: boolean },
  facts: RequestFacts,
): User {
  const confirmationSentAt = new Date(facts.nowMs);
  // An id that is the same as last time tells that there was a last time; the database keeps members of objects in its own order.
  if (options.settings.uniformAnswers) return asNew(options, facts, created ? user : undefined);
  if (created) return { ...user, confirmationSentAt };
  // Who invited them may have said things of them that are not for everybody who knows the address.
  if (user.invitedAt !== undefined) return { ...user, confirmationSentAt, userMetadata: {}, identities: [] };
  return { ...user, confirmationSentAt };
}

/** What a caller sees who signs up with the contact of somebody else: nobody's id, and what was sent. */
export function fakeAnswer(
  options: AnswerOptions & { readonly data: JsonObject },
  facts: RequestFacts,
): User {
  if (options.settings.uniformAnswers) return asNew(options, facts);
  const { newUser, data } = options;
  const known = { ...newUser, role: '', userMetadata: data, identities: [] };
  return userAwaitingConfirmation(known, new Date(facts.nowMs));
}

/** A user as they would be, were they new; with the ids of the one who is. */
function asNew({ newUser, random }: AnswerOptions, { nowMs }: RequestFacts, created?: User): User {
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
  return userAwaitingConfirmation({ ...newUser, identities }, at);
}
