import { type Settings, settingsSpec } from '../config/settings.ts';

/** A test of this repository as a proof: its file below `services/auth/test`, and its title. */
interface Proof {
  readonly file: string;
  readonly title: string;
}

type SettingKey = keyof typeof settingsSpec;

/** A requirement of OWASP ASVS 5.0, level 1 or 2, in our words. */
interface Requirement {
  readonly id: string;
  readonly text: string;
  /** A test of the behavior. Absent: `because` says why nothing can be printed as holding. */
  readonly proof?: Proof;
  /** The settings that decide; none if it holds with any. */
  readonly decidedBy?: readonly SettingKey[];
  readonly holds?: (settings: Settings) => boolean;
  /**
   * Without proof: the server lacks it, the application or operator decides, or it does not apply.
   */
  readonly otherwise?: 'open' | 'yours' | 'not applicable';
  readonly because?: string;
}

const minuteMs = 60_000;

/** Shown for a requirement. */
type AsvsState = 'holds' | 'fails' | 'open' | 'yours' | 'not applicable';

function proven(id: string, text: string, file: string, title: string): Requirement {
  return { id, text, proof: { file: `${file}.test.ts`, title } };
}

function decided(
  requirement: Requirement,
  decidedBy: readonly SettingKey[],
  holds: (settings: Settings) => boolean,
): Requirement {
  return { ...requirement, decidedBy, holds };
}

function unproven(
  otherwise: 'open' | 'yours' | 'not applicable',
  id: string,
  text: string,
  because: string,
): Requirement {
  return { id, text, otherwise, because };
}

const resets = 'user with a second factor changes credentials and protected metadata only at aal2';
const recentSignIn = 'changes need a recent sign-in, the current password or a nonce';
const audiences = 'with a required audience, tokens have one, and those of others are rejected';
const timeouts = 'session ends by timebox and by inactivity';

/** Chapters V6 (authentication), V7 (sessions) and V9 (self-contained tokens). */
export const asvsRequirements: readonly Requirement[] = [
  unproven('yours', '6.1.1', 'defenses against guessing are documented', 'docs/limits.md is a start'),
  unproven(
    'yours',
    '6.1.2',
    'words that passwords must not have are documented',
    'PASSWORD_REJECT_CONTEXT in docs/settings-auth.md, and yours in PASSWORD_CONTEXT_WORDS',
  ),
  unproven(
    'yours',
    '6.1.3',
    'all ways to sign in are documented with their strength',
    'GET /settings lists those enabled',
  ),
  decided(
    proven(
      '6.2.1',
      'passwords have at least 8 characters',
      'config/effects',
      'PASSWORD_MIN_LENGTH is at least 6',
    ),
    ['passwordMinLength'],
    (s) => s.passwordMinLength >= 8,
  ),
  proven(
    '6.2.2',
    'users can change their password',
    'account/update',
    'new password ends all other sessions and invalidates sent tokens',
  ),
  decided(
    proven(
      '6.2.3',
      'a change needs the current password',
      'account/update',
      'current password is required if configured',
    ),
    ['updatePasswordRequireCurrentPassword'],
    (s) => s.updatePasswordRequireCurrentPassword,
  ),
  decided(
    proven(
      '6.2.4',
      'common passwords are rejected',
      'passwords/leaked-passwords',
      'leaked password is rejected wherever a password is set',
    ),
    ['passwordHibpEnabled'],
    (s) => s.passwordHibpEnabled,
  ),
  decided(
    proven(
      '6.2.5',
      'no rules for the characters of a password',
      'cli/asvs',
      'passwords of any characters are verified exactly, for years',
    ),
    ['passwordRequiredCharacters'],
    (s) => s.passwordRequiredCharacters === '',
  ),
  unproven('yours', '6.2.6', 'password fields are masked', 'those of the hosted pages are'),
  unproven(
    'yours',
    '6.2.7',
    'passwords can be pasted, and filled in by managers',
    'the hosted pages allow it',
  ),
  proven(
    '6.2.8',
    'passwords are verified exactly as received',
    'cli/asvs',
    'passwords of any characters are verified exactly, for years',
  ),
  decided(
    proven(
      '6.2.9',
      'passwords may have 64 characters',
      'passwords/context-words',
      'with strict, passwords of 64 characters of any script are verified to the last one',
    ),
    ['passwordMaxBytes'],
    (s) => s.passwordMaxBytes >= 64 * 4,
  ),
  proven(
    '6.2.10',
    'passwords do not expire',
    'cli/asvs',
    'passwords of any characters are verified exactly, for years',
  ),
  decided(
    proven(
      '6.2.11',
      'words of the context are rejected in passwords',
      'passwords/context-words',
      'passwords with words of the user or the site are rejected wherever a password is set',
    ),
    ['passwordRejectContext'],
    (s) => s.passwordRejectContext,
  ),
  decided(
    proven(
      '6.2.12',
      'leaked passwords are rejected',
      'passwords/leaked-passwords',
      'leaked password is rejected wherever a password is set',
    ),
    ['passwordHibpEnabled'],
    (s) => s.passwordHibpEnabled,
  ),
  proven(
    '6.3.1',
    'guessing passwords is limited',
    'limits/limiter',
    'ten of 120 concurrent wrong passwords are verified, for known and unknown accounts',
  ),
  proven(
    '6.3.2',
    'there are no default accounts',
    'cli/asvs',
    'passwords of any characters are verified exactly, for years',
  ),
  unproven(
    'yours',
    '6.3.3',
    'a second factor is required',
    'factors are optional for users: require aal2 in the route rules of ext_authz',
  ),
  unproven('yours', '6.3.4', 'all ways to sign in are equally strong', 'switch off the weak ones'),
  proven(
    '6.4.1',
    'links and codes of new users expire and are spent',
    'verification/verify',
    'codes and links expire after MAILER_OTP_EXP and SMS_OTP_EXP',
  ),
  unproven('not applicable', '6.4.2', 'no password hints and secret questions', 'there are none'),
  proven('6.4.3', 'a password reset does not bypass the second factor', 'account/update', resets),
  unproven(
    'yours',
    '6.4.4',
    'a lost factor is replaced after proof of identity',
    'recovery codes, or an administrator',
  ),
  proven(
    '6.5.1',
    'codes are accepted once',
    'mfa/factors',
    'code is accepted once, also for another challenge',
  ),
  proven(
    '6.5.2',
    'recovery codes are stored as salted hashes',
    'mfa/recovery-codes',
    'codes are stored as salted hashes of Argon2id',
  ),
  proven('6.5.3', 'codes and seeds are random', 'keys/secrets', 'secrets and codes are from node:crypto'),
  proven(
    '6.5.4',
    'codes have at least 20 bits',
    'keys/secrets',
    'every digit of a code is drawn from all ten digits',
  ),
  decided(
    proven(
      '6.5.5',
      'codes and links sent expire within 10 minutes',
      'verification/verify',
      'codes and links expire after MAILER_OTP_EXP and SMS_OTP_EXP',
    ),
    ['mailerOtpExpMs', 'smsOtpExpMs'],
    (s) => Math.max(s.mailerOtpExpMs, s.smsOtpExpMs) <= 10 * minuteMs,
  ),
  unproven(
    'yours',
    '6.6.1',
    'codes by SMS are an alternative to a stronger factor',
    'MFA_PHONE_ENROLL_ENABLED is off by default',
  ),
  proven(
    '6.6.2',
    'a code belongs to the request that it was sent for',
    'mfa/factors',
    'challenge is bound to client address, expiry and factor',
  ),
  proven(
    '6.6.3',
    'guessing codes is limited',
    'mfa/factors',
    'attempts per factor are limited across the addresses of a network',
  ),
  proven(
    '6.8.1',
    'an identity provider cannot take over users of another one',
    'providers/accounts',
    'identity with an unverified email is not linked',
  ),
  proven(
    '6.8.2',
    'signatures of ID tokens are verified',
    'providers/id-token-grant',
    'ID tokens that are not signed with a key of the provider are rejected',
  ),
  unproven('not applicable', '6.8.3', 'SAML assertions are accepted once', 'SAML is not supported'),
  unproven(
    'not applicable',
    '6.8.4',
    'the strength of a sign-in at a provider is verified',
    'nothing relies on it: a sign-in at a provider is aal1, and only a factor of this server raises it',
  ),
  unproven('yours', '7.1.1', 'session lifetimes are documented', 'see 7.3.1 and 7.3.2'),
  unproven(
    'yours',
    '7.1.2',
    'the number of parallel sessions is documented',
    'SESSIONS_SINGLE_PER_USER limits it',
  ),
  unproven('yours', '7.1.3', 'systems with federated sessions are documented', 'see 7.6.1'),
  proven(
    '7.2.1',
    'tokens are verified by the server',
    'sessions/authenticate',
    'claims are parsed only after the signature was verified',
  ),
  proven(
    '7.2.2',
    'sessions use tokens that change',
    'sessions/refresh',
    'only the immediately previous token may be reused',
  ),
  decided(
    proven(
      '7.2.3',
      'session tokens have at least 128 bits',
      'sessions/token-digests',
      'refresh tokens of 160 bits are stored as digests, which are no tokens',
    ),
    ['tokenDigests', 'refreshTokenAlgorithmVersion'],
    // The MAC of a token of version 2 has 128 bits.
    (s) => s.tokenDigests || s.refreshTokenAlgorithmVersion === 2,
  ),
  decided(
    proven(
      '7.2.4',
      'a sign-in ends the previous session',
      'sessions/sessions',
      'with a single session per user, older ones are not refreshed',
    ),
    ['sessionSinglePerUser'],
    (s) => s.sessionSinglePerUser,
  ),
  decided(
    proven('7.3.1', 'sessions end by inactivity', 'sessions/refresh', timeouts),
    ['sessionInactivityTimeoutMs'],
    (s) => s.sessionInactivityTimeoutMs > 0,
  ),
  decided(
    proven('7.3.2', 'sessions have a maximum lifetime', 'sessions/refresh', timeouts),
    ['sessionTimeboxMs'],
    (s) => s.sessionTimeboxMs > 0,
  ),
  decided(
    proven(
      '7.4.1',
      'a sign-out ends the session',
      'sessions/sign-out',
      'local sign-out ends the current session',
    ),
    ['statefulBearer'],
    (s) => s.statefulBearer,
  ),
  proven(
    '7.4.2',
    'sessions of deleted users end',
    'admin/users',
    'sessions of a deleted user end, also of one whose row is kept',
  ),
  proven(
    '7.4.3',
    'users can end other sessions after a change',
    'sessions/sign-out',
    'sign-out of others keeps the current session',
  ),
  unproven('yours', '7.4.4', 'pages have a sign-out', 'the hosted pages have one'),
  proven(
    '7.4.5',
    'administrators can end sessions',
    'sessions/sessions',
    'only administrators list and end sessions of other users',
  ),
  decided(
    proven(
      '7.5.1',
      'changes of email, phone and factors need a recent sign-in',
      'sessions/recent-sign-in',
      recentSignIn,
    ),
    ['recentSignInMs'],
    (s) => s.recentSignInMs > 0,
  ),
  decided(
    proven(
      '7.5.2',
      'users can list and end sessions, after a recent sign-in',
      'sessions/recent-sign-in',
      recentSignIn,
    ),
    ['recentSignInMs'],
    (s) => s.recentSignInMs > 0,
  ),
  unproven(
    'yours',
    '7.6.1',
    'sessions of providers and of the server end as documented',
    'they are independent',
  ),
  decided(
    proven(
      '7.6.2',
      'a session starts by an action of the user',
      'pages/link-page',
      'opening a link does not spend it, its button does, once',
    ),
    ['mailerLinkPageEnabled'],
    (s) => s.mailerLinkPageEnabled,
  ),
  proven(
    '9.1.1',
    'signatures are verified before claims',
    'sessions/authenticate',
    'claims are parsed only after the signature was verified',
  ),
  proven(
    '9.1.2',
    'algorithms are those of the keys',
    'sessions/authenticate',
    'public key of the JWKS is not accepted as an HS256 secret, in any form',
  ),
  proven(
    '9.1.3',
    'keys are those of the settings',
    'sessions/authenticate',
    'kid is only looked up: paths, prototypes and embedded keys are rejected',
  ),
  proven(
    '9.2.1',
    'times of tokens are verified',
    'sessions/authenticate',
    'malformed and future times are rejected',
  ),
  proven(
    '9.2.2',
    'only access tokens are accepted',
    'sessions/authenticate',
    'tokens of other types are rejected',
  ),
  decided(
    proven('9.2.3', 'the audience is verified', 'sessions/authenticate', audiences),
    ['jwtAudienceRequired'],
    (s) => s.jwtAudienceRequired,
  ),
  decided(
    proven('9.2.4', 'tokens for several audiences name theirs', 'sessions/authenticate', audiences),
    ['jwtAudienceRequired'],
    (s) => s.jwtAudienceRequired,
  ),
];

export interface AsvsResult {
  readonly id: string;
  readonly text: string;
  readonly state: AsvsState;
  /** The settings that decide, or the reason. */
  readonly detail: string;
}

export function evaluateAsvs(settings: Settings): AsvsResult[] {
  return asvsRequirements.map(
    ({ id, text, proof, decidedBy = [], holds, otherwise = 'open', because = '' }) => {
      if (proof === undefined) return { id, text, state: otherwise, detail: because };
      const state = (holds?.(settings) ?? true) ? 'holds' : 'fails';
      return { id, text, state, detail: decidedBy.map((key) => settingsSpec[key].env).join(', ') };
    },
  );
}

/** A line for each requirement, and a summary. */
export function formatAsvs(results: readonly AsvsResult[], profile: Settings['securityProfile']): string {
  const lines = results.map(({ id, text, state, detail }) =>
    `${id.padEnd(7)} ${state.padEnd(15)} ${text}${detail === '' ? '' : ` (${detail})`}`.trimEnd(),
  );
  const count = (state: AsvsState): string =>
    `${results.filter((result) => result.state === state).length} ${state}`;
  const states = ['holds', 'fails', 'open', 'yours', 'not applicable'] as const;
  return [
    `OWASP ASVS 5.0, level 2, chapters V6, V7 and V9, with the security profile ${profile}:`,
    '',
    ...lines,
    '',
    `${states.map(count).join(', ')}. holds: a test of Tollgate proves it. fails: the settings in parentheses decide. open: the server`,
    'does not do it, or no test proves it. yours: the application or its operator decides.',
    '',
  ].join('\n');
}
