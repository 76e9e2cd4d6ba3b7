import { bool, int } from '@tollgate/kit/settings';
import { seconds, svc } from './builders.ts';

const group = 'Multi-factor authentication';

function mfaSwitch(name: string, fallback: boolean, doc: string) {
  return bool({ ...svc(name), group, default: fallback, doc });
}

export const mfaSettings = {
  'mfaEnabled:totp:enroll': mfaSwitch('MFA_TOTP_ENROLL_ENABLED', true, 'Enable enrollment of TOTP.'),
  'mfaEnabled:totp:verify': mfaSwitch('MFA_TOTP_VERIFY_ENABLED', true, 'Enable verification with TOTP.'),
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
