import type { JsonObject } from '@tollgate/kit/json';
import { missingRelyingParty } from '../config/webauthn.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Factor } from '../users/factor.ts';
import type { User } from '../users/user.ts';
import type { MfaContext } from './context.ts';
import { phone } from './phone.ts';
import type { Challenge, ChallengeColumns, FactorColumns, VerificationColumns } from './store.ts';
import { totp } from './totp.ts';
import { webauthn } from './webauthn.ts';

/** Behavior of a type of second factor. */
export interface FactorType {
  /** Value of the claim `amr` after a verification. */
  readonly method: string;
  /** Message of the error for a wrong answer to a challenge. */
  readonly invalidMessage: string;

  /** Makes a factor to be stored, unverified. */
  enroll(
    context: MfaContext,
    enrollment: FactorRequest,
    metadata: RequestMetadata,
  ): Promise<{
    readonly columns: FactorColumns;
    /** Type-specific members of the response. */
    readonly members: JsonObject;
  }>;

  /** Absent if a challenge has no content. */
  challenge?(
    context: MfaContext,
    request: FactorRequest & { readonly factor: Factor },
    metadata: RequestMetadata,
  ): Promise<PreparedChallenge>;

  /**
   * Checks the answer to a challenge. Returns undefined for a wrong one, and otherwise what is to
   * be stored with the verification.
   */
  verify(
    context: MfaContext,
    answer: FactorRequest & { readonly factor: Factor; readonly challenge: Challenge },
    metadata: RequestMetadata,
  ): Promise<VerificationColumns | undefined>;

  /** Whether a wrong answer was right before. */
  isUsed?(challenge: Challenge, body: FactorBody, nowMs: number): boolean;
}

/** A request of a user about a second factor. */
interface FactorRequest {
  readonly user: User;
  /** The parsed body. */
  readonly body: FactorBody;
}

/** Members of request bodies that types of factors read. */
export interface FactorBody {
  readonly issuer?: string | undefined;
  readonly phone?: string | undefined;
  readonly channel?: string | undefined;
  readonly code?: string | undefined;
  readonly webauthn?: { readonly type?: string; readonly credential_response?: object } | undefined;
}

interface PreparedChallenge {
  readonly columns: ChallengeColumns;
  /** Type-specific members of the response. */
  readonly members?: JsonObject;
}

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
