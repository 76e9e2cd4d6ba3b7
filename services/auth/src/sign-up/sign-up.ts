import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Randomness } from '../keys/random.ts';
import { createSendToContact } from '../messages/send.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import type { NewUser } from '../users/user.ts';
import { newContactUser, type User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import {
  createFindOrCreateUser,
  createTakeOver,
  hasConfirmed,
  userAwaitingConfirmation,
} from './existing-user.ts';
import { type ReadSignUp, readSignUp, type SignUpInput } from './input.ts';

interface AnswerOptions {
  readonly newUser: NewUser;
  readonly settings: { readonly uniformAnswers: boolean };
  readonly random: Randomness;
}

/** What a caller sees of a user who has been sent a confirmation. */
function answerFor(
  user: User,
  { created, ...options }: AnswerOptions & { readonly created: boolean },
  metadata: RequestMetadata,
): User {
  const confirmationSentAt = new Date(metadata.nowMs);
  // An id that is the same as last time tells that there was a last time; the database keeps members of objects in its own order.
  if (options.settings.uniformAnswers) return asNew(options, metadata, created ? user : undefined);
  if (created) return { ...user, confirmationSentAt };
  // Who invited them may have said things of them that are not for everybody who knows the address.
  if (user.invitedAt !== undefined) return { ...user, confirmationSentAt, userMetadata: {}, identities: [] };
  return { ...user, confirmationSentAt };
}

/** What a caller sees who signs up with the contact of somebody else: nobody's id, and what was sent. */
function fakeAnswer(options: AnswerOptions & { readonly data: JsonObject }, metadata: RequestMetadata): User {
  if (options.settings.uniformAnswers) return asNew(options, metadata);
  const { newUser, data } = options;
  const known = { ...newUser, role: '', userMetadata: data, identities: [] };
  return userAwaitingConfirmation(known, new Date(metadata.nowMs));
}

/** A user as they would be, were they new; with the ids of the one who is. */
function asNew({ newUser, random }: AnswerOptions, { nowMs }: RequestMetadata, created?: User): User {
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

/** A session at once, or a user who has to confirm the contact first. */
type SignedUp =
  | { readonly kind: 'session'; readonly session: IssuedSession }
  | { readonly kind: 'user'; readonly user: User };

/**
 * Signs somebody up by email or phone, and password. Where contacts are confirmed, somebody who is known already gets the answer of
 * somebody who is new.
 *
 * @throws AppError as `readSignUp`; `user_already_exists`; what sending a confirmation throws.
 */
export type SignUp = (input: SignUpInput, metadata: RequestMetadata) => Promise<SignedUp>;

/** A sign-up, and who it found or made. */
interface Attempt extends ReadSignUp {
  readonly newUser: NewUser;
  readonly user: User;
  readonly created: boolean;
}

/** Creates {@link SignUp}: one hash and the same statements, whoever signs up. */
export function createSignUp(deps: Context): SignUp {
  const { store, passwords, random, settings } = deps;
  const findOrCreateUser = createFindOrCreateUser(deps);
  const sendToContact = createSendToContact(deps);
  const takeOver = createTakeOver(deps);

  function confirmsAtOnce({ contact }: ReadSignUp): boolean {
    return contact.kind === 'email' ? settings.mailerAutoconfirm : settings.smsAutoconfirm;
  }

  async function newUserOf(read: ReadSignUp, metadata: RequestMetadata): Promise<NewUser> {
    return newContactUser({
      id: random.uuid(),
      aud: read.aud,
      role: settings.jwtDefaultGroupName,
      contact: read.contact,
      passwordHash: await passwords.hash(read.password),
      confirmed: confirmsAtOnce(read),
      userMetadata: read.data,
      at: new Date(metadata.nowMs),
    });
  }

  /** Somebody who has not confirmed yet and signs up again is somebody who signs up. */
  async function signIn(attempt: Attempt, metadata: RequestMetadata): Promise<SignedUp> {
    const user = attempt.created ? attempt.user : await takeOver(attempt.user, attempt, metadata);
    const traits = { provider: attempt.contact.kind };
    return {
      kind: 'session',
      session: await startSession(deps, { user, method: 'password', traits }, metadata),
    };
  }

  async function askToConfirm(attempt: Attempt, metadata: RequestMetadata): Promise<SignedUp> {
    const { user, created, newUser } = attempt;
    try {
      const { sent } = await sendToContact(
        { ...attempt, purpose: 'confirmation', instead: 'confirmation' },
        { user, kind: 'confirmation' },
        metadata,
      );
      // The password of a sign-up is in force once its owner has been told: until then it must not get in the place of theirs.
      const latest = created || !sent ? user : await takeOver(user, attempt, metadata);
      return { kind: 'user', user: answerFor(latest, { created, newUser, settings, random }, metadata) };
    } catch (error) {
      if (created) await store.users.discardUnconfirmed(user.id);
      throw error;
    }
  }

  async function pretend(
    read: ReadSignUp,
    { newUser, user }: { readonly newUser: NewUser; readonly user: User | undefined },
    metadata: RequestMetadata,
  ): Promise<SignedUp> {
    const refusal = user && auditEntry(user, 'user_repeated_signup', { metadata });
    await sendToContact(
      { ...read, purpose: 'confirmation', instead: 'confirmation', refusal },
      undefined,
      metadata,
    );
    return { kind: 'user', user: fakeAnswer({ newUser, data: read.data, settings, random }, metadata) };
  }

  return async (input, metadata) => {
    const read = await readSignUp(input, deps);
    const newUser = await newUserOf(read, metadata);
    const action = confirmsAtOnce(read) ? 'user_signedup' : 'user_confirmation_requested';
    const { user, created } = await findOrCreateUser(newUser, { contact: read.contact, action }, metadata);
    if (user !== undefined && (created || !hasConfirmed(user, read.contact))) {
      const attempt = { ...read, newUser, user, created };
      return confirmsAtOnce(read) ? signIn(attempt, metadata) : askToConfirm(attempt, metadata);
    }
    if (confirmsAtOnce(read)) throw errors.user_already_exists();
    return pretend(read, { newUser, user }, metadata);
  };
}
