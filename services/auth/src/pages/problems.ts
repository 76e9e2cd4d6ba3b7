import type { AppError } from '@tollgate/kit/errors';
import type { errors } from '../errors.ts';

/** What is wrong with a form. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  /** Name of the field that it belongs to. */
  readonly field?: string | undefined;
}

interface Text {
  /** The message of the error when absent. */
  readonly message?: string;
  readonly field?: string;
}

/** Errors whose message is for developers, or that belong to a field. */
const texts: Readonly<Partial<Record<keyof typeof errors, Text>>> = {
  invalid_credentials: { message: 'Email or password is not correct.' },
  email_not_confirmed: {
    message: 'Your email address is not confirmed yet. Please follow the link in the email that we sent you.',
  },
  phone_not_confirmed: { message: 'Your phone number is not confirmed yet.' },
  user_banned: { message: 'This account is blocked.' },
  user_already_exists: { message: 'There is already an account with this email address.', field: 'email' },
  email_exists: { message: 'There is already an account with this email address.', field: 'email' },
  signup_disabled: { message: 'New accounts cannot be created here.' },
  weak_password: { field: 'password' },
  same_password: { message: 'Please choose a password that you have not used before.', field: 'password' },
  current_password_required: { message: 'Please enter your current password.', field: 'current_password' },
  current_password_invalid: { message: 'This is not your current password.', field: 'current_password' },
  reauthentication_needed: {
    message: 'We have sent you a code. Please enter it to change the password.',
    field: 'nonce',
  },
  reauthentication_not_valid: { message: 'The code has expired or is not correct.', field: 'nonce' },
  otp_expired: { message: 'This link has expired or was already used. Please request a new one.' },
  flow_state_not_found: { message: 'This link has expired or was already used. Please request a new one.' },
  flow_state_expired: { message: 'This link has expired or was already used. Please request a new one.' },
  bad_code_verifier: { message: 'This link is not complete. Please request a new one.' },
  bad_oauth_state: { message: 'The sign-in took too long, or was started in another browser.' },
  bad_oauth_callback: { message: 'The sign-in at the provider was cancelled.' },
  provider_email_needs_verification: {
    message: 'Please confirm your email address first: we have sent you an email, if the address is known.',
  },
  unexpected_failure: { message: 'Something went wrong. Please try again in a moment.' },
  captcha_failed: { message: 'Please confirm that you are human.' },
  over_request_rate_limit: { message: 'Too many attempts. Please wait a few minutes and try again.' },
  hash_queue_full: { message: 'The server is busy. Please try again in a moment.' },
  mfa_verification_failed: { message: 'The code is not correct, or has expired.', field: 'code' },
  mfa_challenge_expired: { message: 'The code has expired. Please try again.', field: 'code' },
  mfa_verified_factor_exists: { message: 'This phone is already set up.', field: 'phone' },
  mfa_factor_not_found: { message: 'This factor has been removed.' },
  mfa_factor_name_conflict: { message: 'You already have an app with this name.', field: 'friendly_name' },
  single_identity_not_deletable: { message: 'This is the only way to sign in, so it has to stay.' },
  session_not_found: { message: 'This session has already ended.' },
  insufficient_aal: { message: 'Please confirm your second factor first.' },
};

/** The text of an error for users. Hooks may have set the message. */
export function describeProblem({ code, message }: Pick<AppError, 'code' | 'message'>): Problem {
  const text = findText(code);
  return { code, message: text?.message ?? message, field: text?.field };
}

/** The problem of a redirect, which anyone can make up: only known codes are shown. */
export function describeCode(code: string | undefined): Problem | undefined {
  const message = code === undefined ? undefined : findText(code)?.message;
  return code === undefined || message === undefined ? undefined : { code, message };
}

function findText(code: string): Text | undefined {
  return Object.hasOwn(texts, code) ? texts[code as keyof typeof texts] : undefined; // a key of it
}
