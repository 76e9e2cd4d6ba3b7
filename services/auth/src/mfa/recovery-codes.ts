import { auditEntry } from '../audit/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { randomBase32 } from '../keys/secrets.ts';
import { notify } from '../messages/send.ts';
import { requireRecentSignIn } from '../sessions/assurance.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import type { Session } from '../sessions/store.ts';
import type { Factor } from '../users/factor.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import type { User } from '../users/user.ts';
import type { MfaContext } from './context.ts';
import { checkFactorAttempt, factorGuess } from './factor-guess.ts';
import { checkMayEnroll, checkName, removeExpired, removeFactorOfCaller } from './factors.ts';
import { raiseSession } from './raise-session.ts';
import type { RecoveryCodeSet } from './recovery-code-store.ts';

interface Caller {
  readonly user: User;
  readonly session: Session;
}

/** Codes with their factor. They cannot be read again. */
interface IssuedCodes {
  readonly factorId: string;
  readonly friendlyName: string;
  readonly codes: readonly string[];
}

const type = 'recovery_code';
const defaultName = 'Recovery codes';

/** @throws AppError `mfa_factor_not_found` without codes */
export async function getRecoveryCodes({ store }: MfaContext, user: User): Promise<RecoveryCodeSet> {
  const found = await store.recoveryCodes.find(user.id);
  if (found === undefined) throw notEnrolled();
  return found;
}

/** Generates the first codes of the caller, who needs another verified factor. */
export async function generateRecoveryCodes(
  context: MfaContext,
  { user, session }: Caller,
  name: string,
  metadata: RequestMetadata,
): Promise<IssuedCodes> {
  const { store, random } = context;
  checkEnabled(context, 'enroll');
  checkLevel(session, 'generate');
  if (findCodeFactor(user) !== undefined) throw alreadyEnrolled();
  const friendlyName = checkName(name) || defaultName;
  const factors = await removeExpired(context, user, metadata.nowMs);
  checkMayEnroll(context, { user, session }, { factors, friendlyName });
  if (!factors.some(({ status }) => status === 'verified')) throw errors.mfa_recovery_codes_sole_factor();
  const factorId = random.uuid();
  const { codes, hashes } = await makeCodes(context);
  const traits = { factor_id: factorId, count: codes.length };
  const isEnrolled = await store.recoveryCodes.enroll(
    { factorId, userId: user.id, friendlyName, hashes, at: new Date(metadata.nowMs) },
    auditEntry(user, 'recovery_codes_generated', { metadata, traits }),
  );
  // Another request has generated codes, taken the name, or removed the other factor.
  if (!isEnrolled) throw errors.conflict();
  const variables = { FactorType: type };
  notify(context, { user, kind: 'MFA_FACTOR_ENROLLED_NOTIFICATION', variables }, metadata);
  return { factorId, friendlyName, codes };
}

/** Replaces all codes of the caller, and ends a lockout of their network. */
export async function regenerateRecoveryCodes(
  context: MfaContext,
  { user, session }: Caller,
  metadata: RequestMetadata,
): Promise<IssuedCodes> {
  checkEnabled(context, 'enroll');
  checkLevel(session, 'regenerate');
  requireRecentSignIn(context, { user, session });
  const factor = getCodeFactor(user);
  const { codes, hashes } = await makeCodes(context);
  const traits = { factor_id: factor.id, count: codes.length };
  const isReplaced = await context.store.recoveryCodes.replace(
    { userId: user.id, hashes, at: new Date(metadata.nowMs) },
    auditEntry(user, 'recovery_codes_regenerated', { metadata, traits }),
  );
  if (!isReplaced) throw errors.conflict();
  await context.limiter.recordOwner(
    factorGuess(context, { kind: 'recovery_code', user }, metadata),
    metadata,
  );
  return { factorId: factor.id, friendlyName: factor.friendlyName, codes };
}

/** Spends a code, and raises the session of the caller to `aal2`. */
export async function redeemRecoveryCode(
  context: MfaContext,
  { user, session }: Caller,
  input: string,
  metadata: RequestMetadata,
): Promise<IssuedSession & { readonly remaining: number }> {
  const { store, limiter, passwords } = context;
  checkEnabled(context, 'verify');
  const code = normalizeCode(input);
  if (code === '') throw errors.validation_failed({ message: 'Code needs to be non-empty' });
  const factor = findCodeFactor(user);
  const set = factor && (await store.recoveryCodes.find(user.id));
  if (factor === undefined || set === undefined) throw invalidCode();
  checkLockout(set.lockedUntil, metadata.nowMs);
  const hashes = set.unused.map(({ hash }) => hash);
  const match = await limiter.guess(
    factorGuess(context, { kind: 'recovery_code', user }, metadata),
    metadata,
    async () => set.unused[await passwords.findRandomCode(code, hashes)],
  );
  await checkFactorAttempt(context, { user, factor, valid: match !== undefined }, metadata);
  const remaining = set.unused.length - 1;
  const traits = { factor_id: factor.id, remaining };
  const issued =
    match &&
    (await raiseSession(
      context,
      { user, session, factorId: factor.id, method: 'mfa/recovery_code' },
      (raised) =>
        store.recoveryCodes.redeem(
          { ...raised, codeId: match.id },
          auditEntry(user, 'recovery_codes_verified', { metadata, traits }),
        ),
      metadata,
    ));
  // A wrong code, or one that was spent concurrently.
  if (issued === undefined) {
    const failure = { method: 'mfa/recovery_code', reason: 'wrong_code', factor_id: factor.id };
    recordFailedSignIn(context, user, failure, metadata);
    throw invalidCode();
  }
  return { ...issued, remaining };
}

/** Removes the codes of the caller. Returns their factor. */
export async function removeRecoveryCodes(
  context: MfaContext,
  caller: Caller,
  metadata: RequestMetadata,
): Promise<Factor> {
  checkLevel(caller.session, 'delete');
  requireRecentSignIn(context, caller);
  const factor = getCodeFactor(caller.user);
  await removeFactorOfCaller(context, { ...caller, factor }, metadata);
  return factor;
}

function checkEnabled({ settings }: MfaContext, action: 'enroll' | 'verify'): void {
  if (!settings[`mfaEnabled:recovery_code:${action}`])
    throw action === 'enroll'
      ? errors.mfa_recovery_codes_enroll_not_enabled()
      : errors.mfa_recovery_codes_verify_not_enabled();
}

/** Applies without another factor, too: recovery codes must not be the only one. */
function checkLevel(session: Session, action: string): void {
  if (session.aal === 'aal1')
    throw errors.insufficient_aal({
      message: `AAL2 required to ${action} recovery codes`,
      httpStatus: 403,
    });
}

function checkLockout(lockedUntil: Date | undefined, nowMs: number): void {
  const waitMs = (lockedUntil?.getTime() ?? nowMs) - nowMs;
  if (waitMs > 0) throw new RetryLaterError(errors.mfa_recovery_codes_locked(), Math.ceil(waitMs / 1000));
}

function findCodeFactor(user: User): Factor | undefined {
  return user.factors.find((factor) => factor.type === type);
}

function getCodeFactor(user: User): Factor {
  const factor = findCodeFactor(user);
  if (factor === undefined) throw notEnrolled();
  return factor;
}

function notEnrolled() {
  return errors.mfa_factor_not_found({ message: 'The user has not enrolled recovery codes' });
}

function alreadyEnrolled() {
  return errors.mfa_verified_factor_exists({
    message: 'Recovery codes are already enrolled for this user, use regenerate to rotate them',
  });
}

function invalidCode() {
  return errors.mfa_verification_failed({ message: 'Invalid recovery code entered' });
}

async function makeCodes({ random, passwords, settings }: MfaContext) {
  const set = new Set<string>();
  while (set.size < settings.mfaRecoveryCodesCount)
    set.add(randomBase32(random, settings.mfaRecoveryCodesCodeLength));
  const codes = [...set];
  return { codes, hashes: await passwords.hashRandomCodes(codes) };
}

/** Codes are shown in any case, and in groups. */
function normalizeCode(text: string): string {
  return text.replaceAll(/[\s-]/g, '').toLowerCase();
}
