import { createHash } from 'node:crypto';
import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import type { Store } from '../db/store.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { bucketQuota } from '../messages/quotas.ts';
import { notify } from '../messages/send.ts';
import { checkPassword } from '../passwords/policy.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { pkcePrefix } from '../sign-in/pkce.ts';
import { changeContact } from '../users/update.ts';
import type { UserChanges } from '../users/user.ts';
import { contactIdentityData, type User } from '../users/user.ts';
import {
  createFindToken,
  type FoundToken,
  type Presented,
  type VerificationType,
  verifications,
} from './find-token.ts';
import type { FoundOneTimeToken } from './store.ts';

/** What confirming changes besides. */
interface Confirmation {
  readonly contact: 'email' | 'phone';
  readonly action: 'user_signedup' | 'invite_accepted';
  /** A password for a user without one; `null` takes it away; absent leaves it. */
  readonly passwordHash?: string | null | undefined;
}

/** Notes that the email or phone of a user is theirs. Answers the user as changed. */
async function confirmContact(
  store: Context['store'],
  user: User,
  { contact, action, passwordHash }: Confirmation,
  metadata: RequestMetadata,
): Promise<User> {
  const at = new Date(metadata.nowMs);
  const isEmail = contact === 'email';
  const value = isEmail ? { email: user.email } : { phone: user.phone };
  const data = contactIdentityData({ userId: user.id, contact: value, verified: true, data: {} });
  const changes: UserChanges = {
    ...(isEmail ? { emailConfirmedAt: at } : { phoneConfirmedAt: at }),
    userMetadata: isEmail ? { email_verified: true } : { phone_verified: true },
    ...(passwordHash !== undefined && { passwordHash }),
  };
  const updated = await store.users.update(user.id, changes, {
    at,
    audit: auditEntry(user, action, { metadata, traits: { provider: contact } }),
    identities: [{ provider: contact, providerId: user.id, data }],
  });
  if (!updated.ok) throw errors.otp_expired();
  return updated.user;
}

/** The user as changed, or a change of email that the other address has yet to confirm. */
type Completed =
  | { readonly kind: 'user'; readonly user: User }
  | { readonly kind: 'other-address-to-confirm' };

/**
 * Spends a token and does what it is for, within a transaction of the caller. Of several that present it at once one gets through, the
 * others get `otp_expired`.
 */
type CompleteVerification = (
  within: Store,
  found: FoundToken,
  more: { readonly passwordHash: string | undefined; readonly metadata: RequestMetadata },
) => Promise<Completed>;

/** Creates {@link CompleteVerification}. */
function createCompleteVerification({ settings }: Context): CompleteVerification {
  /** Is this the second of two addresses, or is one enough? */
  async function isLastAddress(within: Store, { email, id }: User, at: Date): Promise<boolean> {
    const needsBoth = settings.mailerSecureEmailChangeEnabled && !settings.mailerAutoconfirm && email !== '';
    return !needsBoth || (await within.users.countEmailConfirmation(id, at)) > 1;
  }

  async function complete(
    within: Store,
    found: FoundToken,
    passwordHash: string | undefined,
    metadata: RequestMetadata,
  ) {
    const { type, user } = found;
    if (type === 'email_change') {
      if (!(await isLastAddress(within, user, new Date(metadata.nowMs)))) return undefined;
      return changeContact(within, user, { contact: { kind: 'email', email: user.newEmail }, metadata });
    }
    if (type === 'phone_change')
      return changeContact(within, user, { contact: { kind: 'phone', phone: user.newPhone }, metadata });
    const { contact } = verifications[type];
    const isConfirmed = (contact === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
    if (isConfirmed && passwordHash === undefined) return user;
    const action = user.invitedAt === undefined ? 'user_signedup' : 'invite_accepted';
    return confirmContact(
      within,
      user,
      { contact, action, passwordHash: passwordHash ?? lost(found) },
      metadata,
    );
  }

  return async (within, found, { passwordHash, metadata }) => {
    if (!(await within.oneTimeTokens.spend(found.token))) throw errors.otp_expired();
    const user = await complete(within, found, passwordHash, metadata);
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

/** What is presented, and a password for a user who has none. */
interface VerifyInput extends Presented {
  readonly password?: string | undefined;
}

/** A session, a code to exchange for one, or a change of email that the other address has yet to confirm. */
export type Verified =
  | { readonly kind: 'session'; readonly session: IssuedSession; readonly type: string }
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'other-address-to-confirm' };

/**
 * Takes a code or link that was sent to somebody, does what it was sent for, and signs them in. `link` is how it is followed in a
 * browser: there the link of a PKCE flow answers a code.
 *
 * @throws AppError `validation_failed`, `otp_expired`, `user_banned`, `weak_password`, `email_exists`, `phone_exists`,
 * `over_request_rate_limit`, `flow_state_not_found`.
 */
export type Verify = (
  input: VerifyInput,
  by: 'request' | 'link',
  metadata: RequestMetadata,
) => Promise<Verified>;

/** What that takes. */
export type VerifyDeps = Context;

/** Creates {@link Verify}. */
export function createVerify(deps: VerifyDeps): Verify {
  const { store, random, passwords } = deps;
  const findToken = createFindToken(deps);
  const complete = createCompleteVerification(deps);

  /** Before the token is spent: a password that is too weak can be chosen again. */
  async function hashFirstPassword({ type, user }: FoundToken, password = ''): Promise<string | undefined> {
    const mayChoose = (type === 'signup' || type === 'invite') && user.passwordHash === undefined;
    if (password === '' || !mayChoose) return undefined;
    await checkPassword(deps, password);
    return passwords.hash(password);
  }

  async function issueCode(
    within: Store,
    { type, token, user }: FoundToken,
    metadata: RequestMetadata,
  ): Promise<string> {
    const code = random.uuid();
    const authenticationMethod = verifications[type].flowMethod(token.type);
    const flow = { userId: user.id, authenticationMethod, code };
    if (!(await within.flows.issueCode(flow, new Date(metadata.nowMs))))
      throw errors.flow_state_not_found({ message: 'No valid flow state found for user.' });
    return code;
  }

  function tellOfChange(type: VerificationType, before: User, after: User): void {
    if (type === 'email_change')
      notify(deps, {
        user: after,
        kind: 'EMAIL_CHANGED_NOTIFICATION',
        variables: { OldEmail: before.email },
        to: before.email,
      });
    if (type === 'phone_change')
      notify(deps, {
        user: after,
        kind: 'PHONE_CHANGED_NOTIFICATION',
        variables: { Phone: after.phone, OldPhone: before.phone },
      });
  }

  async function signIn(
    within: Store,
    { found, user }: { readonly found: FoundToken; readonly user: User },
    by: 'request' | 'link',
    metadata: RequestMetadata,
  ): Promise<Verified> {
    if (by === 'link' && found.token.keptAs.startsWith(pkcePrefix))
      return { kind: 'code', code: await issueCode(within, found, metadata) };
    const traits = { provider: verifications[found.type].contact };
    const session = await startSession({ ...deps, store: within }, { user, method: 'otp', traits }, metadata);
    return { kind: 'session', session, type: typeOf(found) };
  }

  return async ({ password, ...presented }, by, metadata) => {
    const found = await findToken(presented, metadata);
    const passwordHash = await hashFirstPassword(found, password);
    // All or nothing: a token that is spent has signed somebody in.
    const { completed, verified } = await store.transaction(async (within) => {
      const completed = await complete(within, found, { passwordHash, metadata });
      if (completed.kind !== 'user') return { completed, verified: completed };
      return { completed, verified: await signIn(within, { found, user: completed.user }, by, metadata) };
    });
    if (completed.kind === 'user') tellOfChange(found.type, found.user, completed.user);
    return verified;
  };
}

/** What the client did: `email` stands for either of two. */
function typeOf({ type, token }: FoundToken): string {
  if (type !== 'email') return type;
  return token.type === 'confirmation_token' ? 'signup' : 'magiclink';
}

const limiter = 'guessable_link';
/** More than the users of a network follow, and one in 10,000 of the codes with six digits. */
const quota = bucketQuota(100, 10 * 60_000);

/**
 * Counts wrong links and those in the form of GoTrue by the network of the client, and refuses the
 * latter beyond a limit: without a secret in the hash, an attacker can compute the links of all
 * codes of a known contact. Links of Tollgate cannot be guessed and are never refused.
 *
 * @param token what was found for the link
 * @throws AppError `over_request_rate_limit`
 */
export async function limitGuessableLinks(
  { store }: Context,
  token: FoundOneTimeToken | undefined,
  { clientNetwork = '', nowMs }: RequestMetadata,
): Promise<void> {
  if (token !== undefined && !token.isGuessable) return;
  const key = createHash('sha256').update(clientNetwork).digest('base64url');
  const answer = await store.quotas.take({ limiter, key, quota }, nowMs);
  if (token !== undefined && !answer.allowed)
    throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
}
