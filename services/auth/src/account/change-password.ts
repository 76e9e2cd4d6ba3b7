import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { FoundOneTimeToken } from '../one-time-tokens/store.ts';
import { hasRecentSignIn, reauthenticationNeeded } from '../sessions/assurance.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { AccountContext } from './context.ts';
import { checkNonce } from './reauthentication.ts';

interface NewPassword {
  /** Has passed `checkPassword`. */
  readonly password: string;
  readonly currentPassword: string | undefined;
  /** Empty for none. */
  readonly nonce: string;
}

/** A password that the user may change to. */
export interface ChosenPassword {
  readonly hash: string;
  /** Token of the nonce, to be spent with the change; absent if none was required. */
  readonly nonceToken: FoundOneTimeToken | undefined;
}

/** Changing the password in an older session requires reauthentication, if the settings want it. */
const recentSessionMs = 24 * 3_600_000;

/**
 * Checks that a user may change their password, and hashes the new one.
 *
 * @throws AppError `reauthentication_needed`, `reauthentication_not_valid`,
 * `current_password_required`, `current_password_invalid`, `same_password`,
 * `over_request_rate_limit`.
 */
export async function choosePassword(
  context: AccountContext,
  {
    user,
    session,
    password,
    currentPassword,
    nonce,
  }: NewPassword & { readonly user: User; readonly session: Session | undefined },
  metadata: RequestMetadata,
): Promise<ChosenPassword> {
  const { passwords, settings } = context;
  // Otherwise `confirmChange` requires more.
  const needsNonce =
    settings.recentSignInMs === 0 &&
    settings.updatePasswordRequireReauthentication &&
    !isRecent(session, metadata.nowMs);
  if (needsNonce && nonce === '') throw errors.reauthentication_needed();
  const nonceToken = needsNonce ? await checkNonce(context, user, nonce, metadata) : undefined;
  const { passwordHash: oldHash } = user;
  if (oldHash !== undefined) {
    if (settings.updatePasswordRequireCurrentPassword && !isRecovery(session))
      await checkCurrentPassword(context, { user, hash: oldHash, currentPassword }, metadata);
    if (await passwords.verify(password, oldHash, user.id)) throw errors.same_password();
  }
  return { hash: await passwords.hash(password), nonceToken };
}

interface Confirmation {
  readonly user: User;
  readonly session: Session | undefined;
  readonly currentPassword?: string | undefined;
  readonly nonce?: string | undefined;
}

/**
 * Requires a recent sign-in for a change of credentials, or confirms the session with what the
 * request has.
 *
 * @throws AppError as `confirmSession`
 */
export async function confirmChange(
  context: AccountContext,
  { isPassword, ...owner }: Confirmation & { readonly isPassword: boolean },
  metadata: RequestMetadata,
): Promise<void> {
  const { session } = owner;
  const isReset = isPassword && isRecovery(session) && isRecent(session, metadata.nowMs);
  if (!isReset && !hasRecentSignIn(context, owner)) await confirmSession(context, owner, metadata);
}

/**
 * Confirms that the owner of a session is present, by the current password or a nonce, and records
 * it as a sign-in of the session.
 *
 * @throws AppError `reauthentication_needed` without either, `reauthentication_not_valid`,
 * `current_password_invalid`, `over_request_rate_limit`
 */
export async function confirmSession(
  context: AccountContext,
  { user, session, currentPassword = '', nonce = '' }: Confirmation,
  metadata: RequestMetadata,
): Promise<void> {
  const { store } = context;
  const { passwordHash: hash } = user;
  const byPassword = hash !== undefined && currentPassword !== '';
  if (byPassword) await checkCurrentPassword(context, { user, hash, currentPassword }, metadata);
  else if (nonce === '') throw reauthenticationNeeded(user);
  else if (!(await store.oneTimeTokens.spend(await checkNonce(context, user, nonce, metadata))))
    throw errors.reauthentication_not_valid();
  if (session === undefined) return;
  // A code that was sent is a sign-in by a code.
  await store.sessions.confirm(session.id, byPassword ? 'password' : 'otp', new Date(metadata.nowMs));
}

/**
 * Values of `amr` of sign-ins by a link or code, those of GoTrue. A recovery has `otp` in the
 * implicit flow.
 */
const recoveryMethods: ReadonlySet<string> = new Set(['recovery', 'otp', 'magiclink']);

/** Whether the user may not know the current password. */
function isRecovery(session: Session | undefined): boolean {
  return session?.methods.some(({ method }) => recoveryMethods.has(method)) ?? false;
}

function isRecent(session: Session | undefined, nowMs: number): boolean {
  return session !== undefined && session.createdAt.getTime() + recentSessionMs >= nowMs;
}

async function checkCurrentPassword(
  { passwords, limiter }: AccountContext,
  {
    user: { id, email, phone },
    hash,
    currentPassword = '',
  }: { readonly user: User; readonly hash: string; readonly currentPassword: string | undefined },
  metadata: RequestMetadata,
): Promise<void> {
  if (currentPassword === '') throw errors.current_password_required();
  const guess = { kind: 'password', contact: email || phone || id } as const;
  const matches = await limiter.guess(guess, metadata, async () =>
    (await passwords.verify(currentPassword, hash, id)) ? { matches: true } : undefined,
  );
  if (matches === undefined) throw errors.current_password_invalid();
}
