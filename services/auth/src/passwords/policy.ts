import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors, WeakPasswordError, type WeakPasswordReason } from '../errors.ts';

/** Lower values of the setting have no effect. */
const leastLength = 6;
/** bcrypt ignores further bytes; imported hashes are verified with it. */
const maxPasswordBytes = 72;

/** Why the policy rejects a password. */
export interface PasswordWeakness {
  readonly message: string;
  readonly reasons: readonly WeakPasswordReason[];
}

type PolicyContext = Pick<Context, 'leakedPasswords' | 'settings'>;

/**
 * Checks a new password against the policy and the leaked passwords.
 *
 * @throws AppError `validation_failed` if it is too long; `weak_password` with reasons;
 * `unexpected_failure` if the lookup of leaked passwords fails and the settings fail closed.
 */
export async function checkPassword(context: PolicyContext, password: string): Promise<void> {
  checkPasswordLength(password);
  const failClosed = context.settings.passwordHibpFailClosed;
  const weakness = await findWeakness(context, password, { failClosed });
  if (weakness !== undefined) throw new WeakPasswordError(weakness.message, weakness.reasons);
}

/** @throws AppError `validation_failed` if the password is too long. */
export function checkPasswordLength(password: string): void {
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw errors.validation_failed({
      message: `Password cannot be longer than ${maxPasswordBytes} characters`,
    });
}

/** Why the current policy rejects a password; undefined if it does not. */
export async function findWeakness(
  context: PolicyContext,
  password: string,
  { failClosed }: { readonly failClosed: boolean },
): Promise<PasswordWeakness | undefined> {
  const problems = policyProblems(password, context.settings);
  if (await isLeaked(context, password, { failClosed }))
    problems.push({ reason: 'pwned', message: 'Password is known from leaks, please choose another one.' });
  if (problems.length === 0) return undefined;
  return {
    message: problems.map(({ message }) => message).join(' '),
    reasons: problems.map(({ reason }) => reason),
  };
}

async function isLeaked(
  { leakedPasswords, settings }: PolicyContext,
  password: string,
  { failClosed }: { readonly failClosed: boolean },
): Promise<boolean> {
  if (!settings.passwordHibpEnabled) return false;
  try {
    return await leakedPasswords.includes(password);
  } catch (cause) {
    if (!failClosed) return false;
    throw errors.unexpected_failure({
      message: 'Unable to check whether the password is known from leaks, please try again later',
      cause,
    });
  }
}

interface PasswordProblem {
  readonly reason: WeakPasswordReason;
  readonly message: string;
}

function policyProblems(
  password: string,
  settings: Pick<Settings, 'passwordMinLength' | 'passwordRequiredCharacters'>,
): PasswordProblem[] {
  const problems: PasswordProblem[] = [];
  const minLength = Math.max(leastLength, settings.passwordMinLength);
  if ([...password].length < minLength)
    problems.push({ reason: 'length', message: `Password should be at least ${minLength} characters.` });
  const sets = parseCharacterSets(settings.passwordRequiredCharacters);
  if (sets.some((set) => ![...password].some((character) => set.includes(character)))) {
    const message = `Password should contain at least one character of each: ${sets.join(', ')}.`;
    problems.push({ reason: 'characters', message });
  }
  return problems;
}

/** Splits at `:`; `\:` is a colon. */
function parseCharacterSets(text: string): string[] {
  return text
    .replaceAll('\\:', '\0')
    .split(':')
    .map((set) => set.replaceAll('\0', ':'))
    .filter((set) => set !== '');
}
