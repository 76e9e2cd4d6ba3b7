import { Secret, TOTP } from 'otpauth';
import qrcode from 'qrcode';
import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Session } from '../sessions/sessions.ts';
import type { User } from '../users/user.ts';
import { type Factor, lastExpiredMs } from './factors.ts';

/** What every authenticator app knows; a code of the previous and the next period is good too. @see RFC 6238 https://www.rfc-editor.org/rfc/rfc6238 */
const parameters = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
const window = 1;

/** The URI that an authenticator app reads. @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
function totpUri(options: {
  /** In base32. */
  readonly secret: string;
  readonly issuer: string;
  /** Email or phone of the user. */
  readonly account: string;
}): string {
  const { secret, issuer, account } = options;
  return new TOTP({ ...parameters, issuer, label: account, secret: Secret.fromBase32(secret) }).toString();
}

/**
 * The number of the period that a code is of, if it is good at the moment; undefined otherwise. Takes the same time for every wrong
 * one. A code must not be accepted twice, nor one of an earlier period after it: that is for the caller to remember.
 *
 * @see RFC 6238 §5.2 https://www.rfc-editor.org/rfc/rfc6238#section-5.2
 */
export function totpPeriodOf(code: string, secret: string, nowMs: number): number | undefined {
  const token = { ...parameters, token: code, secret: Secret.fromBase32(secret) };
  const delta = TOTP.validate({ ...token, timestamp: nowMs, window });
  return delta === null ? undefined : TOTP.counter({ ...parameters, timestamp: nowMs }) + delta;
}

/** A text as a QR code in SVG, fit for a data URL that nobody escapes: there is no `#` in it. */
async function qrCodeSvg(text: string): Promise<string> {
  const svg = await qrcode.toString(text, { type: 'svg', errorCorrectionLevel: 'L' });
  return svg.replaceAll('#ffffff', 'white').replaceAll('#000000', 'black').trim();
}

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
interface TotpEnrollment {
  readonly friendlyName?: string | undefined;
  /** Whom the app names above the code; the host of the site when absent. */
  readonly issuer?: string | undefined;
}

/** Begins a TOTP factor, which counts once a code of it has been verified. */
export type EnrollTotp = (
  who: { readonly user: User; readonly session: Session },
  enrollment: TotpEnrollment,
  metadata: RequestMetadata,
) => Promise<EnrolledTotp>;

/** What still is a name; the QR code has to hold it, twice, with three characters a byte. */
const maxNameChars = 255;
const maxUriChars = 2_500;

/** Creates {@link EnrollTotp}. */
export function createEnrollTotp(deps: Context): EnrollTotp {
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

  return async ({ user, session }, { friendlyName = '', issuer = '' }, metadata) => {
    if (!settings.mfaTotpEnrollEnabled) throw errors.mfa_totp_enroll_not_enabled();
    const name = friendlyName.trim();
    if (name.length > maxNameChars) throw tooLong('friendly_name');
    checkMayEnroll(await removeExpired(user, metadata.nowMs), name, session);
    const id = random.uuid();
    const secret = random.totpSecret();
    const account = user.email || user.phone || user.id;
    const uri = totpUri({ secret, issuer: issuer || new URL(settings.siteUrl).host, account });
    if (uri.length > maxUriChars) throw tooLong('issuer');
    const enrolled = await store.factors.enroll(
      { id, userId: user.id, friendlyName: name, secret, at: new Date(metadata.nowMs) },
      auditEntry(user, 'factor_in_progress', { metadata, traits: { factor_id: id, factor_type: 'totp' } }),
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
