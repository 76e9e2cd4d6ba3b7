import { bool, int, text } from '@tollgate/kit/settings';
import { textOrDefault } from './builders.ts';
import { svc } from './variable-names.ts';

const group = 'Passwords';

/** What a password must be like. */
export const passwordSettings = {
  passwordMinLength: int({
    ...svc('PASSWORD_MIN_LENGTH'),
    group,
    default: 6,
    min: 0,
    max: 72,
    doc: 'Fewest characters; less than 6 counts as 6.',
  }),
  passwordRequiredCharacters: text({
    ...svc('PASSWORD_REQUIRED_CHARACTERS'),
    group,
    default: '',
    doc: 'Sets of characters separated by `:` (`\\:` is the colon itself); a password has one of each.',
  }),
  passwordHibpEnabled: bool({
    ...svc('PASSWORD_HIBP_ENABLED'),
    group,
    default: false,
    doc: 'Reject new passwords found in Pwned Passwords, and report a leaked one at sign-in. Only the first five hexadecimal digits of the SHA-1 of a password are sent.',
  }),
  passwordHibpFailClosed: bool({
    ...svc('PASSWORD_HIBP_FAIL_CLOSED'),
    group,
    default: false,
    doc: 'Take no new password while that service does not answer; else they are taken, and the log says so.',
  }),
  passwordHibpUserAgent: textOrDefault({
    ...svc('PASSWORD_HIBP_USER_AGENT'),
    group,
    default: 'Tollgate',
    matches: { pattern: /^[\x20-\x7e]{1,256}$/, form: 'the value of a header: up to 256 visible characters' },
    doc: 'User-Agent of requests to Pwned Passwords.',
  }),
  passwordHibpUrl: text({
    ...svc('PASSWORD_HIBP_URL'),
    group,
    default: 'https://api.pwnedpasswords.com',
    matches: { pattern: /^https?:\/\/[^/?#@]+[^?#]*$/, form: 'an absolute URL with http or https' },
    doc: 'Base URL of the service, or of a copy of it.',
  }),
  updatePasswordRequireReauthentication: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION'),
    group,
    default: false,
    doc: 'A new password needs a nonce from `/reauthenticate` when the session is older than a day.',
  }),
  updatePasswordRequireCurrentPassword: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD'),
    group,
    default: false,
    doc: 'A new password needs the old one, unless there is none or the user has come by a recovery mail.',
  }),
  uniformAnswers: bool({
    ...svc('SECURITY_UNIFORM_ANSWERS'),
    group,
    default: false,
    doc: 'Answers to sign-up, /otp, /magiclink, /recover and /resend are equal for known and unknown users in every field and limit; mails leave after the answer. Users must have to confirm their contacts.',
  }),
};
