import type { AppError } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { findWeakness } from '../passwords/passwords.ts';
import type { ProvidersContext } from '../providers/connections.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { signOut } from '../sessions/sessions.ts';
import type { SignUpContext } from '../sign-up/sign-up.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { type Contact, getAddress, isBanned, readContact, type User } from '../users/user.ts';

export type SignInContext = SignUpContext & ProvidersContext;

interface PasswordSignIn {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly aud: string;
}

/**
 * Signs a user in by email or phone, and password. An unknown user costs the same work as a known
 * one.
 */
export async function signInWithPassword(
  context: SignInContext,
  { password = '', aud, ...contacts }: PasswordSignIn,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const contact = readContact(contacts, {
    both: 'Only an email address or phone number should be provided on login.',
    neither: 'missing email or phone',
  });
  checkLoginEnabled(contact.kind, context.settings);
  const guess = { kind: 'password', contact: getAddress(contact) } as const;
  let rejection: unknown;
  const user = await context.limiter.guess(guess, metadata, async () => {
    const attempt = await verifyPassword(context, { contact, password, aud }, metadata);
    if (attempt.ok) return attempt.user;
    rejection = attempt.rejection;
    return undefined;
  });
  if (user === undefined) throw rejection ?? errors.invalid_credentials();
  await updateHash(context, user, password);
  const traits = { provider: contact.kind };
  const [session, weakPassword] = await Promise.all([
    startSession(context, { user, method: 'password', traits }, metadata),
    // Fails open: an outage of the breach API must not block sign-in.
    findWeakness(context, password, { contacts: [user.email, user.phone], failClosed: false }),
  ]);
  return weakPassword === undefined ? session : { ...session, weakPassword };
}

/** @throws AppError `email_provider_disabled`, `phone_provider_disabled` */
export function checkLoginEnabled(kind: Contact['kind'], settings: Settings): void {
  if (kind === 'email' && !settings.externalEmailEnabled) throw errors.email_provider_disabled();
  if (kind === 'phone' && !settings.externalPhoneEnabled) throw errors.phone_provider_disabled();
}

/** The user with this contact and password, or why a hook rejects the wrong password. */
type PasswordAttempt =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly rejection?: unknown };

/** Throws only for a right password: errors do not count as wrong guesses. */
async function verifyPassword(
  context: SignInContext,
  { contact, password, aud }: { readonly contact: Contact; readonly password: string; readonly aud: string },
  metadata: RequestMetadata,
): Promise<PasswordAttempt> {
  const { store, passwords, hooks, settings } = context;
  const user = await store.users.findByContact(contact, aud);
  const fail = (reason: string) =>
    user && recordFailedSignIn(context, user, { method: 'password', reason }, metadata);
  if (user?.passwordHash === undefined) {
    await passwords.verifyDummy(password);
    fail('no_password');
    return { ok: false };
  }
  const valid = await passwords.verify(password, user.passwordHash, user.id);
  try {
    if (hooks.enabled.has('PASSWORD_VERIFICATION_ATTEMPT'))
      await checkPasswordAttempt(context, { user, valid }, metadata);
  } catch (rejection) {
    fail(valid ? 'rejected_by_hook' : 'wrong_password');
    if (valid) throw rejection;
    return { ok: false, rejection };
  }
  if (!valid) {
    fail('wrong_password');
    return { ok: false };
  }
  // Runs within the guess, so that an unconfirmed account, which anyone can create for this
  // contact, does not make a network known.
  const unusable = findUnusable(user, { contact, settings, nowMs: metadata.nowMs });
  if (unusable === undefined) return { ok: true, user };
  fail(unusable.code);
  throw unusable;
}

/**
 * Lets a hook reject a sign-in by password, after the password has been verified.
 *
 * @throws AppError `invalid_credentials` for the decision `reject`, or the error of the hook
 */
async function checkPasswordAttempt(
  context: SignInContext,
  { user, valid }: { readonly user: User; readonly valid: boolean },
  metadata: RequestMetadata,
): Promise<void> {
  const reply = await context.hooks.call(
    'PASSWORD_VERIFICATION_ATTEMPT',
    { user_id: user.id, valid },
    metadata,
  );
  if (reply.decision !== 'reject') return;
  if (String(reply.should_logout_user) === 'true')
    await signOut(context, { user, sessionId: undefined, scope: 'global' }, metadata);
  throw errors.invalid_credentials({
    message: reply.message || 'Further password verification attempts will be rejected.',
  });
}

/**
 * Runs after the password check, so that account state is not disclosed to unauthenticated callers.
 */
function findUnusable(
  user: User,
  {
    contact,
    settings,
    nowMs,
  }: {
    readonly contact: Contact;
    readonly settings: Settings;
    readonly nowMs: number;
  },
): AppError | undefined {
  if (isBanned(user, nowMs)) return errors.user_banned({ httpStatus: 400 });
  const needsEmail = contact.kind === 'email' && !settings.mailerAllowUnverifiedEmailSignIns;
  if (needsEmail && user.emailConfirmedAt === undefined) return errors.email_not_confirmed();
  if (contact.kind === 'phone' && user.phoneConfirmedAt === undefined) return errors.phone_not_confirmed();
  return undefined;
}

/** Replaces a hash that was made with other parameters or encryption. */
async function updateHash(
  { store, passwords }: SignInContext,
  { id, passwordHash: from }: User,
  password: string,
): Promise<void> {
  if (from === undefined || passwords.isCurrent(from, id)) return;
  await store.users.rehashPassword(id, { from, to: await passwords.hash(password) });
}
