import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { getErrorMessage } from '@tollgate/kit/errors';
import { toObject } from '../outbound/post-form.ts';
import type { User } from '../users/user.ts';
import type { PasskeysContext } from './context.ts';
import type { Assertion, CeremonyData, Credential } from './store.ts';

/** The reason is for the log. */
export type Verified<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; reason: string };

type UserVerification = 'required' | 'preferred';

interface Ceremony<Options> {
  /** The options as JSON of WebAuthn Level 3. */
  readonly options: Options;
  readonly data: CeremonyData;
}

interface CeremonyOptions {
  readonly userVerification: UserVerification;
  readonly timeoutMs: number;
}

type RelyingParty = PasskeysContext;

/** Takes 100 ms and 27 MB, mostly for attestation, so only servers that use it load it. */
const loadLibrary = () => import('@simplewebauthn/server');

/**
 * EdDSA, ES256 and RS256: every authenticator supports one of them, and so does GoTrue.
 *
 * @see https://www.iana.org/assignments/cose/cose.xhtml#algorithms
 */
const algorithms = [-8, -7, -257];

/**
 * Starts the creation of a credential.
 *
 * @see https://www.w3.org/TR/webauthn-3/#sctn-registering-a-new-credential
 */
export async function startCreation(
  { settings }: RelyingParty,
  {
    user,
    exclude,
    residentKey,
    userVerification,
    timeoutMs,
  }: CeremonyOptions & {
    readonly user: User;
    /** Credentials of the user, whose authenticators are refused. */
    readonly exclude: readonly Pick<Credential, 'id' | 'transports'>[];
    /** Whether the authenticator stores the account, so that it can sign in without a user name. */
    readonly residentKey: 'required' | 'discouraged';
  },
): Promise<Ceremony<PublicKeyCredentialCreationOptionsJSON>> {
  const { generateRegistrationOptions } = await loadLibrary();
  const { webAuthnRpId: rpID, webAuthnRpDisplayName: rpName } = settings;
  const userName = user.email || user.phone || user.id;
  const { name } = user.userMetadata;
  const options = await generateRegistrationOptions({
    rpID,
    rpName,
    // As in GoTrue: the text of the id.
    userID: new Uint8Array(Buffer.from(user.id)),
    userName,
    userDisplayName: typeof name === 'string' && name !== '' ? name : userName,
    attestationType: 'none',
    excludeCredentials: exclude.map(toDescriptor),
    authenticatorSelection: { residentKey, userVerification },
    supportedAlgorithmIDs: algorithms,
    timeout: timeoutMs,
  });
  const { challenge } = options;
  const credParams = algorithms.map((alg) => ({ type: 'public-key', alg }));
  return { options, data: { challenge, rpId: rpID, user_id: toUserId(user), userVerification, credParams } };
}

/** Starts the use of a credential: of any that is picked, or of those in `allow` of `user`. */
export async function startAssertion(
  { settings }: RelyingParty,
  {
    user,
    allow,
    userVerification,
    timeoutMs,
  }: CeremonyOptions & {
    readonly user?: User;
    readonly allow?: readonly Pick<Credential, 'id' | 'transports'>[];
  },
): Promise<Ceremony<PublicKeyCredentialRequestOptionsJSON>> {
  const { generateAuthenticationOptions } = await loadLibrary();
  const { webAuthnRpId: rpID } = settings;
  const options = await generateAuthenticationOptions({
    rpID,
    ...(allow !== undefined && { allowCredentials: allow.map(toDescriptor) }),
    userVerification,
    timeout: timeoutMs,
  });
  const { challenge } = options;
  const owner = user && { user_id: toUserId(user) };
  const allowed = allow && { allowed_credentials: allow.map(({ id }) => id.toString('base64')) };
  return { options, data: { challenge, rpId: rpID, userVerification, ...owner, ...allowed } };
}

function toUserId({ id }: User): string {
  return Buffer.from(id).toString('base64');
}

function toDescriptor({ id, transports }: Pick<Credential, 'id' | 'transports'>) {
  return { id: id.toString('base64url'), transports: [...transports] };
}

interface ReceivedResponse {
  /** The response as received. The library checks the members that it uses. */
  readonly response: unknown;
  readonly challenge: string;
  readonly userVerification: UserVerification;
}

/** Verifies the response of an authenticator that has created a credential. */
export async function verifyCreation(
  { settings }: RelyingParty,
  { response, challenge, userVerification }: ReceivedResponse,
): Promise<Verified<Credential>> {
  const { verifyRegistrationResponse } = await loadLibrary();
  try {
    const { registrationInfo: created } = await verifyRegistrationResponse({
      // Parsed boundary: the library throws if a member has another type.
      response: await withoutAttestation(response as RegistrationResponseJSON),
      expectedChallenge: challenge,
      expectedOrigin: [...settings.webAuthnRpOrigins],
      expectedRPID: settings.webAuthnRpId,
      requireUserVerification: userVerification === 'required',
      supportedAlgorithmIDs: algorithms,
    });
    if (created === undefined) return { ok: false, reason: 'not verified' };
    const { credential, aaguid, credentialDeviceType, credentialBackedUp, userVerified } = created;
    const value = {
      id: Buffer.from(credential.id, 'base64url'),
      publicKey: Buffer.from(credential.publicKey),
      signCount: credential.counter,
      transports: knownTransports(credential.transports),
      aaguid,
      isBackupEligible: credentialDeviceType === 'multiDevice',
      isBackedUp: credentialBackedUp,
      isUserVerified: userVerified,
    };
    return { ok: true, value };
  } catch (error) {
    return { ok: false, reason: toReason(error) };
  }
}

/**
 * Removes the statement about the model of the authenticator, which the options do not request. The
 * library would verify it, and fetch revocation lists from URLs in its certificates.
 *
 * @see https://www.w3.org/TR/webauthn-3/#sctn-none-attestation
 */
async function withoutAttestation(received: RegistrationResponseJSON): Promise<RegistrationResponseJSON> {
  const { decodeAttestationObject, isoBase64URL, isoCBOR } = await import('@simplewebauthn/server/helpers');
  const { response } = received;
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject));
  const attestationObject = isoBase64URL.fromBuffer(
    isoCBOR.encode(
      new Map<string, string | Map<string, never> | Uint8Array>([
        ['fmt', 'none'],
        ['attStmt', new Map<string, never>()],
        ['authData', attestation.get('authData')],
      ]),
    ),
  );
  return { ...received, response: { ...response, attestationObject } };
}

const maxTransports = 8;

/** Browsers send names such as `usb` and `hybrid`, among them future ones. */
function knownTransports(received: unknown): string[] {
  if (!Array.isArray(received)) return [];
  return received
    .filter((name) => typeof name === 'string' && /^[a-z-]{1,20}$/.test(name))
    .slice(0, maxTransports);
}

/**
 * Verifies the response of an authenticator for a stored credential. An authenticator whose counter
 * has not increased may have been cloned and is refused.
 *
 * @see https://www.w3.org/TR/webauthn-3/#sctn-verifying-assertion
 */
export async function verifyAssertion(
  { settings }: RelyingParty,
  {
    response,
    challenge,
    userVerification,
    credential,
  }: ReceivedResponse & { readonly credential: Omit<Credential, 'isUserVerified' | 'aaguid'> },
): Promise<Verified<Assertion>> {
  const { verifyAuthenticationResponse } = await loadLibrary();
  try {
    const { verified, authenticationInfo: asserted } = await verifyAuthenticationResponse({
      // Parsed boundary: the library throws if a member has another type.
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: [...settings.webAuthnRpOrigins],
      expectedRPID: settings.webAuthnRpId,
      requireUserVerification: userVerification === 'required',
      credential: {
        id: credential.id.toString('base64url'),
        publicKey: new Uint8Array(credential.publicKey),
        counter: credential.signCount,
      },
    });
    if (!verified) return { ok: false, reason: 'invalid signature' };
    if ((asserted.credentialDeviceType === 'multiDevice') !== credential.isBackupEligible)
      return { ok: false, reason: 'backup eligibility has changed' };
    const { newCounter: signCount, credentialBackedUp: isBackedUp, userVerified: isUserVerified } = asserted;
    return { ok: true, value: { signCount, isBackedUp, isUserVerified } };
  } catch (error) {
    return { ok: false, reason: toReason(error) };
  }
}

/** Reasons quote the response. */
const maxReasonChars = 200;

function toReason(error: unknown): string {
  return getErrorMessage(error).slice(0, maxReasonChars);
}

/** Id of the credential; undefined if it is missing. */
export function readCredentialId(response: unknown): Buffer | undefined {
  const { id } = toObject(response);
  return typeof id === 'string' ? Buffer.from(id, 'base64url') : undefined;
}

/** Whether the authenticator stored the credential for this user. */
export function namesUser(response: unknown, userId: string): boolean {
  return toObject(toObject(response).response).userHandle === Buffer.from(userId).toString('base64url');
}
