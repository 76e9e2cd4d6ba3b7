import type { Context } from '../context.ts';
import { errors, WeakPasswordError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Session } from '../sessions/sessions.ts';
import { GuessLimiter } from '../sign-in/guess-limiter.ts';
import { createCheckNonce } from '../users/reauthentication.ts';
import type { User } from '../users/user.ts';
import type { FoundOneTimeToken } from '../verification/store.ts';

/** What is wrong with a password. */
interface PasswordProblem {
  readonly reason: 'length' | 'characters' | 'pwned';
  readonly message: string;
}

/** The settings that say what a password must be like. */
export interface PasswordPolicy {
  readonly passwordMinLength: number;
  readonly passwordRequiredCharacters: string;
}

/** Nobody may ask for less. */
const leastLength = 6;
/** What bcrypt takes in; hashes of other servers are verified with it. */
const maxPasswordBytes = 72;

/** Problems of a password, none when it is good enough. */
function passwordProblems(password: string, policy: PasswordPolicy, isLeaked: boolean): PasswordProblem[] {
  const problems: PasswordProblem[] = [];
  const minLength = Math.max(leastLength, policy.passwordMinLength);
  if ([...password].length < minLength)
    problems.push({ reason: 'length', message: `Password should be at least ${minLength} characters.` });
  const sets = characterSets(policy.passwordRequiredCharacters);
  if (sets.some((set) => ![...password].some((character) => set.includes(character)))) {
    const message = `Password should contain at least one character of each: ${sets.join(', ')}.`;
    problems.push({ reason: 'characters', message });
  }
  if (isLeaked)
    problems.push({ reason: 'pwned', message: 'Password is known from leaks, please choose another one.' });
  return problems;
}

/** What a password lacks, as callers are told. */
export interface PasswordWeakness {
  readonly message: string;
  readonly reasons: readonly PasswordProblem['reason'][];
}

/** What a password lacks by the policy of today; undefined for one that is good enough. */
export function passwordWeakness(
  password: string,
  policy: PasswordPolicy,
  { isLeaked }: { readonly isLeaked: boolean },
): PasswordWeakness | undefined {
  const problems = passwordProblems(password, policy, isLeaked);
  if (problems.length === 0) return undefined;
  return {
    message: problems.map(({ message }) => message).join(' '),
    reasons: problems.map(({ reason }) => reason),
  };
}

/** Splits at `:`; `\:` is a colon. */
function characterSets(text: string): string[] {
  return text
    .replaceAll('\\:', '\0')
    .split(':')
    .map((set) => set.replaceAll('\0', ':'))
    .filter((set) => set !== '');
}

/** A new password, and what proves that its owner asks for it. */
interface NewPassword {
  /** Has been checked against the policy. */
  readonly password: string;
  readonly currentPassword: string | undefined;
  /** Empty for none. */
  readonly nonce: string;
}

/** A password that may take the place of the old one. */
export interface ChosenPassword {
  readonly hash: string;
  /** The token of the nonce, to be spent with the change; absent when none was asked for. */
  readonly nonceToken: FoundOneTimeToken | undefined;
}

/**
 * Makes sure that a user may choose a new password, and hashes it.
 *
 * @throws AppError `reauthentication_needed`, `reauthentication_not_valid`, `current_password_required`, `current_password_invalid`,
 * `same_password`, `over_request_rate_limit`.
 */
export type ChoosePassword = (
  owner: { readonly user: User; readonly session: Session | undefined },
  wanted: NewPassword,
  metadata: RequestMetadata,
) => Promise<ChosenPassword>;

/** A session that is younger says by itself that its user has just been there. */
const recentMs = 24 * 3_600_000;

/** Creates {@link ChoosePassword}. */
export function createChoosePassword(deps: Context): ChoosePassword {
  const { passwords, settings } = deps;
  const checkNonce = createCheckNonce(deps);
  const limiter = new GuessLimiter(deps);

  function needsNonce(session: Session | undefined, nowMs: number): boolean {
    if (!settings.updatePasswordRequireReauthentication) return false;
    return session === undefined || session.createdAt.getTime() + recentMs < nowMs;
  }

  async function checkCurrent(
    { id, email, phone }: User,
    { hash, current = '' }: { readonly hash: string; readonly current: string | undefined },
    metadata: RequestMetadata,
  ): Promise<void> {
    if (current === '') throw errors.current_password_required();
    const guess = { kind: 'password', contact: email || phone || id } as const;
    const matches = await limiter.guess(guess, metadata, async () =>
      (await passwords.verify(current, hash, id)) ? { matches: true } : undefined,
    );
    if (matches === undefined) throw errors.current_password_invalid();
  }

  return async ({ user, session }, { password, currentPassword, nonce }, metadata) => {
    const asksNonce = needsNonce(session, metadata.nowMs);
    if (asksNonce && nonce === '') throw errors.reauthentication_needed();
    const nonceToken = asksNonce ? await checkNonce(user, nonce, metadata) : undefined;
    const { passwordHash: old } = user;
    if (old !== undefined) {
      // Whoever has come by a recovery mail does not know it.
      const recovers = session?.methods.some(({ method }) => method === 'recovery') ?? false;
      if (settings.updatePasswordRequireCurrentPassword && !recovers)
        await checkCurrent(user, { hash: old, current: currentPassword }, metadata);
      if (await passwords.verify(password, old, user.id)) throw errors.same_password();
    }
    return { hash: await passwords.hash(password), nonceToken };
  };
}

/**
 * Checks a new password against the policy, and against those that are known from leaks.
 *
 * @throws AppError `validation_failed` when it is too long; `weak_password` with reasons; `unexpected_failure` when the leaks cannot be
 * asked and the settings say that no password is taken then.
 */
export async function checkPassword(
  password: string,
  { leakedPasswords, settings }: Pick<Context, 'leakedPasswords' | 'settings'>,
): Promise<void> {
  checkPasswordLength(password);

  async function isLeaked(): Promise<boolean> {
    try {
      return await leakedPasswords.includes(password);
    } catch (cause) {
      if (settings.passwordHibpFailClosed)
        throw errors.unexpected_failure({
          message: 'Unable to tell whether the password is known from leaks, please try again later',
          cause,
        });
      return false;
    }
  }

  const weakness = passwordWeakness(password, settings, { isLeaked: await isLeaked() });
  if (weakness !== undefined) throw new WeakPasswordError(weakness.message, weakness.reasons);
}

/** Checks that a password is not too long, whatever else it is. @throws AppError `validation_failed`. */
export function checkPasswordLength(password: string): void {
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw errors.validation_failed({
      message: `Password cannot be longer than ${maxPasswordBytes} characters`,
    });
}
