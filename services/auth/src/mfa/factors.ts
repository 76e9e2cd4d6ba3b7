import { Secret, TOTP } from 'otpauth';
import qrcode from 'qrcode';
import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { WriteOptions } from './store.ts';

/** A second factor without its secret. */
export interface Factor {
  readonly id: string;
  readonly status: 'unverified' | 'verified';
  readonly type: 'totp' | 'webauthn' | 'phone';
  /** Empty for none. */
  readonly friendlyName: string;
  /** Empty for none. */
  readonly phone: string;
  readonly lastChallengedAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Lower settings count as five minutes, as in GoTrue: users need time to find their phone. */
const minLifeMs = 300_000;

/** Whether a challenge or an unverified factor has expired. */
export function hasExpired(createdAt: Date, lifeMs: number, nowMs: number): boolean {
  return createdAt.getTime() <= getLastExpiredMs(lifeMs, nowMs);
}

/** Creation time of the youngest challenge or unverified factor that has expired. */
function getLastExpiredMs(lifeMs: number, nowMs: number): number {
  return nowMs - Math.max(lifeMs, minLifeMs);
}

/** @throws AppError `mfa_factor_not_found`, also for a factor of another user. */
export function getFactor(user: User, factorId: string): Factor {
  const factor = user.factors.find(({ id }) => id === factorId.toLowerCase());
  if (factor === undefined) throw errors.mfa_factor_not_found();
  return factor;
}

interface IssuedChallenge {
  readonly id: string;
  readonly type: 'totp';
  /** Unix time in seconds. */
  readonly expiresAt: number;
}

export async function challengeFactor(
  { store, random, settings }: Context,
  { user, factorId }: { readonly user: User; readonly factorId: string },
  metadata: RequestMetadata,
): Promise<IssuedChallenge> {
  const factor = getFactor(user, factorId);
  if (factor.type !== 'totp' || !settings.mfaTotpVerifyEnabled) throw errors.mfa_totp_verify_not_enabled();
  const id = random.uuid();
  const traits = { factor_id: factor.id, factor_status: factor.status };
  await store.factors.challenge(
    { id, factorId: factor.id, ip: metadata.clientAddress, at: new Date(metadata.nowMs) },
    auditEntry(user, 'challenge_created', { metadata, traits }),
  );
  const expiresAtMs = metadata.nowMs + Math.max(settings.mfaChallengeExpiryMs, minLifeMs);
  return { id, type: factor.type, expiresAt: Math.floor(expiresAtMs / 1000) };
}

/**
 * Removes a factor of the caller and returns it. Sessions that it raised to `aal2` fall back to
 * `aal1`.
 */
export async function unenrollFactor(
  context: Context,
  options: { readonly user: User; readonly session: Session; readonly factorId: string },
  metadata: RequestMetadata,
): Promise<Factor> {
  const { user, session, factorId } = options;
  const factor = getFactor(user, factorId);
  if (factor.status === 'verified' && session.aal === 'aal1')
    throw errors.insufficient_aal({
      message: 'AAL2 required to unenroll verified factor',
      httpStatus: 422,
    });
  const traits = { factor_id: factor.id, factor_status: factor.status, session_id: session.id };
  const audit = auditEntry(user, 'factor_unenrolled', { metadata, traits });
  await removeFactor(context, { user, factor }, { at: new Date(metadata.nowMs), audit });
  return factor;
}

/** Removes the factor of the user, and notifies the user if it was verified. */
export async function removeFactor(
  context: Context,
  { user, factor }: { readonly user: User; readonly factor: Factor },
  options: WriteOptions,
): Promise<void> {
  if (!(await context.store.factors.remove({ id: factor.id, userId: user.id }, options)))
    throw errors.mfa_factor_not_found();
  if (factor.status === 'verified')
    notify(context, {
      user,
      kind: 'MFA_FACTOR_UNENROLLED_NOTIFICATION',
      variables: { FactorType: factor.type },
    });
}

/** The defaults of authenticator apps. @see RFC 6238 https://www.rfc-editor.org/rfc/rfc6238 */
const parameters = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
/** Codes of the previous and the next period are accepted too. */
const window = 1;

/** Limits of a QR code, which contains name and issuer percent-encoded: three characters a byte. */
const maxNameChars = 255;
const maxUriChars = 2_500;

export interface EnrolledTotp {
  readonly id: string;
  readonly friendlyName: string;
  /** In base32. */
  readonly secret: string;
  readonly uri: string;
  /** The URI as SVG. */
  readonly qrCode: string;
}

/** Enrols an unverified TOTP factor. */
export async function enrollTotp(
  context: Context,
  { user, session }: { readonly user: User; readonly session: Session },
  enrollment: {
    readonly friendlyName?: string | undefined;
    /** Shown by the app above the code; the host of SITE_URL when absent. */
    readonly issuer?: string | undefined;
  },
  metadata: RequestMetadata,
): Promise<EnrolledTotp> {
  const { store, random, settings } = context;
  const { issuer } = enrollment;
  if (!settings.mfaTotpEnrollEnabled) throw errors.mfa_totp_enroll_not_enabled();
  const friendlyName = (enrollment.friendlyName ?? '').trim();
  if (friendlyName.length > maxNameChars) throw tooLong('friendly_name');
  const factors = await removeExpired(context, user, metadata.nowMs);
  checkMayEnroll(context, session, { factors, friendlyName });
  const id = random.uuid();
  const secret = random.totpSecret();
  const account = user.email || user.phone || user.id;
  const uri = toTotpUri({ secret, issuer: issuer || new URL(settings.siteUrl).host, account });
  if (uri.length > maxUriChars) throw tooLong('issuer');
  const isEnrolled = await store.factors.enroll(
    { id, userId: user.id, friendlyName, secret, at: new Date(metadata.nowMs) },
    auditEntry(user, 'factor_in_progress', { metadata, traits: { factor_id: id, factor_type: 'totp' } }),
  );
  if (!isEnrolled) throw nameConflict(friendlyName);
  return { id, friendlyName, secret, uri, qrCode: await toQrCodeSvg(uri) };
}

/** Removes factors that were never verified in time. Returns the others. */
async function removeExpired(
  { store, settings }: Context,
  user: User,
  nowMs: number,
): Promise<readonly Factor[]> {
  const before = getLastExpiredMs(settings.mfaFactorExpiryMs, nowMs);
  const kept = user.factors.filter((f) => f.status === 'verified' || f.createdAt.getTime() > before);
  if (kept.length < user.factors.length) await store.factors.removeUnverified(user.id, new Date(before));
  return kept;
}

function checkMayEnroll(
  { settings }: Context,
  session: Session,
  { factors, friendlyName }: { readonly factors: readonly Factor[]; readonly friendlyName: string },
): void {
  if (friendlyName !== '' && factors.some((factor) => factor.friendlyName === friendlyName))
    throw nameConflict(friendlyName);
  const verified = factors.filter(({ status }) => status === 'verified').length;
  if (factors.length >= settings.mfaMaxEnrolledFactors) throw errors.too_many_enrolled_mfa_factors();
  if (verified >= settings.mfaMaxVerifiedFactors)
    throw errors.too_many_enrolled_mfa_factors({
      message: 'Maximum number of verified factors reached, unenroll to continue',
    });
  if (verified > 0 && session.aal === 'aal1')
    throw errors.insufficient_aal({ message: 'AAL2 required to enroll a new factor', httpStatus: 403 });
}

/** @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
function toTotpUri(options: {
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
 * Number of the period that a code belongs to, or undefined for a wrong or expired code. Takes
 * constant time for wrong codes. The caller rejects codes of the last accepted period and earlier.
 *
 * @see RFC 6238 §5.2 https://www.rfc-editor.org/rfc/rfc6238#section-5.2
 */
export function findTotpPeriod(code: string, secret: string, nowMs: number): number | undefined {
  const token = { ...parameters, token: code, secret: Secret.fromBase32(secret) };
  const delta = TOTP.validate({ ...token, timestamp: nowMs, window });
  return delta === null ? undefined : TOTP.counter({ ...parameters, timestamp: nowMs }) + delta;
}

/** Without `#`, as clients put the SVG into a data URL unescaped. */
async function toQrCodeSvg(text: string): Promise<string> {
  const svg = await qrcode.toString(text, { type: 'svg', errorCorrectionLevel: 'L' });
  return svg.replaceAll('#ffffff', 'white').replaceAll('#000000', 'black').trim();
}

export function nameConflict(name: string) {
  return errors.mfa_factor_name_conflict({
    message: `A factor with the friendly name "${name}" for this user already exists`,
  });
}

function tooLong(member: string) {
  return errors.validation_failed({ message: `${member} is too long` });
}
