import { bool, int } from '@tollgate/kit/settings';
import { seconds } from './builders.ts';
import { svc } from './variable-names.ts';

const group = 'Multi-factor authentication';

function switchOf(name: string, fallback: boolean, doc: string) {
  return bool({ ...svc(name), group, default: fallback, doc });
}

/** Second factors. */
export const mfaSettings = {
  mfaTotpEnrollEnabled: switchOf('MFA_TOTP_ENROLL_ENABLED', true, 'Enrolling of TOTP.'),
  mfaTotpVerifyEnabled: switchOf('MFA_TOTP_VERIFY_ENABLED', true, 'Verifying with TOTP.'),
  mfaChallengeExpiryMs: seconds({
    ...svc('MFA_CHALLENGE_EXPIRY_DURATION'),
    group,
    default: '5m',
    doc: 'Life of a challenge; less than 5 minutes counts as 5 minutes.',
  }),
  mfaFactorExpiryMs: seconds({
    ...svc('MFA_FACTOR_EXPIRY_DURATION'),
    group,
    default: '5m',
    doc: 'Age at which an unverified factor goes when the user enrols another one; less than 5 minutes counts as 5 minutes.',
  }),
  mfaMaxEnrolledFactors: int({
    ...svc('MFA_MAX_ENROLLED_FACTORS'),
    group,
    default: 10,
    min: 0,
    doc: 'Most factors of a user.',
  }),
  mfaMaxVerifiedFactors: int({
    ...svc('MFA_MAX_VERIFIED_FACTORS'),
    group,
    default: 10,
    min: 0,
    doc: 'Most verified factors of a user.',
  }),
};
