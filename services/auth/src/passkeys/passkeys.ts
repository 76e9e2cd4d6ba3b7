import { auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import { requireRecentSignIn, requireSecondFactor } from '../sessions/assurance.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import { getAuthenticatorName } from './authenticators.ts';
import { startCreation, verifyCreation } from './ceremonies.ts';
import {
  type IssuedPasskeyChallenge,
  issueChallenge,
  type PasskeyResponse,
  spendChallenge,
} from './challenges.ts';
import type { PasskeysContext } from './context.ts';
import { checkConfirmed } from './sign-in.ts';
import type { Passkey } from './store.ts';

/** The user of a session. */
interface Caller {
  readonly user: User;
  readonly session: Session;
}

/** Starts the registration of a passkey. */
export async function startRegistration(
  context: PasskeysContext,
  { user, session }: Caller,
  metadata: RequestMetadata,
): Promise<IssuedPasskeyChallenge> {
  const { store, settings } = context;
  checkMayRegister(user, session);
  requireRecentSignIn(context, { user, session });
  const passkeys = await store.passkeys.list(user.id);
  if (passkeys.length >= settings.passkeyMaxPerUser) throw errors.too_many_passkeys();
  const { options, data } = await startCreation(context, {
    user,
    exclude: passkeys.map(({ credential }) => credential),
    residentKey: 'required',
    userVerification: settings.passkeyUserVerification,
    timeoutMs: settings.webAuthnChallengeExpiryMs,
  });
  return issueChallenge(context, { type: 'registration', userId: user.id, options, data }, metadata);
}

/** Registers the passkey that an authenticator has created for a challenge. */
export async function finishRegistration(
  context: PasskeysContext,
  { user, session }: Caller,
  { challengeId, credential: response }: PasskeyResponse,
  metadata: RequestMetadata,
): Promise<Passkey> {
  const { store, random, settings, logger } = context;
  checkMayRegister(user, session);
  const challenge = await spendChallenge(
    context,
    { id: challengeId, type: 'registration', userId: user.id },
    metadata,
  );
  const userVerification = settings.passkeyUserVerification;
  const created = await verifyCreation(context, { response, challenge, userVerification });
  if (!created.ok) {
    logger.info({ userId: user.id, reason: created.reason }, 'rejected new passkey');
    throw errors.webauthn_verification_failed();
  }
  const passkey = {
    id: random.uuid(),
    friendlyName: getAuthenticatorName(created.value.aaguid),
    createdAt: new Date(metadata.nowMs),
    credential: created.value,
  };
  const audit = auditEntry(user, 'passkey_created', { metadata, traits: { passkey_id: passkey.id } });
  const result = await store.transaction(async ({ passkeys }) => {
    await passkeys.lockOwner(user.id);
    return passkeys.add({ ...passkey, userId: user.id }, { max: settings.passkeyMaxPerUser, audit });
  });
  if (result === 'too_many') throw errors.too_many_passkeys();
  if (result === 'exists') throw errors.webauthn_credential_exists();
  notify(context, { user, kind: 'IDENTITY_LINKED_NOTIFICATION', variables }, metadata);
  return { ...passkey, lastUsedAt: undefined };
}

/** Notifications name it. */
const variables = { Provider: 'passkey' };

function checkMayRegister(user: User, session: Session): void {
  if (user.isSsoUser)
    throw errors.validation_failed({ httpStatus: 422, message: 'SSO users cannot register passkeys' });
  checkConfirmed(user);
  checkMayManage(user, session);
}

function checkMayManage(user: User, session: Session): void {
  requireSecondFactor(user, session, {
    httpStatus: 403,
    message: 'AAL2 session is required to manage passkeys when MFA is enabled',
  });
}

/** GoTrue's limit. */
const maxNameChars = 120;

/** @throws AppError `validation_failed` with 404: there is no such passkey. */
export async function renamePasskey(
  { store }: PasskeysContext,
  { user, id, friendlyName }: { readonly user: User; readonly id: string; readonly friendlyName: string },
  metadata: RequestMetadata,
): Promise<Passkey> {
  if (friendlyName === '') throw errors.validation_failed({ message: 'friendly_name is required' });
  if (friendlyName.length > maxNameChars)
    throw errors.validation_failed({ message: `friendly_name must be ${maxNameChars} characters or less` });
  const audit = auditEntry(user, 'passkey_updated', { metadata, traits: { passkey_id: id } });
  const at = new Date(metadata.nowMs);
  const renamed = await store.passkeys.rename({ id, userId: user.id }, friendlyName, { at, audit });
  if (renamed === undefined) throw passkeyNotFound();
  return renamed;
}

/** Removes a passkey of the caller. */
export async function removeOwnPasskey(
  context: PasskeysContext,
  { user, session, id }: Caller & { readonly id: string },
  metadata: RequestMetadata,
): Promise<void> {
  checkMayManage(user, session);
  requireRecentSignIn(context, { user, session });
  const audit = auditEntry(user, 'passkey_deleted', { metadata, traits: { passkey_id: id } });
  await removePasskey(context, { user, id, metadata }, audit);
}

interface OwnedPasskey {
  readonly user: User;
  readonly id: string;
  /**
   * Metadata of a request of the user, whose language the mail has; absent for an administrator.
   */
  readonly metadata?: RequestMetadata;
}

/** Removes a passkey and notifies its user. @throws AppError as `renamePasskey` */
export async function removePasskey(
  context: PasskeysContext,
  { user, id, metadata }: OwnedPasskey,
  audit: ReturnType<typeof auditEntry>,
): Promise<void> {
  if (!(await context.store.passkeys.remove({ id, userId: user.id }, audit))) throw passkeyNotFound();
  notify(context, { user, kind: 'IDENTITY_UNLINKED_NOTIFICATION', variables }, metadata);
}

function passkeyNotFound() {
  return errors.validation_failed({ httpStatus: 404, message: 'Passkey not found' });
}
