import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { PasskeysContext } from './context.ts';
import type { CeremonyData } from './store.ts';

type ChallengeType = 'registration' | 'authentication';

export interface IssuedPasskeyChallenge {
  readonly id: string;
  /** The browser gets them. */
  readonly options: object;
  readonly expiresAtMs: number;
}

/** The response of a browser to a challenge, not verified. */
export interface PasskeyResponse {
  readonly challengeId: string;
  readonly credential: unknown;
}

/** Stores a challenge until its response arrives. */
export async function issueChallenge(
  { store, random, settings }: PasskeysContext,
  challenge: {
    readonly type: ChallengeType;
    /** Undefined for a sign-in. */
    readonly userId: string | undefined;
    readonly options: object;
    readonly data: CeremonyData;
  },
  { nowMs }: RequestMetadata,
): Promise<IssuedPasskeyChallenge> {
  const { options, ...stored } = challenge;
  const id = random.uuid();
  const expiresAtMs = nowMs + settings.webAuthnChallengeExpiryMs;
  await store.passkeys.challenge({
    id,
    ...stored,
    at: new Date(nowMs),
    expiresAt: new Date(expiresAtMs),
  });
  return { id, options, expiresAtMs };
}

/**
 * Returns the challenge of a ceremony, which is spent also if the response turns out to be invalid.
 *
 * @throws AppError `webauthn_challenge_not_found`, also for the challenge of another user;
 * `webauthn_challenge_expired`.
 */
export async function spendChallenge(
  { store }: PasskeysContext,
  {
    id,
    type,
    userId,
  }: { readonly id: string; readonly type: ChallengeType; readonly userId: string | undefined },
  { nowMs }: RequestMetadata,
): Promise<string> {
  if (!isUuid(id)) throw errors.validation_failed({ message: 'challenge_id must be an UUID' });
  const spent = await store.passkeys.spendChallenge({ id, type, userId });
  if (spent === undefined) throw errors.webauthn_challenge_not_found();
  if (spent.expiresAt.getTime() <= nowMs) throw errors.webauthn_challenge_expired();
  return spent.challenge;
}
