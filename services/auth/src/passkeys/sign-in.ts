import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type IssuedSession, prepareSession, storeSession } from '../sessions/issue.ts';
import { isBanned, type User } from '../users/user.ts';
import {
  type Assertion,
  namesUser,
  readCredentialId,
  startAssertion,
  verifyAssertion,
} from './ceremonies.ts';
import {
  type IssuedPasskeyChallenge,
  issueChallenge,
  type PasskeyResponse,
  spendChallenge,
} from './challenges.ts';
import type { Passkey } from './store.ts';

/** Starts a sign-in with any passkey that the user picks. */
export async function startSignIn(
  context: Context,
  metadata: RequestMetadata,
): Promise<IssuedPasskeyChallenge> {
  const { passkeyUserVerification: userVerification, webAuthnChallengeExpiryMs: timeoutMs } =
    context.settings;
  const { options, data } = await startAssertion(context, { userVerification, timeoutMs });
  return issueChallenge(context, { type: 'authentication', userId: undefined, options, data }, metadata);
}

/** Signs the owner of a passkey in. */
export async function finishSignIn(
  context: Context,
  { challengeId, credential: response }: PasskeyResponse,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const key = { id: challengeId, type: 'authentication', userId: undefined } as const;
  const challenge = await spendChallenge(context, key, metadata);
  const { user, passkey, assertion } = await verify(context, { response, challenge });
  checkMaySignIn(user, metadata);
  const traits = { passkey_id: passkey.id };
  const prepared = await prepareSession(context, { user, method: 'passkey', traits }, metadata);
  return context.store.transaction(async (store) => {
    const isUsed = await store.passkeys.use(passkey.id, assertion, new Date(metadata.nowMs));
    if (!isUsed) throw rejected(context, passkey, 'used or removed concurrently');
    return storeSession({ ...context, store }, prepared, metadata);
  });
}

/** All failures have the same response: it does not disclose which credentials exist. */
async function verify(
  context: Context,
  { response, challenge }: { readonly response: unknown; readonly challenge: string },
): Promise<{ readonly user: User; readonly passkey: Passkey; readonly assertion: Assertion }> {
  const { store, settings } = context;
  const credentialId = readCredentialId(response);
  const found = credentialId && (await store.passkeys.findByCredential(credentialId));
  if (found === undefined) throw rejected(context, undefined, 'unknown credential');
  const { user, passkey } = found;
  if (!namesUser(response, user.id)) throw rejected(context, passkey, 'userHandle is not that of the owner');
  const { passkeyUserVerification: userVerification } = settings;
  const { credential } = passkey;
  const verified = await verifyAssertion(context, { response, challenge, userVerification, credential });
  if (!verified.ok) throw rejected(context, passkey, verified.reason);
  return { user, passkey, assertion: verified.value };
}

function rejected({ logger }: Context, passkey: Passkey | undefined, reason: string) {
  logger.info({ ...(passkey && { passkeyId: passkey.id }), reason }, 'rejected sign-in with passkey');
  return errors.webauthn_verification_failed();
}

/** Runs after the verification so that account state is not disclosed to others. */
function checkMaySignIn(user: User, { nowMs }: RequestMetadata): void {
  if (isBanned(user, nowMs)) throw errors.user_banned();
  checkConfirmed(user);
}

/**
 * Anyone can sign up with the address of another person. A passkey of such an account would still
 * be valid when that person confirms the address.
 */
export function checkConfirmed(user: User): void {
  if (user.email !== '' && user.emailConfirmedAt === undefined)
    throw errors.email_not_confirmed({ httpStatus: 403 });
  if (user.phone !== '' && user.phoneConfirmedAt === undefined)
    throw errors.phone_not_confirmed({ httpStatus: 403 });
}
