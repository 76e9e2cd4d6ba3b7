import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { sendToContact } from '../messages/send.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { confirmsAutomatically, hasConfirmed, newContactUser } from '../users/contact.ts';
import { checkMetadata } from '../users/metadata.ts';
import type { JsonObject, NewUser, User } from '../users/user.ts';
import { findOrCreateUser, takeOver } from './existing-user.ts';
import { type ReadSignUp, readSignUp, type SignUpInput } from './input.ts';
import { toDecoyUser, toPendingUser } from './response-user.ts';

/** A session, or a user who has to confirm the contact first. */
type SignedUp =
  | { readonly kind: 'session'; readonly session: IssuedSession }
  | { readonly kind: 'user'; readonly user: User };

interface SignUp extends ReadSignUp {
  readonly newUser: NewUser;
  /** The created user, or an existing one who has not confirmed the contact. */
  readonly user: User;
  readonly created: boolean;
}

/**
 * Signs a user up by email or phone, and password. Where contacts are confirmed, an existing user
 * gets the same response as a new one, after the same work.
 *
 * @throws AppError as `readSignUp`; `user_already_exists`; errors of sending
 */
export async function signUp(
  context: Context,
  input: SignUpInput,
  metadata: RequestMetadata,
): Promise<SignedUp> {
  const read = await readSignUp(context, input);
  const { contact } = read;
  const isAutomatic = confirmsAutomatically(contact, context.settings);
  const newUser = await toNewUser(context, read, metadata);
  const action = isAutomatic ? 'user_signedup' : 'user_confirmation_requested';
  const { user, created } = await findOrCreateUser(context, { newUser, contact, action }, metadata);
  if (user !== undefined && (created || !hasConfirmed(user, contact))) {
    const attempt = { ...read, newUser, user, created };
    return isAutomatic ? signIn(context, attempt, metadata) : requestConfirmation(context, attempt, metadata);
  }
  if (isAutomatic) throw errors.user_already_exists();
  const audit = user && auditEntry(user, 'user_repeated_signup', { metadata });
  await sendToContact(
    context,
    { ...read, purpose: 'confirmation', recipient: undefined, simulated: { kind: 'confirmation', audit } },
    metadata,
  );
  return { kind: 'user', user: toDecoyUser(context, { newUser, data: read.data }, metadata) };
}

async function toNewUser(
  { passwords, random, settings }: Context,
  { aud, contact, password, data }: ReadSignUp,
  metadata: RequestMetadata,
): Promise<NewUser> {
  return newContactUser({
    id: random.uuid(),
    aud,
    role: settings.jwtDefaultGroupName,
    contact,
    passwordHash: await passwords.hash(password),
    confirmed: confirmsAutomatically(contact, settings),
    userMetadata: data,
    at: new Date(metadata.nowMs),
  });
}

async function signIn(context: Context, attempt: SignUp, metadata: RequestMetadata): Promise<SignedUp> {
  const user = attempt.created ? attempt.user : await takeOver(context, attempt.user, attempt, metadata);
  const traits = { provider: attempt.contact.kind };
  const session = await startSession(context, { user, method: 'password', traits }, metadata);
  return { kind: 'session', session };
}

async function requestConfirmation(
  context: Context,
  attempt: SignUp,
  metadata: RequestMetadata,
): Promise<SignedUp> {
  const { user, created, newUser } = attempt;
  const kind = 'confirmation';
  try {
    const { sent } = await sendToContact(
      context,
      { ...attempt, purpose: kind, recipient: { user, kind }, simulated: { kind } },
      metadata,
    );
    // The new password replaces that of an earlier sign-up only if the owner of the contact gets a
    // mail about it.
    const latest = created || !sent ? user : await takeOver(context, user, attempt, metadata);
    return { kind: 'user', user: toPendingUser(context, { user: latest, created, newUser }, metadata) };
  } catch (error) {
    if (created) await context.store.users.discardUnconfirmed(user.id);
    throw error;
  }
}

/**
 * Signs up a user without email and phone. `PUT /user` with either makes the user permanent.
 *
 * @throws AppError `anonymous_provider_disabled`, `signup_disabled`, `validation_failed`
 */
export async function signUpAnonymously(
  context: Context,
  { data = {}, aud }: { readonly data?: JsonObject | undefined; readonly aud: string },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const { store, random, settings } = context;
  if (!settings.externalAnonymousUsersEnabled) throw errors.anonymous_provider_disabled();
  if (settings.disableSignup) throw errors.signup_disabled();
  checkMetadata({ userMetadata: data });
  const newUser: NewUser = {
    id: random.uuid(),
    aud,
    role: settings.jwtDefaultGroupName,
    email: '',
    phone: '',
    passwordHash: undefined,
    emailConfirmedAt: undefined,
    phoneConfirmedAt: undefined,
    appMetadata: {},
    userMetadata: data,
    isAnonymous: true,
    createdAt: new Date(metadata.nowMs),
    identities: [],
  };
  await store.users.insert(newUser, auditEntry(newUser, 'user_signedup', { metadata }));
  const user = await store.users.findById(newUser.id);
  if (user === undefined) throw errors.user_not_found();
  return startSession(context, { user, method: 'anonymous' }, metadata);
}
