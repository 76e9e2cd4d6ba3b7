import { maxPasswordBytes, type PasswordPolicy, passwordWeakness } from '../../domain/password-policy.ts';
import { errors, WeakPasswordError } from '../../errors.ts';

/**
 * Checks a new password against the policy.
 *
 * @throws AppError `validation_failed` when it is too long; `weak_password` with reasons.
 */
export function checkPassword(password: string, policy: PasswordPolicy): void {
  checkPasswordLength(password);
  const weakness = passwordWeakness(password, policy);
  if (weakness !== undefined) throw new WeakPasswordError(weakness.message, weakness.reasons);
}

/** Checks that a password is not too long, whatever else it is. @throws AppError `validation_failed`. */
export function checkPasswordLength(password: string): void {
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw errors.validation_failed({
      message: `Password cannot be longer than ${maxPasswordBytes} characters`,
    });
}
