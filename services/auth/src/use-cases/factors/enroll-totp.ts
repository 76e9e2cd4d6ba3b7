import { auditEntry } from '../../domain/audit-entry.ts';
import { type Factor, lastExpiredMs } from '../../domain/factor.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { Session } from '../../domain/session.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { qrCodeSvg, totpUri } from '../../totp/totp.ts';

/** What an authenticator app is told. */
export interface EnrolledTotp {
  readonly id: string;
  readonly friendlyName: string;
  /** In base32. */
  readonly secret: string;
  readonly uri: string;
  /** The URI as SVG. */
  readonly qrCode: string;
}

/** What a user enrols. */
export interface TotpEnrollment {
  readonly friendlyName?: string | undefined;
  /** Whom the app names above the code; the host of the site when absent. */
  readonly issuer?: string | undefined;
}

/** Begins a TOTP factor, which counts once a code of it has been verified. */
export type EnrollTotp = (
  who: { readonly user: User; readonly session: Session },
  enrollment: TotpEnrollment,
  facts: RequestFacts,
) => Promise<EnrolledTotp>;

/** What that takes. */
export type EnrollTotpDeps = DepsWith<
  'store' | 'random',
  'mfaTotpEnrollEnabled' | 'mfaMaxEnrolledFactors' | 'mfaMaxVerifiedFactors' | 'mfaFactorExpiryMs' | 'siteUrl'
>;

/** What still is a name; the QR code has to hold it, twice, with three characters a byte. */
const maxNameChars = 255;
const maxUriChars = 2_500;

/** Creates {@link EnrollTotp}. */
export function createEnrollTotp(deps: EnrollTotpDeps): EnrollTotp {
  const { store, random, settings } = deps;

  /** The user's factors, without those that were begun too long ago. */
  async function removeExpired(user: User, nowMs: number): Promise<readonly Factor[]> {
    const before = lastExpiredMs(settings.mfaFactorExpiryMs, nowMs);
    const kept = user.factors.filter((f) => f.status === 'verified' || f.createdAt.getTime() > before);
    if (kept.length < user.factors.length) await store.factors.removeUnverified(user.id, new Date(before));
    return kept;
  }

  function checkMayEnroll(factors: readonly Factor[], name: string, session: Session): void {
    if (name !== '' && factors.some(({ friendlyName }) => friendlyName === name)) throw nameConflict(name);
    const verified = factors.filter(({ status }) => status === 'verified').length;
    if (factors.length >= settings.mfaMaxEnrolledFactors) throw errors.too_many_enrolled_mfa_factors();
    if (verified >= settings.mfaMaxVerifiedFactors)
      throw errors.too_many_enrolled_mfa_factors({
        message: 'Maximum number of verified factors reached, unenroll to continue',
      });
    if (verified > 0 && session.aal === 'aal1')
      throw errors.insufficient_aal({ message: 'AAL2 required to enroll a new factor', httpStatus: 403 });
  }

  return async ({ user, session }, { friendlyName = '', issuer = '' }, facts) => {
    if (!settings.mfaTotpEnrollEnabled) throw errors.mfa_totp_enroll_not_enabled();
    const name = friendlyName.trim();
    if (name.length > maxNameChars) throw tooLong('friendly_name');
    checkMayEnroll(await removeExpired(user, facts.nowMs), name, session);
    const id = random.uuid();
    const secret = random.totpSecret();
    const account = user.email || user.phone || user.id;
    const uri = totpUri({ secret, issuer: issuer || new URL(settings.siteUrl).host, account });
    if (uri.length > maxUriChars) throw tooLong('issuer');
    const enrolled = await store.factors.enroll(
      { id, userId: user.id, friendlyName: name, secret, at: new Date(facts.nowMs) },
      auditEntry(user, 'factor_in_progress', { facts, traits: { factor_id: id, factor_type: 'totp' } }),
    );
    if (!enrolled) throw nameConflict(name);
    return { id, friendlyName: name, secret, uri, qrCode: await qrCodeSvg(uri) };
  };
}

/** Says that the user has a factor of that name. */
export function nameConflict(name: string) {
  return errors.mfa_factor_name_conflict({
    message: `A factor with the friendly name "${name}" for this user already exists`,
  });
}

function tooLong(member: string) {
  return errors.validation_failed({ message: `${member} is too long` });
}
