import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  randomInt,
  randomUUID,
  timingSafeEqual,
} from 'node:crypto';

/** Settings of the cipher. */
export interface EncryptionSettings {
  readonly dbEncryptionEncrypt: boolean;
  readonly dbEncryptionKeyId: string;
  /** Base64url of 32 bytes. */
  readonly dbEncryptionKey: string;
  /** Keys by id. */
  readonly dbEncryptionDecryptionKeys: Readonly<Record<string, string>>;
}

/** GoTrue's format: both servers can read each other's values. `data` ends with the tag. */
interface EncryptedValue {
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

/** Whether the text is 32 bytes in base64url. */
export function isEncryptionKey(text: string): boolean {
  return /^[\w-]{43}=?$/.test(text);
}

/**
 * Encrypts column values. Each value is bound to its row: it cannot be decrypted in another one.
 * Decryption keys read values from before a key rotation, or from before encryption was turned off.
 */
export class ColumnCipher {
  /** Whether `encrypt` does; otherwise there is at most something to decrypt. */
  readonly encrypts: boolean;
  readonly #currentId: string;
  readonly #keys: ReadonlyMap<string, string>;

  constructor(settings: EncryptionSettings) {
    this.encrypts = settings.dbEncryptionEncrypt;
    this.#currentId = settings.dbEncryptionKeyId;
    const keys = new Map(Object.entries(settings.dbEncryptionDecryptionKeys));
    if (this.#currentId !== '' && settings.dbEncryptionKey !== '')
      keys.set(this.#currentId, settings.dbEncryptionKey);
    this.#keys = keys;
  }

  /**
   * The form in which a value is stored. Values that are already encrypted, or need not be, stay
   * the same.
   */
  encrypt(rowId: string, value: string): string {
    if (!this.encrypts || parseEncrypted(value) !== undefined) return value;
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', this.#key(this.#currentId, rowId), nonce);
    const data = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    const encrypted: EncryptedValue = {
      key_id: this.#currentId,
      alg: algorithm,
      data: data.toString('base64'),
      nonce: nonce.toString('base64'),
    };
    return JSON.stringify(encrypted);
  }

  /**
   * The plain value; a value that is not encrypted is returned as it is.
   *
   * @throws Error without its key, or if it was changed.
   */
  decrypt(rowId: string, stored: string): string {
    const encrypted = parseEncrypted(stored);
    if (encrypted === undefined) return stored;
    const data = Buffer.from(encrypted.data, 'base64');
    const key = this.#key(encrypted.key_id, rowId);
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(encrypted.nonce, 'base64'), {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(data.subarray(-tagBytes));
    const plain = [decipher.update(data.subarray(0, -tagBytes)), decipher.final()];
    return Buffer.concat(plain).toString('utf8');
  }

  /** Whether `encrypt` would store the value like this: with the current key, or plain. */
  isCurrent(stored: string): boolean {
    const encrypted = parseEncrypted(stored);
    return this.encrypts ? encrypted?.key_id === this.#currentId : encrypted === undefined;
  }

  #key(keyId: string, rowId: string): Buffer {
    const key = this.#keys.get(keyId);
    if (key === undefined)
      throw new Error(
        `a column is encrypted with key ${keyId}, which is missing from SVC_SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS`,
      );
    return deriveKey(Buffer.from(key, 'base64url'), rowId);
  }
}

/**
 * Derives a key per row: AES-GCM allows 2^32 random nonces per key, too few for all users of a
 * large site together.
 *
 * @see RFC 5869 https://www.rfc-editor.org/rfc/rfc5869
 */
function deriveKey(key: Buffer, rowId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), rowId, keyBytes));
}

function parseEncrypted(stored: string): EncryptedValue | undefined {
  // No hash and no secret starts with a brace.
  if (!stored.startsWith('{')) return undefined;
  try {
    // Parsed boundary: the members are checked below.
    const { key_id, alg, data, nonce } = JSON.parse(stored) as Readonly<Record<string, unknown>>;
    if (typeof key_id !== 'string' || typeof data !== 'string' || typeof nonce !== 'string') return undefined;
    return alg === algorithm ? { key_id, alg: algorithm, data, nonce } : undefined;
  } catch {
    return undefined;
  }
}

/** Cryptographically secure random values. */
export interface Randomness {
  uuid(): string;
  bytes(count: number): Buffer;
  /** A code of decimal digits. */
  otp(digits: number): string;
}

export const systemRandomness: Randomness = {
  uuid: randomUUID,
  bytes: randomBytes,
  otp: (digits) => Array.from({ length: digits }, () => randomInt(10)).join(''),
};

/** Compares in constant time. */
export function isEqualSecret(presented: string, expected: string): boolean {
  const [bytes, wanted] = [Buffer.from(presented), Buffer.from(expected)];
  return bytes.length === wanted.length && timingSafeEqual(bytes, wanted);
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Letters and digits of base32 in lower case, with 5 random bits each. */
export function randomBase32(random: Randomness, chars: number): string {
  return toBase32(random.bytes(chars));
}

function toBase32(bytes: Buffer): string {
  return Array.from(bytes, (byte) => alphabet.charAt(byte % alphabet.length)).join('');
}

/**
 * 160 bits. No other refresh token or code has this form, so that the form says how it is stored.
 */
const digestedChars = 32;
const digestedForm = new RegExp(`^[${alphabet}]{${digestedChars}}$`);
const digestPrefix = 'sha256:';

/** A random token that the database has as a digest. */
export function randomDigestedToken(random: Randomness): string {
  return randomBase32(random, digestedChars);
}

/**
 * The token that follows another one, which both the stored form of that and the secret determine:
 * a response that was lost can be repeated, although the database has a digest only.
 */
export function deriveDigestedToken(stored: string, secret: string): string {
  const mac = createHmac('sha256', secret).update(`successor of ${stored}`).digest();
  return toBase32(mac.subarray(0, digestedChars));
}

/**
 * The form in which the database has a token or code: its digest, or itself if it is a short one. A
 * presented digest finds nothing.
 */
export function toStoredForm(token: string): string {
  if (!digestedForm.test(token) && !isDigest(token)) return token;
  return `${digestPrefix}${createHash('sha256').update(token).digest('base64url')}`;
}

/** Whether a token of the database is a digest. */
export function isDigest(stored: string): boolean {
  return stored.startsWith(digestPrefix);
}
