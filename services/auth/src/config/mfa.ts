import { bool, int } from '@tollgate/kit/settings';
import { lifetime, seconds, svc, textOrDefault } from './builders.ts';

const group = 'Multi-factor authentication';

function mfaSwitch(name: string, fallback: boolean, doc: string) {
  return bool({ ...svc(name), group, default: fallback, doc });
}

export const mfaSettings = {
  'mfaEnabled:totp:enroll': mfaSwitch('MFA_TOTP_ENROLL_ENABLED', true, 'Enable enrollment of TOTP.'),
  'mfaEnabled:totp:verify': mfaSwitch('MFA_TOTP_VERIFY_ENABLED', true, 'Enable verification with TOTP.'),
  'mfaEnabled:phone:enroll': mfaSwitch('MFA_PHONE_ENROLL_ENABLED', false, 'Enable enrollment of phones.'),
  'mfaEnabled:phone:verify': mfaSwitch(
    'MFA_PHONE_VERIFY_ENABLED',
    false,
    'Enable verification with codes sent to phones, through `SMS_PROVIDER` or the hook.',
  ),
  'mfaEnabled:webauthn:enroll': mfaSwitch(
    'MFA_WEB_AUTHN_ENROLL_ENABLED',
    false,
    'Enable enrollment of security keys and other authenticators, for `WEBAUTHN_RP_ID`.',
  ),
  'mfaEnabled:webauthn:verify': mfaSwitch(
    'MFA_WEB_AUTHN_VERIFY_ENABLED',
    false,
    'Enable verification with security keys and other authenticators.',
  ),
  mfaPhoneTemplate: textOrDefault({
    ...svc('MFA_PHONE_TEMPLATE'),
    group,
    default: 'Your code is {{ .Code }}',
    doc: 'Template of the message with a code for a second factor.',
  }),
  mfaPhoneOtpLength: int({
    ...svc('MFA_PHONE_OTP_LENGTH'),
    group,
    default: 6,
    doc: 'Digits of such a code, from 6 to 10. Other values mean 6.',
  }),
  mfaPhoneMaxFrequencyMs: lifetime({
    ...svc('MFA_PHONE_MAX_FREQUENCY'),
    group,
    default: '60s',
    doc: 'Minimum interval between two of these messages to a phone of a user.',
  }),
  'mfaEnabled:recovery_code:enroll': mfaSwitch(
    'MFA_RECOVERY_CODES_ENROLL_ENABLED',
    false,
    'Enable generation of recovery codes, for users with another verified factor.',
  ),
  'mfaEnabled:recovery_code:verify': mfaSwitch(
    'MFA_RECOVERY_CODES_VERIFY_ENABLED',
    false,
    'Enable verification with recovery codes.',
  ),
  mfaRecoveryCodesCount: int({
    ...svc('MFA_RECOVERY_CODES_COUNT'),
    group,
    default: 10,
    min: 4,
    max: 16,
    doc: 'Number of recovery codes of a user.',
  }),
  mfaRecoveryCodesCodeLength: int({
    ...svc('MFA_RECOVERY_CODES_CODE_LENGTH'),
    group,
    default: 16,
    min: 13,
    max: 32,
    doc: 'Characters of a recovery code, of 5 bits each.',
  }),
  mfaRecoveryCodesMaxVerifyAttempts: int({
    ...svc('MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS'),
    group,
    default: 5,
    min: 3,
    max: 15,
    doc: 'Wrong recovery codes of a user from one network (/24 or /64) after which recovery codes are locked for this network.',
  }),
  mfaRecoveryCodesLockoutMs: seconds({
    ...svc('MFA_RECOVERY_CODES_LOCKOUT_DURATION'),
    group,
    default: '15m',
    min: '1m',
    max: '24h',
    doc: 'How long recovery codes stay locked.',
  }),
  mfaChallengeExpiryMs: seconds({
    ...svc('MFA_CHALLENGE_EXPIRY_DURATION'),
    group,
    default: '5m',
    doc: 'Lifetime of a challenge, at least 5 minutes.',
  }),
  mfaFactorExpiryMs: seconds({
    ...svc('MFA_FACTOR_EXPIRY_DURATION'),
    group,
    default: '5m',
    doc: 'Age at which an unverified factor is removed when the user enrolls another one, at least 5 minutes.',
  }),
  mfaMaxEnrolledFactors: int({
    ...svc('MFA_MAX_ENROLLED_FACTORS'),
    group,
    default: 10,
    min: 0,
    doc: 'Maximum number of factors of a user.',
  }),
  mfaMaxVerifiedFactors: int({
    ...svc('MFA_MAX_VERIFIED_FACTORS'),
    group,
    default: 10,
    min: 0,
    doc: 'Maximum number of verified factors of a user.',
  }),
};
