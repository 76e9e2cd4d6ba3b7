import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Seals values before they are kept, and opens them again. Each is bound to the row it is of: in another one it does not open. */
export interface ColumnCipher {
  /** The form in which a value is kept: encrypted, or as it is where nothing is to be encrypted. What is sealed already stays. */
  seal(rowId: string, value: string): string;
  /** The value that is kept; one that is not encrypted is what it is. @throws Error when there is no key for it, or it was changed. */
  open(rowId: string, kept: string): string;
  /** Is that how `seal` would keep it now: with the key of today, or without any? */
  isCurrent(kept: string): boolean;
}

/** The settings that say what is encrypted, and with which key. */
export interface EncryptionSettings {
  readonly dbEncryptionEncrypt: boolean;
  readonly dbEncryptionKeyId: string;
  /** Base64url of 32 bytes. */
  readonly dbEncryptionKey: string;
  /** By id. */
  readonly dbEncryptionDecryptionKeys: Readonly<Record<string, string>>;
}

/** A value as GoTrue encrypts it, so that either server reads what the other has written. `data` ends with the tag. */
interface Sealed {
  readonly key_id: string;
  readonly alg: typeof algorithm;
  /** Base64. */
  readonly data: string;
  /** Base64. */
  readonly nonce: string;
}

const algorithm = 'aes-gcm-hkdf';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Is that 32 bytes in base64url? */
export function isEncryptionKey(text: string): boolean {
  return /^[\w-]{43}=?$/.test(text);
}

/** Creates the cipher. Keys that only decrypt open what was encrypted before a change of keys, or before encryption was turned off. */
export function createColumnCipher(settings: EncryptionSettings): ColumnCipher {
  const { dbEncryptionEncrypt: encrypts, dbEncryptionKeyId: currentId, dbEncryptionKey: current } = settings;
  const keys = new Map(Object.entries(settings.dbEncryptionDecryptionKeys));
  if (currentId !== '' && current !== '') keys.set(currentId, current);

  function keyOf(keyId: string, rowId: string): Buffer {
    const text = keys.get(keyId);
    if (text === undefined)
      throw new Error(
        `a column is encrypted with the key ${keyId}, which is not in SVC_SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS`,
      );
    return deriveKey(Buffer.from(text, 'base64url'), rowId);
  }

  return {
    seal(rowId, value) {
      if (!encrypts || parseSealed(value) !== undefined) return value;
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', keyOf(currentId, rowId), nonce);
      const data = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      const sealed: Sealed = {
        key_id: currentId,
        alg: algorithm,
        data: data.toString('base64'),
        nonce: nonce.toString('base64'),
      };
      return JSON.stringify(sealed);
    },
    open(rowId, kept) {
      const sealed = parseSealed(kept);
      if (sealed === undefined) return kept;
      const data = Buffer.from(sealed.data, 'base64');
      const key = keyOf(sealed.key_id, rowId);
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.nonce, 'base64'), {
        authTagLength: tagBytes,
      });
      decipher.setAuthTag(data.subarray(-tagBytes));
      const opened = [decipher.update(data.subarray(0, -tagBytes)), decipher.final()];
      return Buffer.concat(opened).toString('utf8');
    },
    isCurrent(kept) {
      const sealed = parseSealed(kept);
      return encrypts ? sealed?.key_id === currentId : sealed === undefined;
    },
  };
}

/**
 * A key for one row: AES-GCM bears 2^32 random nonces a key, which is not much for all users of a large site together.
 *
 * @see RFC 5869 https://www.rfc-editor.org/rfc/rfc5869
 */
function deriveKey(key: Buffer, rowId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), rowId, keyBytes));
}

function parseSealed(kept: string): Sealed | undefined {
  // No hash and no secret begins like that.
  if (!kept.startsWith('{')) return undefined;
  try {
    // Parsed boundary: the members are looked at right below.
    const { key_id, alg, data, nonce } = JSON.parse(kept) as Readonly<Record<string, unknown>>;
    if (typeof key_id !== 'string' || typeof data !== 'string' || typeof nonce !== 'string') return undefined;
    return alg === algorithm ? { key_id, alg: algorithm, data, nonce } : undefined;
  } catch {
    return undefined;
  }
}
