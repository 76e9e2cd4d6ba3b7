import type { AppError } from '@tollgate/kit/errors';
import type { Settings } from '../config/settings.ts';
import { UsedCodeError, WeakPasswordError } from '../errors.ts';
import { passwordRule } from '../passwords/passwords.ts';
import { en, type PageTexts } from './texts/en.ts';

/** Problem of a form. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  /** Name of the field that it belongs to. */
  readonly field?: string | undefined;
}

/** Fields of errors by code. */
const fields: ReadonlyMap<string, string> = new Map([
  ['user_already_exists', 'email'],
  ['email_exists', 'email'],
  ['phone_exists', 'phone'],
  ['weak_password', 'password'],
  ['same_password', 'password'],
  ['current_password_required', 'current_password'],
  ['current_password_invalid', 'current_password'],
  ['reauthentication_needed', 'nonce'],
  ['reauthentication_not_valid', 'nonce'],
  ['mfa_verification_failed', 'code'],
  ['mfa_challenge_expired', 'code'],
  ['mfa_verified_factor_exists', 'phone'],
  ['device_code_invalid', 'user_code'],
  ['email_address_invalid', 'email'],
  ['mfa_factor_name_conflict', 'friendly_name'],
]);

/** The text of an error for users: its own message without one, which hooks may have set. */
export function describeProblem(
  error: AppError,
  { texts, settings }: { readonly texts: PageTexts; readonly settings: Settings },
): Problem {
  const { code } = error;
  const message =
    error instanceof WeakPasswordError
      ? describeWeakness(error, { texts, settings })
      : (findText(error instanceof UsedCodeError ? 'mfa_code_used' : code, texts) ??
        untranslated(error, texts));
  return { code, message, field: fields.get(code) };
}

const codesOfHooks: readonly string[] = ['unknown', 'mfa_verification_rejected'];

/** Messages of hooks are the operator's; others are English. */
function untranslated({ code, message }: AppError, texts: PageTexts): string {
  return codesOfHooks.includes(code) || texts === en ? message : texts.errors.validation_failed;
}

function describeWeakness(
  { reasons }: WeakPasswordError,
  { texts, settings }: { readonly texts: PageTexts; readonly settings: Settings },
): string {
  const { length, sets } = passwordRule(settings);
  const breaksRule = reasons.some((reason) => reason === 'length' || reason === 'characters');
  return [
    ...(breaksRule ? [`${texts.password}: ${texts.passwordRule(length, sets)}`] : []),
    ...(reasons.includes('context') ? [texts.errors.password_has_context] : []),
    ...(reasons.includes('pwned') ? [texts.errors.leaked_password] : []),
  ].join(' ');
}

/** The problem of a redirect, which anyone can make up: only known codes are shown. */
export function describeCode(code: string | undefined, texts: PageTexts): Problem | undefined {
  const message = code === undefined ? undefined : findText(code, texts);
  return code === undefined || message === undefined ? undefined : { code, message };
}

function findText(code: string, { errors }: PageTexts): string | undefined {
  return Object.hasOwn(errors, code) ? errors[code as keyof typeof errors] : undefined; // a key of it
}
