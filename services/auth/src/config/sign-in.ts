import { bool, float, int, type Setting, text } from '@tollgate/kit/settings';
import { type ProviderName, providerNames } from '../sign-in/providers.ts';
import { quota, type SettingWithoutEffect, seconds, svc, textOrDefault, withoutEffect } from './builders.ts';

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

const mfaGroup = 'Multi-factor authentication';

function switchOf(name: string, fallback: boolean, doc: string) {
  return bool({ ...svc(name), group: mfaGroup, default: fallback, doc });
}

/** Second factors. */
export const mfaSettings = {
  mfaTotpEnrollEnabled: switchOf('MFA_TOTP_ENROLL_ENABLED', true, 'Enrolling of TOTP.'),
  mfaTotpVerifyEnabled: switchOf('MFA_TOTP_VERIFY_ENABLED', true, 'Verifying with TOTP.'),
  mfaChallengeExpiryMs: seconds({
    ...svc('MFA_CHALLENGE_EXPIRY_DURATION'),
    group: mfaGroup,
    default: '5m',
    doc: 'Life of a challenge; less than 5 minutes counts as 5 minutes.',
  }),
  mfaFactorExpiryMs: seconds({
    ...svc('MFA_FACTOR_EXPIRY_DURATION'),
    group: mfaGroup,
    default: '5m',
    doc: 'Age at which an unverified factor goes when the user enrols another one; less than 5 minutes counts as 5 minutes.',
  }),
  mfaMaxEnrolledFactors: int({
    ...svc('MFA_MAX_ENROLLED_FACTORS'),
    group: mfaGroup,
    default: 10,
    min: 0,
    doc: 'Most factors of a user.',
  }),
  mfaMaxVerifiedFactors: int({
    ...svc('MFA_MAX_VERIFIED_FACTORS'),
    group: mfaGroup,
    default: 10,
    min: 0,
    doc: 'Most verified factors of a user.',
  }),
};

const limitGroup = 'Rate limits';

function perAddress(name: string, events: number, doc: string) {
  return float({
    ...svc(name),
    group: limitGroup,
    default: events,
    min: 0,
    doc: `Requests per client address and ${doc}.`,
  });
}

function wrongGuesses(name: string, guesses: number, doc: string) {
  return int({ ...svc(name), group: limitGroup, default: guesses, min: 1, max: 1_000_000, doc });
}

/** How often things may be done. */
export const limitSettings = {
  rateLimitHeader: text({
    ...svc('RATE_LIMIT_HEADER'),
    group: limitGroup,
    default: '',
    doc: 'Header whose first item takes the place of the client address; behind trusted proxies only.',
  }),
  rateLimitEmailSent: quota({
    ...svc('RATE_LIMIT_EMAIL_SENT'),
    group: limitGroup,
    default: '30',
    doc: 'Mails of all users together.',
  }),
  rateLimitSmsSent: quota({
    ...svc('RATE_LIMIT_SMS_SENT'),
    group: limitGroup,
    default: '30',
    doc: 'Text messages of all users together.',
  }),
  rateLimitOtp: perAddress(
    'RATE_LIMIT_OTP',
    30,
    '5 minutes: /signup, /magiclink, /otp, /recover, /resend, PUT /user',
  ),
  rateLimitVerify: perAddress('RATE_LIMIT_VERIFY', 30, '5 minutes: /verify'),
  rateLimitTokenRefresh: perAddress('RATE_LIMIT_TOKEN_REFRESH', 150, '5 minutes: /token'),
  rateLimitSso: withoutEffect(perAddress('RATE_LIMIT_SSO', 30, '5 minutes: /sso')),
  rateLimitAnonymousUsers: perAddress('RATE_LIMIT_ANONYMOUS_USERS', 30, 'hour: anonymous sign-up'),
  rateLimitFactorVerify: perAddress(
    'MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY',
    15,
    'minute: challenge and verify of factors',
  ),
  wrongPasswordsPerNetwork: wrongGuesses(
    'RATE_LIMIT_WRONG_PASSWORDS',
    10,
    'Wrong passwords for an account from one network (/24 or /64) in 10 minutes. Each further one has to wait, from 1 minute up to an hour.',
  ),
  wrongPasswordsPerAccount: wrongGuesses(
    'RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT',
    100,
    'Wrong passwords for an account in an hour. Networks from which it was signed in during the last 90 days are not refused.',
  ),
  wrongCodesPerNetwork: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES',
    10,
    'As `RATE_LIMIT_WRONG_PASSWORDS`, for codes of mails and text messages.',
  ),
  wrongCodesPerAccount: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES_PER_ACCOUNT',
    100,
    'As `RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT`, for codes. Links in mails are not refused.',
  ),
  wrongCodesPerMessage: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES_PER_MESSAGE',
    30,
    'Wrong guesses after which a code that was sent is not taken any more, except from a network from which the account was signed in.',
  ),
};

const providerGroup = 'External providers';

type ProviderSettings = {
  readonly [P in ProviderName as `externalEnabled:${P}`]: SettingWithoutEffect<boolean>;
} & {
  readonly [P in ProviderName as `external${'ClientId' | 'Secret' | 'RedirectUri' | 'Url'}:${P}`]: SettingWithoutEffect<string>;
};

/** Five settings per external provider: `settings['externalClientId:github']`. */
// Object.fromEntries forgets which key has which value; the keys are made from the names as the type says.
export const providerSettings = Object.fromEntries<Setting<string> | Setting<boolean>>(
  providerNames.flatMap((name) => {
    const of = (part: string) => ({
      ...svc(`EXTERNAL_${name.toUpperCase()}_${part}`),
      group: providerGroup,
    });
    return [
      [
        `externalEnabled:${name}`,
        withoutEffect(bool({ ...of('ENABLED'), default: false, doc: 'Sign-in with it.' })),
      ],
      [
        `externalClientId:${name}`,
        withoutEffect(text({ ...of('CLIENT_ID'), default: '', doc: 'Client id there.' })),
      ],
      [
        `externalSecret:${name}`,
        withoutEffect(text({ ...of('SECRET'), default: '', secret: true, doc: 'Client secret.' })),
      ],
      [
        `externalRedirectUri:${name}`,
        withoutEffect(
          text({ ...of('REDIRECT_URI'), default: '', doc: 'URL of `/callback` as registered there.' }),
        ),
      ],
      [
        `externalUrl:${name}`,
        withoutEffect(text({ ...of('URL'), default: '', doc: 'Base URL of its endpoints.' })),
      ],
    ] as const;
  }),
) as ProviderSettings;
