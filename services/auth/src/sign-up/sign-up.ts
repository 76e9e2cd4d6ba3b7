import type { JsonObject } from '@tollgate/kit/json';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { CodeChallenge } from '../flows/store.ts';
import { checkNewUser, reportNewUser } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { digest } from '../limits/guesses.ts';
import type { MessagesContext } from '../messages/context.ts';
import { readChannel } from '../messages/phone-codes.ts';
import { sendToContact } from '../messages/send.ts';
import type { SmsChannel } from '../messages/sms-gateway.ts';
import { checkPassword, type PasswordsContext } from '../passwords/passwords.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { checkMetadata, metadataSizeProblem, withLocale } from '../users/metadata.ts';
import {
  confirmsAutomatically,
  type NewUser,
  newContactIdentity,
  newContactUser,
} from '../users/new-user.ts';
import { getUser } from '../users/save-user.ts';
import { type Contact, getAddress, hasConfirmed, readContact, type User } from '../users/user.ts';
import { toDecoyUser, toPendingUser } from './response-user.ts';

export type SignUpContext = MessagesContext & PasswordsContext;

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
 * @throws AppError as `readSignUp`; `over_request_rate_limit`; `user_already_exists`; errors of
 * sending
 */
export async function signUp(
  context: SignUpContext,
  input: SignUpInput,
  metadata: RequestMetadata,
): Promise<SignedUp> {
  const { limiter } = context;
  const checked = await readSignUp(context, input);
  const refusal = limiter.takeSignUp(metadata.client);
  if (refusal !== undefined) throw refusal;
  const key = digest('sign_up', getAddress(checked.contact));
  await limiter.enforce('sign_up', { key, nowMs: metadata.nowMs });
  const read = { ...checked, data: withLocale(checked.data, context.settings, metadata) };
  const { contact } = read;
  const isAutomatic = confirmsAutomatically(contact, context.settings);
  const newUser = await toNewUser(context, read, metadata);
  // The hook runs for existing users, too: the response must not disclose them.
  await checkNewUser(context, newUser, metadata);
  const action = isAutomatic ? 'user_signedup' : 'user_confirmation_requested';
  const { user, created } = await findOrCreateUser(context, { newUser, contact, action }, metadata);
  if (user !== undefined && (created || !hasConfirmed(user, contact))) {
    const attempt = { ...read, newUser, user, created };
    const complete = isAutomatic ? signIn : requestConfirmation;
    const signedUp = await complete(context, attempt, metadata);
    if (created) reportNewUser(context, user, metadata);
    return signedUp;
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
  { passwords, random, settings }: SignUpContext,
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

async function signIn(context: SignUpContext, attempt: SignUp, metadata: RequestMetadata): Promise<SignedUp> {
  const user = attempt.created ? attempt.user : await takeOver(context, attempt.user, attempt, metadata);
  const traits = { provider: attempt.contact.kind };
  const session = await startSession(context, { user, method: 'password', traits }, metadata);
  return { kind: 'session', session };
}

async function requestConfirmation(
  context: SignUpContext,
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
  context: SignUpContext,
  { data = {}, aud }: { readonly data?: JsonObject | undefined; readonly aud: string },
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const { store, limiter, random, settings } = context;
  if (!settings.externalAnonymousUsersEnabled) throw errors.anonymous_provider_disabled();
  if (settings.disableSignup) throw errors.signup_disabled();
  checkMetadata({ userMetadata: data });
  const refusal = limiter.takeSignUp(metadata.client);
  if (refusal !== undefined) throw refusal;
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
    userMetadata: withLocale(data, settings, metadata),
    isAnonymous: true,
    createdAt: new Date(metadata.nowMs),
    identities: [],
  };
  await checkNewUser(context, newUser, metadata);
  await store.users.insert(newUser, auditEntry(newUser, 'user_signedup', { metadata }));
  const user = await getUser(store, newUser.id);
  reportNewUser(context, user, metadata);
  return startSession(context, { user, method: 'anonymous' }, metadata);
}

/** A sign-up as it was sent. */
export interface SignUpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** User metadata. */
  readonly data?: JsonObject | undefined;
  readonly channel?: string | undefined;
  readonly challenge?: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** A validated sign-up. */
interface ReadSignUp {
  readonly contact: Contact;
  readonly password: string;
  readonly data: JsonObject;
  readonly channel: SmsChannel;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

const oneContact = 'Only an email address or phone number should be provided on signup.';

/**
 * Validates a sign-up. The order of the checks is GoTrue's, which its clients rely on.
 *
 * @throws AppError `signup_disabled`, `validation_failed`, `weak_password`,
 * `email_provider_disabled`, `phone_provider_disabled`
 */
async function readSignUp(context: SignUpContext, input: SignUpInput): Promise<ReadSignUp> {
  const { settings } = context;
  const { email = '', phone = '', password = '', data = {}, challenge, redirectTo, aud } = input;
  if (settings.disableSignup) throw errors.signup_disabled();
  if (password === '') throw errors.validation_failed({ message: 'Signup requires a valid password' });
  await checkPassword(context, password, [email, phone]);
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: oneContact });
  const channel = readChannel(phone === '' ? undefined : input.channel, context.sms);
  if (phone !== '' && challenge !== undefined)
    throw errors.validation_failed({ message: 'PKCE not supported for phone signups' });
  checkEnabled(phone === '' ? 'email' : 'phone', settings);
  checkMetadata({ userMetadata: data });
  const contact = readContact({ email, phone }, { both: oneContact, neither: oneContact });
  return { contact, password, data, channel, challenge, redirectTo, aud };
}

function checkEnabled(kind: Contact['kind'], settings: Settings): void {
  if (kind === 'email' && !settings.externalEmailEnabled)
    throw errors.email_provider_disabled({ httpStatus: 400, message: 'Email signups are disabled' });
  if (kind === 'phone' && !settings.externalPhoneEnabled)
    throw errors.phone_provider_disabled({ httpStatus: 400, message: 'Phone signups are disabled' });
}

export interface FoundOrCreated {
  /** Absent if a user of another audience has the contact. */
  readonly user: User | undefined;
  readonly created: boolean;
}

/**
 * Creates a user unless the contact is taken. Runs the same two statements in both cases, and is
 * safe to race. The caller lets the hook for new users reject the user before.
 */
export async function findOrCreateUser(
  { store }: SignUpContext,
  {
    newUser,
    contact,
    action,
  }: {
    readonly newUser: NewUser;
    readonly contact: Contact;
    readonly action: AuditAction;
  },
  metadata: RequestMetadata,
): Promise<FoundOrCreated> {
  const audit = auditEntry(newUser, action, { metadata, traits: { provider: contact.kind } });
  const created = await store.users.insert(newUser, audit);
  return { created, user: await store.users.findByContact(contact, newUser.aud) };
}

interface LatestSignUp {
  readonly contact: Contact;
  readonly data: JsonObject;
  readonly newUser: Pick<NewUser, 'passwordHash' | 'emailConfirmedAt' | 'phoneConfirmedAt'>;
}

/**
 * Gives an unconfirmed user the password of the latest sign-up, or none if that had none: an
 * earlier one may be an attacker's, who waits for the owner of the contact to confirm it. Metadata
 * are merged, because an administrator may have set some. Metadata that would exceed the limit are
 * dropped: an error would disclose that the user exists.
 */
export async function takeOver(
  { store }: SignUpContext,
  user: User,
  { contact, data: givenData, newUser }: LatestSignUp,
  metadata: RequestMetadata,
): Promise<User> {
  const sizes = { before: user.userMetadata, changes: givenData };
  const data = metadataSizeProblem('user_metadata', sizes) === undefined ? givenData : {};
  const { passwordHash, emailConfirmedAt, phoneConfirmedAt } = newUser;
  const verified = emailConfirmedAt !== undefined || phoneConfirmedAt !== undefined;
  const identity = newContactIdentity(user.id, contact, { verified, data });
  const updated = await store.users.update(
    user.id,
    {
      passwordHash: passwordHash ?? null,
      userMetadata: verified ? { ...data, [`${contact.kind}_verified`]: true } : data,
      ...(emailConfirmedAt && { emailConfirmedAt }),
      ...(phoneConfirmedAt && { phoneConfirmedAt }),
    },
    {
      at: new Date(metadata.nowMs),
      audit: auditEntry(user, verified ? 'user_signedup' : 'user_repeated_signup', { metadata }),
      identities: [identity],
    },
  );
  if (!updated.ok) throw errors.user_already_exists();
  return updated.user;
}
