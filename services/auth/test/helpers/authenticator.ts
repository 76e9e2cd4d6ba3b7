import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

/** Settings of a server whose passkeys {@link Authenticator} creates. */
export const relyingParty = {
  PASSKEY_ENABLED: 'true',
  WEBAUTHN_RP_ID: 'example.com',
  WEBAUTHN_RP_DISPLAY_NAME: 'Example',
  WEBAUTHN_RP_ORIGINS: 'https://example.com,https://app.example.com',
};

/** Reports of an authenticator and its browser, right or wrong. */
interface Behavior {
  readonly origin: string;
  readonly rpId: string;
  readonly isUserVerified: boolean;
  /** 0 for an authenticator that does not count. */
  readonly signCount: number;
  /** Format of the statement, which is empty. */
  readonly attestation: string;
}

/** The members of WebAuthn options that are signed. */
interface Options {
  readonly challenge: string;
  readonly user?: { readonly id: string };
}

const honest: Behavior = {
  origin: 'https://example.com',
  rpId: 'example.com',
  isUserVerified: true,
  signCount: 0,
  attestation: 'none',
};

/** An authenticator with one credential (ES256), and its browser. */
export class Authenticator {
  readonly credentialId = randomBytes(16);
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  #userHandle = '';

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#privateKey = privateKey;
    this.#publicKey = publicKey;
  }

  /** The response of `navigator.credentials.create()` as JSON. */
  create({ challenge, user }: Options, behavior: Partial<Behavior> = {}) {
    this.#userHandle = user?.id ?? '';
    const attestation = new Map<string, string | Uint8Array | Map<string, string>>([
      ['fmt', behavior.attestation ?? honest.attestation],
      ['attStmt', new Map()],
      ['authData', this.#authenticatorData({ ...honest, ...behavior }, true)],
    ]);
    return this.#respond({
      clientDataJSON: clientData('webauthn.create', challenge, behavior).toString('base64url'),
      attestationObject: Buffer.from(isoCBOR.encode(attestation)).toString('base64url'),
      transports: ['internal', 'hybrid'],
    });
  }

  /** The response of `navigator.credentials.get()` as JSON. */
  get({ challenge }: Options, behavior: Partial<Behavior> & { readonly userHandle?: string } = {}) {
    const client = clientData('webauthn.get', challenge, behavior);
    const data = this.#authenticatorData({ ...honest, ...behavior }, false);
    const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
    return this.#respond({
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, this.#privateKey).toString('base64url'),
      userHandle: behavior.userHandle ?? this.#userHandle,
    });
  }

  #respond<T>(response: T) {
    const id = this.credentialId.toString('base64url');
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }

  /** @see https://www.w3.org/TR/webauthn-3/#sctn-authenticator-data */
  #authenticatorData({ rpId, isUserVerified, signCount }: Behavior, hasCredential: boolean): Buffer {
    const flags = 0x01 | (isUserVerified ? 0x04 : 0) | (hasCredential ? 0x40 : 0);
    const head = Buffer.alloc(5);
    head.writeUInt8(flags, 0);
    head.writeUInt32BE(signCount, 1);
    const parts = [createHash('sha256').update(rpId).digest(), head];
    return Buffer.concat(hasCredential ? [...parts, this.#credentialData()] : parts);
  }

  #credentialData(): Buffer {
    const { x = '', y = '' } = this.#publicKey.export({ format: 'jwk' });
    const key = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, new Uint8Array(Buffer.from(x, 'base64url'))],
      [-3, new Uint8Array(Buffer.from(y, 'base64url'))],
    ]);
    const idLength = Buffer.from([0, this.credentialId.length]);
    return Buffer.concat([Buffer.alloc(16), idLength, this.credentialId, isoCBOR.encode(key)]);
  }
}

function clientData(type: string, challenge: string, { origin = honest.origin }: Partial<Behavior>): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}
