import type { JsonObject } from '@tollgate/kit/json';
import { errors } from '../errors.ts';
import { toObject } from '../outbound/post-form.ts';
import { startAssertion, startCreation, verifyAssertion, verifyCreation } from '../passkeys/ceremonies.ts';
import type { Credential } from '../passkeys/store.ts';
import type { Factor } from '../users/factor.ts';
import type { User } from '../users/user.ts';
import { challengeLifeMs, type MfaContext } from './context.ts';
import type { FactorBody, FactorType } from './factor-type.ts';

/** The first factor has identified the user: possession of the authenticator is enough here. */
const userVerification = 'preferred';

/** Security keys and other authenticators, which need not store an account. */
export const webauthn: FactorType = {
  method: 'mfa/webauthn',
  invalidMessage: 'Invalid WebAuthn response',

  enroll: () => Promise.resolve({ columns: {}, members: {} }),

  async challenge(context, { user, factor }) {
    const credentials = await context.store.factors.listCredentials(user.id);
    const timeoutMs = challengeLifeMs(context);
    const common = { user, userVerification, timeoutMs } as const;
    if (factor.status === 'unverified') {
      const exclude = credentials.map(({ credential }) => toCredential(credential));
      const { options, data } = await startCreation(context, {
        ...common,
        exclude,
        residentKey: 'discouraged',
      });
      return { columns: { webAuthnData: data }, members: toMembers('create', options) };
    }
    const own = credentials.filter(({ factorId }) => factorId === factor.id);
    const allow = own.map(({ credential }) => toCredential(credential));
    const { options, data } = await startAssertion(context, { ...common, allow });
    return { columns: { webAuthnData: data }, members: toMembers('request', options) };
  },

  async verify(context, { user, factor, challenge, body }) {
    const received = { response: readResponse(factor, body), challenge: challenge.webAuthnChallenge };
    if (factor.status === 'unverified') {
      const created = await verifyCreation(context, { ...received, userVerification });
      if (!created.ok) return reject(context, { user, factor, reason: created.reason });
      return { newCredential: toStored(created.value), aaguid: created.value.aaguid };
    }
    const credential = toCredential(challenge.credential);
    const asserted = await verifyAssertion(context, { ...received, userVerification, credential });
    if (!asserted.ok) return reject(context, { user, factor, reason: asserted.reason });
    return { assertion: asserted.value };
  },
};

function toMembers(type: 'create' | 'request', publicKey: object): JsonObject {
  // The library's options are JSON.
  return { webauthn: { type, credential_options: { publicKey: publicKey as JsonObject } } };
}

/**
 * The response of the authenticator. The state of the factor decides how it is verified, not the
 * client: a new credential must not be accepted for a verified factor.
 */
function readResponse({ status }: Factor, { webauthn: members }: FactorBody): unknown {
  if (members === undefined) throw errors.validation_failed({ message: 'WebAuthn config required' });
  const { type, credential_response: response } = members;
  if (type !== 'create' && type !== 'request')
    throw errors.validation_failed({ message: 'WebAuthn type must be create or request' });
  if (response === undefined) throw errors.validation_failed({ message: 'credential_response required' });
  if (type !== (status === 'unverified' ? 'create' : 'request'))
    throw errors.validation_failed({ message: `WebAuthn type must not be ${type}: the factor is ${status}` });
  return response;
}

function reject(
  { logger }: MfaContext,
  { user, factor, reason }: { readonly user: User; readonly factor: Factor; readonly reason: string },
): undefined {
  logger.info({ userId: user.id, factorId: factor.id, reason }, 'rejected WebAuthn factor');
}

/** The form in which GoTrue stores credentials: JSON with bytes in base64. */
function toStored(credential: Credential): JsonObject {
  const { id, publicKey, transports, isUserVerified, isBackupEligible, isBackedUp, aaguid, signCount } =
    credential;
  return {
    id: id.toString('base64'),
    publicKey: publicKey.toString('base64'),
    attestationType: 'none',
    transport: [...transports],
    flags: {
      userPresent: true,
      userVerified: isUserVerified,
      backupEligible: isBackupEligible,
      backupState: isBackedUp,
    },
    authenticator: {
      AAGUID: Buffer.from(aaguid.replaceAll('-', ''), 'hex').toString('base64'),
      signCount,
      cloneWarning: false,
      attachment: '',
    },
  };
}

function toCredential(stored: unknown): Omit<Credential, 'isUserVerified' | 'aaguid'> {
  const { id, publicKey, transport, flags, authenticator } = toObject(stored);
  return {
    id: toBytes(id),
    publicKey: toBytes(publicKey),
    signCount: Number(toObject(authenticator).signCount ?? 0),
    transports: Array.isArray(transport) ? transport.map(String) : [],
    isBackupEligible: toObject(flags).backupEligible === true,
    isBackedUp: toObject(flags).backupState === true,
  };
}

function toBytes(base64: unknown): Buffer {
  return Buffer.from(typeof base64 === 'string' ? base64 : '', 'base64');
}
