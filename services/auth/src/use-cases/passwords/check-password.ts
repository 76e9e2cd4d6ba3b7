import { maxPasswordBytes, type PasswordPolicy, passwordWeakness } from '../../domain/password-policy.ts';
import { errors, WeakPasswordError } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';

/** What checking a new password takes. */
export type CheckPasswordDeps = DepsWith<'leakedPasswords', keyof PasswordPolicy | 'passwordHibpFailClosed'>;

/**
 * Checks a new password against the policy, and against those that are known from leaks.
 *
 * @throws AppError `validation_failed` when it is too long; `weak_password` with reasons; `unexpected_failure` when the leaks cannot be
 * asked and the settings say that no password is taken then.
 */
export async function checkPassword(
  password: string,
  { leakedPasswords, settings }: CheckPasswordDeps,
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
