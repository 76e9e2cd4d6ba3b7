import { missingRelyingParty } from '../config/webauthn.ts';
import { errors } from '../errors.ts';
import type { Factor } from '../users/factor.ts';
import type { MfaContext } from './context.ts';
import type { FactorType } from './factor-type.ts';
import { phone } from './phone.ts';
import { totp } from './totp.ts';
import { webauthn } from './webauthn.ts';

/** Types of second factors that can be enrolled. A new one is a file and an entry here. */
const factorTypes: Readonly<Record<ChallengedType, FactorType>> = { totp, phone, webauthn };

const notEnabled = {
  totp: { enroll: errors.mfa_totp_enroll_not_enabled, verify: errors.mfa_totp_verify_not_enabled },
  phone: { enroll: errors.mfa_phone_enroll_not_enabled, verify: errors.mfa_phone_verify_not_enabled },
  webauthn: {
    enroll: errors.mfa_webauthn_enroll_not_enabled,
    verify: errors.mfa_webauthn_verify_not_enabled,
  },
} as const satisfies Readonly<Record<ChallengedType, unknown>>;

/** @throws AppError if the settings disable the type */
export function getFactorType(
  { settings }: MfaContext,
  action: 'enroll' | 'verify',
  text: string | undefined,
): FactorType {
  const name = readFactorType(text);
  if (!settings[`mfaEnabled:${name}:${action}`]) throw notEnabled[name][action]();
  const missing = name === 'webauthn' ? missingRelyingParty(settings) : [];
  if (missing.length > 0)
    throw notEnabled[name][action]({ message: `WebAuthn is not configured: set ${missing.join(', ')}` });
  return factorTypes[name];
}

/** Recovery codes have endpoints of their own. */
type ChallengedType = Exclude<Factor['type'], 'recovery_code'>;

/** @throws AppError `validation_failed` */
export function readFactorType(text: string | undefined): ChallengedType {
  if (text === 'totp' || text === 'phone' || text === 'webauthn') return text;
  throw errors.validation_failed({ message: 'factor_type needs to be totp, phone, or webauthn' });
}
