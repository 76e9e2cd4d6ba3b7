import type { AppError } from '@tollgate/kit/errors';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type IssuedSession, prepareSession, storeSession } from '../sessions/issue.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, type User } from '../users/user.ts';
import { namesUser, readCredentialId, startAssertion, type Verified, verifyAssertion } from './ceremonies.ts';
import {
  type IssuedPasskeyChallenge,
  issueChallenge,
  type PasskeyResponse,
  spendChallenge,
} from './challenges.ts';
import type { PasskeysContext } from './context.ts';
import type { Assertion, Passkey } from './store.ts';

/** Starts a sign-in with any passkey that the user picks. */
export async function startSignIn(
  context: PasskeysContext,
  metadata: RequestMetadata,
): Promise<IssuedPasskeyChallenge> {
  const { passkeyUserVerification: userVerification, webAuthnChallengeExpiryMs: timeoutMs } =
    context.settings;
  const { options, data } = await startAssertion(context, { userVerification, timeoutMs });
  return issueChallenge(context, { type: 'authentication', userId: undefined, options, data }, metadata);
}

/** Signs the owner of a passkey in. */
export async function finishSignIn(
  context: PasskeysContext,
  { challengeId, credential: response }: PasskeyResponse,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const key = { id: challengeId, type: 'authentication', userId: undefined } as const;
  const challenge = await spendChallenge(context, key, metadata);
  const owned = await findPasskey(context, response);
  const { user, passkey } = owned;
  const verified = await verify(context, { response, challenge, ...owned });
  if (!verified.ok) throw rejected(context, { ...owned, reason: verified.reason }, metadata);
  checkMaySignIn(context, user, metadata);
  const traits = { passkey_id: passkey.id };
  const prepared = await prepareSession(context, { user, method, traits }, metadata);
  return context.store.transaction(async (store) => {
    const isUsed = await store.passkeys.use(passkey.id, verified.value, new Date(metadata.nowMs));
    if (!isUsed) throw rejected(context, { ...owned, reason: 'used or removed concurrently' }, metadata);
    return storeSession({ ...context, store }, prepared, metadata);
  });
}

/** Value of the claim `amr`. */
const method = 'passkey';

interface OwnedPasskey {
  readonly user: User;
  readonly passkey: Passkey;
}

/** All failures have the same response: it does not disclose which credentials exist. */
async function findPasskey({ store, logger }: PasskeysContext, response: unknown): Promise<OwnedPasskey> {
  const credentialId = readCredentialId(response);
  const found = credentialId && (await store.passkeys.findByCredential(credentialId));
  if (found !== undefined) return found;
  logger.info({ reason: 'unknown credential' }, rejection);
  throw errors.webauthn_verification_failed();
}

async function verify(
  context: PasskeysContext,
  {
    response,
    challenge,
    user,
    passkey,
  }: OwnedPasskey & { readonly response: unknown; readonly challenge: string },
): Promise<Verified<Assertion>> {
  if (!namesUser(response, user.id)) return { ok: false, reason: 'userHandle is not that of the owner' };
  const { passkeyUserVerification: userVerification } = context.settings;
  const { credential } = passkey;
  return verifyAssertion(context, { response, challenge, userVerification, credential });
}

const rejection = 'rejected sign-in with passkey';

function rejected(
  context: PasskeysContext,
  { user, passkey, reason }: OwnedPasskey & { readonly reason: string },
  metadata: RequestMetadata,
) {
  const error = errors.webauthn_verification_failed();
  context.logger.info({ passkeyId: passkey.id, reason }, rejection);
  recordFailedSignIn(context, user, { method, reason: error.code }, metadata);
  return error;
}

/** Runs after the verification so that account state is not disclosed to others. */
function checkMaySignIn(context: PasskeysContext, user: User, metadata: RequestMetadata): void {
  const problem = isBanned(user, metadata.nowMs) ? errors.user_banned() : findUnconfirmed(user);
  if (problem === undefined) return;
  recordFailedSignIn(context, user, { method, reason: problem.code }, metadata);
  throw problem;
}

/**
 * Anyone can sign up with the address of another person. A passkey of such an account would still
 * be valid when that person confirms the address.
 */
export function checkConfirmed(user: User): void {
  const problem = findUnconfirmed(user);
  if (problem !== undefined) throw problem;
}

function findUnconfirmed(user: User): AppError | undefined {
  if (user.email !== '' && user.emailConfirmedAt === undefined)
    return errors.email_not_confirmed({ httpStatus: 403 });
  if (user.phone !== '' && user.phoneConfirmedAt === undefined)
    return errors.phone_not_confirmed({ httpStatus: 403 });
  return undefined;
}
