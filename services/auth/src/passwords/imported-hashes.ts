import { createCipheriv, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';

/**
 * A hash of Firebase: the signer key of the project, encrypted with a key that scrypt derives from
 * the password.
 */
interface FirebaseHash {
  /** Logarithm of scrypt's N. */
  readonly n: number;
  readonly r: number;
  readonly p: number;
  readonly saltSeparator: Buffer;
  readonly signerKey: Buffer;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const form =
  /^\$fbscrypt\$v=1,n=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3}),ss=([\w+/]*={0,2}),sk=([\w+/]+={0,2})\$([\w+/]+={0,2})\$([\w+/]+={0,2})$/;

/** Per sign-in; sixteen times what Firebase uses. */
const maxMemoryBytes = 256 * 1024 * 1024;
const maxParallelism = 16;
const aesKeyBytes = 32;

/**
 * Whether the password matches the hash.
 *
 * @throws TypeError if the text is not a hash of Firebase.
 */
export async function verifyFirebaseHash(password: string, text: string): Promise<boolean> {
  const known = parseFirebaseHash(text);
  if (known === undefined) throw new TypeError('not a hash of Firebase');
  const key = await derive(password, known);
  // Each key encrypts a single text, so the counter can start at 0.
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const hash = Buffer.concat([cipher.update(known.signerKey), cipher.final()]);
  return hash.length === known.hash.length && timingSafeEqual(hash, known.hash);
}

function parseFirebaseHash(text: string): FirebaseHash | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, n = '', r = '', p = '', saltSeparator = '', signerKey = '', salt = '', hash = ''] = match;
  const parsed = { n: Number(n), r: Number(r), p: Number(p) };
  if (parsed.n < 1 || parsed.r < 1 || parsed.p < 1 || parsed.p > maxParallelism) return undefined;
  if (scryptMemoryBytes(parsed) > maxMemoryBytes) return undefined;
  return {
    ...parsed,
    saltSeparator: Buffer.from(saltSeparator, 'base64'),
    signerKey: Buffer.from(signerKey, 'base64'),
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

/** @see RFC 7914 §2 https://www.rfc-editor.org/rfc/rfc7914#section-2 */
function scryptMemoryBytes({ n, r, p }: Pick<FirebaseHash, 'n' | 'r' | 'p'>): number {
  return 128 * r * (2 ** n + p);
}

function derive(password: string, known: FirebaseHash): Promise<Buffer> {
  const salt = Buffer.concat([known.salt, known.saltSeparator]);
  const options: ScryptOptions = {
    N: 2 ** known.n,
    r: known.r,
    p: known.p,
    maxmem: scryptMemoryBytes(known) + 1024 * 1024,
  };
  return new Promise((resolve, reject) => {
    scrypt(password, salt, aesKeyBytes, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

const bcryptForm = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const argon2Form = /^\$argon2(?:id|i)\$v=19\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$[\w+/]+\$[\w+/]+$/;

/** Size of the column. */
const maxHashChars = 255;
/** Limits the cost of a sign-in. */
const argon2Limits = { memoryKib: 1024 * 1024, passes: 20, lanes: 16 } as const;

/**
 * Whether a hash of another server can be verified, at a limited cost: bcrypt, argon2i, argon2id,
 * or Firebase's scrypt.
 */
export function isImportableHash(hash: string): boolean {
  if (hash.length > maxHashChars) return false;
  return isBcrypt(hash) || isArgon2(hash) || parseFirebaseHash(hash) !== undefined;
}

function isBcrypt(hash: string): boolean {
  const cost = Number(bcryptForm.exec(hash)?.[1]);
  return cost >= 4 && cost <= 31;
}

function isArgon2(hash: string): boolean {
  const [memoryKib = 0, passes = 0, lanes = 0] = argon2Form.exec(hash)?.slice(1, 4).map(Number) ?? [];
  return (
    isWithin(memoryKib, argon2Limits.memoryKib) &&
    isWithin(passes, argon2Limits.passes) &&
    isWithin(lanes, argon2Limits.lanes)
  );
}

function isWithin(value: number, max: number): boolean {
  return value >= 1 && value <= max;
}
