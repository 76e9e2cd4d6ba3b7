import type { DepsWith } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestFacts } from '../http/request-metadata.ts';
import type { Randomness } from '../keys/random.ts';
import { createSendToContact, type SendToContactDeps } from '../messages/send.ts';
import { createStartSession, type IssuedSession, type StartSessionDeps } from '../sessions/issue.ts';
import type { NewUser } from '../users/store.ts';
import { newContactUser, type User } from '../users/user.ts';
import type { JsonObject } from '../users/user-json.ts';
import {
  createFindOrCreateUser,
  createTakeOver,
  hasConfirmed,
  userAwaitingConfirmation,
} from './existing-user.ts';
import { type ReadSignUp, type ReadSignUpDeps, readSignUp, type SignUpInput } from './input.ts';

interface AnswerOptions {
  readonly newUser: NewUser;
  readonly settings: { readonly uniformAnswers: boolean };
  readonly random: Randomness;
}

/** What a caller sees of a user who has been sent a confirmation. */
function answerFor(
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
function fakeAnswer(options: AnswerOptions & { readonly data: JsonObject }, facts: RequestFacts): User {
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
export type SignUp = (input: SignUpInput, facts: RequestFacts) => Promise<SignedUp>;

/** What a sign-up takes. */
export type SignUpDeps = StartSessionDeps &
  SendToContactDeps &
  ReadSignUpDeps &
  DepsWith<'store' | 'random' | 'passwords', 'jwtDefaultGroupName' | 'uniformAnswers'>;

/** A sign-up, and who it found or made. */
interface Attempt extends ReadSignUp {
  readonly newUser: NewUser;
  readonly user: User;
  readonly created: boolean;
}

/** Creates {@link SignUp}: one hash and the same statements, whoever signs up. */
export function createSignUp(deps: SignUpDeps): SignUp {
  const { store, passwords, random, settings } = deps;
  const startSession = createStartSession(deps);
  const findOrCreateUser = createFindOrCreateUser(deps);
  const sendToContact = createSendToContact(deps);
  const takeOver = createTakeOver(deps);

  function confirmsAtOnce({ contact }: ReadSignUp): boolean {
    return contact.kind === 'email' ? settings.mailerAutoconfirm : settings.smsAutoconfirm;
  }

  async function newUserOf(read: ReadSignUp, facts: RequestFacts): Promise<NewUser> {
    return newContactUser({
      id: random.uuid(),
      aud: read.aud,
      role: settings.jwtDefaultGroupName,
      contact: read.contact,
      passwordHash: await passwords.hash(read.password),
      confirmed: confirmsAtOnce(read),
      userMetadata: read.data,
      at: new Date(facts.nowMs),
    });
  }

  /** Somebody who has not confirmed yet and signs up again is somebody who signs up. */
  async function signIn(attempt: Attempt, facts: RequestFacts): Promise<SignedUp> {
    const user = attempt.created ? attempt.user : await takeOver(attempt.user, attempt, facts);
    const traits = { provider: attempt.contact.kind };
    return { kind: 'session', session: await startSession(user, { method: 'password', traits }, facts) };
  }

  async function askToConfirm(attempt: Attempt, facts: RequestFacts): Promise<SignedUp> {
    const { user, created, newUser } = attempt;
    try {
      const { sent } = await sendToContact(
        { ...attempt, purpose: 'confirmation', instead: 'confirmation' },
        { user, kind: 'confirmation' },
        facts,
      );
      // The password of a sign-up is in force once its owner has been told: until then it must not get in the place of theirs.
      const latest = created || !sent ? user : await takeOver(user, attempt, facts);
      return { kind: 'user', user: answerFor(latest, { created, newUser, settings, random }, facts) };
    } catch (error) {
      if (created) await store.users.discardUnconfirmed(user.id);
      throw error;
    }
  }

  async function pretend(
    read: ReadSignUp,
    { newUser, user }: { readonly newUser: NewUser; readonly user: User | undefined },
    facts: RequestFacts,
  ): Promise<SignedUp> {
    const refusal = user && auditEntry(user, 'user_repeated_signup', { facts });
    await sendToContact(
      { ...read, purpose: 'confirmation', instead: 'confirmation', refusal },
      undefined,
      facts,
    );
    return { kind: 'user', user: fakeAnswer({ newUser, data: read.data, settings, random }, facts) };
  }

  return async (input, facts) => {
    const read = await readSignUp(input, deps);
    const newUser = await newUserOf(read, facts);
    const action = confirmsAtOnce(read) ? 'user_signedup' : 'user_confirmation_requested';
    const { user, created } = await findOrCreateUser(newUser, { contact: read.contact, action }, facts);
    if (user !== undefined && (created || !hasConfirmed(user, read.contact))) {
      const attempt = { ...read, newUser, user, created };
      return confirmsAtOnce(read) ? signIn(attempt, facts) : askToConfirm(attempt, facts);
    }
    if (confirmsAtOnce(read)) throw errors.user_already_exists();
    return pretend(read, { newUser, user }, facts);
  };
}
