import { float, int, text } from '@tollgate/kit/settings';
import { quota } from './builders.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

const group = 'Rate limits';

function perAddress(name: string, events: number, doc: string) {
  return float({
    ...svc(name),
    group,
    default: events,
    min: 0,
    doc: `Requests per client address and ${doc}.`,
  });
}

function wrongGuesses(name: string, guesses: number, doc: string) {
  return int({ ...svc(name), group, default: guesses, min: 1, max: 1_000_000, doc });
}

/** How often things may be done. */
export const limitSettings = {
  rateLimitHeader: text({
    ...svc('RATE_LIMIT_HEADER'),
    group,
    default: '',
    doc: 'Header whose first item takes the place of the client address; behind trusted proxies only.',
  }),
  rateLimitEmailSent: quota({
    ...svc('RATE_LIMIT_EMAIL_SENT'),
    group,
    default: '30',
    doc: 'Mails of all users together.',
  }),
  rateLimitSmsSent: quota({
    ...svc('RATE_LIMIT_SMS_SENT'),
    group,
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
