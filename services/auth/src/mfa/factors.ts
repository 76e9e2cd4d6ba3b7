import type { JsonObject } from '@tollgate/kit/json';
import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { requireRecentSignIn, requireSecondFactor } from '../sessions/assurance.ts';
import type { Session } from '../sessions/store.ts';
import type { Factor } from '../users/factor.ts';
import type { User } from '../users/user.ts';
import { challengeLifeMs, getLastExpiredMs, type MfaContext } from './context.ts';
import type { FactorBody } from './factor-type.ts';
import { getFactorType } from './factor-types.ts';
import type { FactorColumns } from './store.ts';

/** @throws AppError `mfa_factor_not_found`, also for a factor of another user. */
export function getFactor(user: User, factorId: string): Factor {
  const factor = user.factors.find(({ id }) => id === factorId.toLowerCase());
  if (factor === undefined) throw errors.mfa_factor_not_found();
  return factor;
}

/** A request of the caller about a second factor. */
interface FactorOptions {
  readonly user: User;
  readonly session: Session;
  readonly factorId: string;
}

interface IssuedChallenge {
  readonly id: string;
  readonly type: Factor['type'];
  /** Unix time in seconds. */
  readonly expiresAt: number;
  /** Type-specific members of the response. */
  readonly members: JsonObject;
}

export async function challengeFactor(
  context: MfaContext,
  { user, session, factorId, body }: FactorOptions & { readonly body: FactorBody },
  metadata: RequestMetadata,
): Promise<IssuedChallenge> {
  const { store, random } = context;
  const factor = getFactor(user, factorId);
  checkMayUse(user, session, factor);
  const type = getFactorType(context, 'verify', factor.type);
  const id = random.uuid();
  const prepared = await type.challenge?.(context, { user, factor, body }, metadata);
  const traits = { factor_id: factor.id, factor_status: factor.status };
  await store.factors.challenge(
    {
      id,
      factorId: factor.id,
      ip: metadata.clientAddress,
      at: new Date(metadata.nowMs),
      ...prepared?.columns,
    },
    auditEntry(user, 'challenge_created', { metadata, traits }),
  );
  const expiresAtMs = metadata.nowMs + challengeLifeMs(context);
  return {
    id,
    type: factor.type,
    expiresAt: Math.floor(expiresAtMs / 1000),
    members: prepared?.members ?? {},
  };
}

/**
 * Removes a factor of the caller and returns it. Sessions that it raised to `aal2` fall back to
 * `aal1`.
 */
export async function unenrollFactor(
  context: MfaContext,
  options: FactorOptions,
  metadata: RequestMetadata,
): Promise<Factor> {
  const { user, session, factorId } = options;
  const factor = getFactor(user, factorId);
  if (factor.type === 'recovery_code')
    throw errors.validation_failed({
      message: 'Recovery codes cannot be unenrolled with this endpoint, use DELETE /factors/recovery-codes',
      httpStatus: 422,
    });
  const isVerified = factor.status === 'verified';
  requireSecondFactor(user, session, {
    message: `AAL2 required to unenroll ${isVerified ? 'verified factor' : 'a factor'}`,
    httpStatus: 422,
  });
  if (isVerified) requireRecentSignIn(context, { user, session });
  await removeFactorOfCaller(context, { user, session, factor }, metadata);
  return factor;
}

export async function removeFactorOfCaller(
  context: MfaContext,
  { user, session, factor }: Omit<FactorOptions, 'factorId'> & { readonly factor: Factor },
  metadata: RequestMetadata,
): Promise<void> {
  const audit = ({ id, type, status }: Factor): AuditEntry => {
    const traits = { factor_id: id, factor_status: status, session_id: session.id };
    const action = type === 'recovery_code' ? 'recovery_codes_deleted' : 'factor_unenrolled';
    return auditEntry(user, action, { metadata, traits });
  };
  await removeFactor(context, { user, factor }, { at: new Date(metadata.nowMs), audit, metadata });
}

/**
 * Removes the factor of the user, and notifies the user if it was verified. Recovery codes are
 * removed with the last other verified factor: they must not be the only one.
 */
export async function removeFactor(
  context: MfaContext,
  { user, factor }: { readonly user: User; readonly factor: Factor },
  {
    at,
    audit,
    metadata,
  }: {
    readonly at: Date;
    readonly audit: (factor: Factor) => AuditEntry;
    /** Absent for an administrator. */
    readonly metadata?: RequestMetadata;
  },
): Promise<void> {
  const { store } = context;
  if (!(await store.factors.remove({ id: factor.id, userId: user.id }, { at, audit: audit(factor) })))
    throw errors.mfa_factor_not_found();
  if (factor.status === 'unverified') return;
  const variables = { FactorType: factor.type };
  notify(context, { user, kind: 'MFA_FACTOR_UNENROLLED_NOTIFICATION', variables }, metadata);
  if (!user.factors.some(({ type }) => type === 'recovery_code')) return;
  // Read again, as two factors may be removed concurrently.
  const verified = (await store.users.findById(user.id))?.factors.filter(
    ({ status }) => status === 'verified',
  );
  const [last, ...others] = verified ?? [];
  if (last?.type !== 'recovery_code' || others.length > 0) return;
  await store.factors.remove({ id: last.id, userId: user.id }, { at, audit: audit(last) });
}

/** The QR code of TOTP may contain the name. */
const maxNameChars = 255;

interface EnrolledFactor {
  readonly id: string;
  readonly friendlyName: string;
  /** Type-specific members of the response. */
  readonly members: JsonObject;
}

/** Enrolls an unverified factor. */
export async function enrollFactor(
  context: MfaContext,
  { user, session }: Pick<FactorOptions, 'user' | 'session'>,
  {
    type,
    body,
    ...enrollment
  }: { readonly type: Factor['type']; readonly friendlyName?: string | undefined; readonly body: FactorBody },
  metadata: RequestMetadata,
): Promise<EnrolledFactor> {
  const { store, random } = context;
  const { enroll } = getFactorType(context, 'enroll', type);
  const friendlyName = checkName(enrollment.friendlyName ?? '');
  const { columns, members } = await enroll(context, { user, body }, metadata);
  const current = await removeExpired(context, user, metadata.nowMs);
  const factors = current.filter((factor) => !isReplaced(factor, columns));
  checkMayEnroll(context, { user, session }, { factors, friendlyName });
  const id = random.uuid();
  const traits = { factor_id: id, factor_type: type };
  const audit = auditEntry(user, 'factor_in_progress', { metadata, traits });
  await store.transaction(async (transaction) => {
    await transaction.factors.lockOwner(user.id);
    const result = await transaction.factors.enroll(
      { id, userId: user.id, type, friendlyName, at: new Date(metadata.nowMs), ...columns },
      { max: context.settings.mfaMaxEnrolledFactors, audit },
    );
    if (result === 'full') throw errors.too_many_enrolled_mfa_factors();
    if (result === 'conflict') throw friendlyName === '' ? errors.conflict() : nameConflict(friendlyName);
  });
  return { id, friendlyName, members };
}

/** Returns the name without surrounding blanks. */
export function checkName(text: string): string {
  const name = text.trim();
  if (name.length > maxNameChars) throw errors.validation_failed({ message: 'friendly_name is too long' });
  return name;
}

function isReplaced(factor: Factor, { phone }: FactorColumns): boolean {
  return factor.status === 'unverified' && phone !== undefined && factor.phone === phone;
}

/** Removes factors that were never verified in time. Returns the others. */
export async function removeExpired(
  { store, settings }: MfaContext,
  user: User,
  nowMs: number,
): Promise<readonly Factor[]> {
  const before = getLastExpiredMs(settings.mfaFactorExpiryMs, nowMs);
  const kept = user.factors.filter((f) => f.status === 'verified' || f.createdAt.getTime() > before);
  if (kept.length < user.factors.length) await store.factors.removeUnverified(user.id, new Date(before));
  return kept;
}

const enrollError = { message: 'AAL2 required to enroll a new factor', httpStatus: 403 };

/** An unverified factor is enrolled by its first challenge and answer. */
export function checkMayUse(user: User, session: Session, factor: Factor): void {
  if (factor.status === 'unverified') requireSecondFactor(user, session, enrollError);
}

export function checkMayEnroll(
  context: MfaContext,
  { user, session }: Pick<FactorOptions, 'user' | 'session'>,
  { factors, friendlyName }: { readonly factors: readonly Factor[]; readonly friendlyName: string },
): void {
  const { settings } = context;
  if (friendlyName !== '' && factors.some((factor) => factor.friendlyName === friendlyName))
    throw nameConflict(friendlyName);
  const verified = factors.filter(({ status }) => status === 'verified').length;
  if (factors.length >= settings.mfaMaxEnrolledFactors) throw errors.too_many_enrolled_mfa_factors();
  if (verified >= settings.mfaMaxVerifiedFactors)
    throw errors.too_many_enrolled_mfa_factors({
      message: 'Maximum number of verified factors reached, unenroll to continue',
    });
  requireSecondFactor({ factors }, session, enrollError);
  requireRecentSignIn(context, { user, session });
}

export function nameConflict(name: string) {
  return errors.mfa_factor_name_conflict({
    message: `A factor with the friendly name "${name}" for this user already exists`,
  });
}
