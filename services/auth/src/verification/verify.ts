import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { makeAuthCode, pkcePrefix } from '../flows/pkce.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { checkPassword } from '../passwords/passwords.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { newContactIdentity } from '../users/new-user.ts';
import type { User, UserChanges } from '../users/user.ts';
import { changeContact } from './change-contact.ts';
import type { VerificationContext } from './context.ts';
import { type FoundToken, findToken, type PresentedToken, verifications } from './find-token.ts';

/**
 * A session, a code to exchange for one, or a change of email that the other address has yet to
 * confirm.
 */
export type Verified =
  | { readonly kind: 'session'; readonly session: IssuedSession; readonly type: string }
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'other-address-to-confirm' };

/**
 * Verifies a code or link, does what it was sent for, and signs the user in. The link of a PKCE
 * flow that a browser follows (`by: 'link'`) leads to a code instead.
 *
 * @throws AppError `validation_failed`, `otp_expired`, `user_banned`, `weak_password`,
 * `email_exists`, `phone_exists`, `over_request_rate_limit`, `flow_state_not_found`
 */
export async function verify(
  context: VerificationContext,
  {
    by,
    password,
    ...presented
  }: PresentedToken & {
    readonly by: 'request' | 'link';
    /** Set only for a user without one. */
    readonly password?: string | undefined;
  },
  metadata: RequestMetadata,
): Promise<Verified> {
  const found = await findToken(context, presented, metadata);
  const passwordHash = await hashFirstPassword(context, found, password);
  // In one transaction: a failed sign-in does not spend the token.
  const { user, verified } = await context.store.transaction(async (store) => {
    const within = { ...context, store };
    // One of concurrent requests succeeds.
    if (!(await store.oneTimeTokens.spend(found.token))) throw errors.otp_expired();
    const user = await applyVerification(within, found, { passwordHash, metadata });
    if (user === undefined) return { user, verified: { kind: 'other-address-to-confirm' } as const };
    if (by === 'link' && found.token.storedHash.startsWith(pkcePrefix))
      return { user, verified: await issueCode(within, found, metadata) };
    return { user, verified: await signIn(within, { found, user }, metadata) };
  });
  if (user !== undefined) notifyOfChange(context, { found, user }, metadata);
  return verified;
}

/**
 * Verifies the code that was sent to the new phone of a user, whose session continues.
 *
 * @throws AppError `otp_expired`, `phone_exists`, `over_request_rate_limit`
 */
export async function confirmPhoneChange(
  context: VerificationContext,
  user: User,
  code: string,
  metadata: RequestMetadata,
): Promise<void> {
  const presented = { type: 'phone_change', phone: user.newPhone, token: code };
  const found = await findToken(context, presented, metadata);
  // Another user may have asked for the same number.
  if (found.user.id !== user.id) throw errors.otp_expired();
  const changed = await context.store.transaction(async (store) => {
    if (!(await store.oneTimeTokens.spend(found.token))) throw errors.otp_expired();
    return applyVerification({ ...context, store }, found, { passwordHash: undefined, metadata });
  });
  if (changed !== undefined) notifyOfChange(context, { found, user: changed }, metadata);
}

/**
 * Runs before the token is spent, so that the user can choose another password if this one is
 * rejected.
 */
async function hashFirstPassword(
  context: VerificationContext,
  { type, user }: FoundToken,
  password = '',
): Promise<string | undefined> {
  const mayChoose = (type === 'signup' || type === 'invite') && user.passwordHash === undefined;
  if (password === '' || !mayChoose) return undefined;
  await checkPassword(context, password, [user.email, user.phone]);
  return context.passwords.hash(password);
}

/** Returns the changed user; undefined if another address has yet to confirm a change of email. */
async function applyVerification(
  context: VerificationContext,
  found: FoundToken,
  {
    passwordHash,
    metadata,
  }: { readonly passwordHash: string | undefined; readonly metadata: RequestMetadata },
): Promise<User | undefined> {
  const { type, user } = found;
  if (type === 'email_change') {
    if (!(await isLastAddress(context, user, new Date(metadata.nowMs)))) return undefined;
    const contact = { kind: 'email', email: user.newEmail } as const;
    return changeContact(context.store, user, { contact, metadata });
  }
  if (type === 'phone_change') {
    const contact = { kind: 'phone', phone: user.newPhone } as const;
    return changeContact(context.store, user, { contact, metadata });
  }
  const { contact } = verifications[type];
  const isConfirmed = (contact === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
  if (isConfirmed && passwordHash === undefined) return user;
  const changes = passwordHash === undefined ? revokedPassword(found) : { passwordHash };
  return confirmContact(context, { user, contact, changes }, metadata);
}

async function isLastAddress(
  { store, settings }: VerificationContext,
  { email, id }: User,
  at: Date,
): Promise<boolean> {
  const needsBoth = settings.mailerSecureEmailChangeEnabled && !settings.mailerAutoconfirm && email !== '';
  return !needsBoth || (await store.users.countEmailConfirmation(id, at)) > 1;
}

/**
 * Removes the password of an unconfirmed user who did not follow the link of the sign-up: it may be
 * an attacker's, who waits for the owner of the address to confirm.
 */
function revokedPassword({ token, user }: FoundToken): UserChanges {
  const isSuspect = token.type === 'recovery_token' && user.confirmedAt === undefined;
  return isSuspect ? { passwordHash: null } : {};
}

async function confirmContact(
  { store }: VerificationContext,
  {
    user,
    contact,
    changes,
  }: {
    readonly user: User;
    readonly contact: 'email' | 'phone';
    readonly changes: UserChanges;
  },
  metadata: RequestMetadata,
): Promise<User> {
  const at = new Date(metadata.nowMs);
  const isEmail = contact === 'email';
  const identity = newContactIdentity(
    user.id,
    isEmail ? { kind: 'email', email: user.email } : { kind: 'phone', phone: user.phone },
    { verified: true },
  );
  const action = user.invitedAt === undefined ? 'user_signedup' : 'invite_accepted';
  const updated = await store.users.update(
    user.id,
    {
      ...changes,
      ...(isEmail ? { emailConfirmedAt: at } : { phoneConfirmedAt: at }),
      userMetadata: isEmail ? { email_verified: true } : { phone_verified: true },
    },
    {
      at,
      audit: auditEntry(user, action, { metadata, traits: { provider: contact } }),
      identities: [identity],
    },
  );
  if (!updated.ok) throw errors.otp_expired();
  return updated.user;
}

async function issueCode(
  context: VerificationContext,
  { type, token, user }: FoundToken,
  metadata: RequestMetadata,
): Promise<Verified> {
  const code = makeAuthCode(context);
  const authenticationMethod = verifications[type].flowMethod(token.type);
  const flow = { userId: user.id, authenticationMethod, code };
  if (!(await context.store.flows.issueCode(flow, new Date(metadata.nowMs))))
    throw errors.flow_state_not_found({ message: 'No valid flow state found for user.' });
  return { kind: 'code', code };
}

async function signIn(
  context: VerificationContext,
  { found, user }: { readonly found: FoundToken; readonly user: User },
  metadata: RequestMetadata,
): Promise<Verified> {
  const traits = { provider: verifications[found.type].contact };
  const session = await startSession(context, { user, method: 'otp', traits }, metadata);
  return { kind: 'session', session, type: specificType(found) };
}

/** `email` stands for either of two types. */
function specificType({ type, token }: FoundToken): string {
  if (type !== 'email') return type;
  return token.type === 'confirmation_token' ? 'signup' : 'magiclink';
}

function notifyOfChange(
  context: VerificationContext,
  { found: { type, user: before }, user }: { readonly found: FoundToken; readonly user: User },
  metadata: RequestMetadata,
): void {
  if (type === 'email_change') {
    const variables = { OldEmail: before.email };
    notify(context, { user, kind: 'EMAIL_CHANGED_NOTIFICATION', variables, to: before.email }, metadata);
  }
  if (type === 'phone_change') {
    const variables = { Phone: user.phone, OldPhone: before.phone };
    notify(context, { user, kind: 'PHONE_CHANGED_NOTIFICATION', variables }, metadata);
  }
}
