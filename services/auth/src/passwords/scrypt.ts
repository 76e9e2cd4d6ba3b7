import { createCipheriv, scrypt, timingSafeEqual } from 'node:crypto';

/** Parameters of scrypt. @see RFC 7914 §2 https://www.rfc-editor.org/rfc/rfc7914#section-2 */
interface Cost {
  /** Logarithm of N. */
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** A sign-in takes at most this, sixteen times what Firebase uses. */
const maxMemoryBytes = 256 * 1024 * 1024;
/** Memory is passed through once per unit of `p`: about a second. */
const maxWorkBytes = 1024 * 1024 * 1024;

function isLimited(cost: Cost): boolean {
  if (cost.n < 1 || cost.r < 1 || cost.p < 1) return false;
  return memoryBytes(cost) <= maxMemoryBytes && memoryBytes(cost) * cost.p <= maxWorkBytes;
}

function memoryBytes({ n, r, p }: Cost): number {
  return 128 * r * (2 ** n + p);
}

function derive(password: string, salt: Buffer, options: Cost & { readonly bytes: number }): Promise<Buffer> {
  const { n, r, p, bytes } = options;
  const cost = { N: 2 ** n, r, p, maxmem: memoryBytes(options) + 1024 * 1024 };
  return new Promise((resolve, reject) => {
    scrypt(password, salt, bytes, cost, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

const form = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([\w+/]+={0,2})\$([\w+/]+={0,2})$/;
const minHashBytes = 16;
const maxHashBytes = 64;

function parseScrypt(text: string): (Cost & { readonly salt: Buffer; readonly hash: Buffer }) | undefined {
  const [, n, r, p, salt = '', encoded = ''] = form.exec(text) ?? [];
  const cost = { n: Number(n), r: Number(r), p: Number(p) };
  const hash = Buffer.from(encoded, 'base64');
  if (!isLimited(cost) || hash.length < minHashBytes || hash.length > maxHashBytes) return undefined;
  return { ...cost, salt: Buffer.from(salt, 'base64'), hash };
}

/** `$scrypt$ln=…,r=…,p=…$salt$hash`, the form of passlib and of the PHC. */
export const scryptForm = {
  prefix: /^\$scrypt\$/,
  isImportable: (text: string): boolean => parseScrypt(text) !== undefined,
  async verify(password: string, text: string): Promise<boolean> {
    const known = parseScrypt(text);
    if (known === undefined) return false;
    const hash = await derive(password, known.salt, { ...known, bytes: known.hash.length });
    return timingSafeEqual(hash, known.hash);
  },
};

/**
 * A hash of Firebase: the signer key of the project, encrypted with a key that scrypt derives from
 * the password.
 */
interface FirebaseHash extends Cost {
  readonly salt: Buffer;
  readonly signerKey: Buffer;
  readonly hash: Buffer;
}

const firebase =
  /^\$fbscrypt\$v=1,n=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3}),ss=([\w+/]*={0,2}),sk=([\w+/]+={0,2})\$([\w+/]+={0,2})\$([\w+/]+={0,2})$/;

const aesKeyBytes = 32;

function parseFirebase(text: string): FirebaseHash | undefined {
  const [, n, r, p, saltSeparator = '', signerKey = '', salt = '', hash = ''] = firebase.exec(text) ?? [];
  const cost = { n: Number(n), r: Number(r), p: Number(p) };
  if (!isLimited(cost)) return undefined;
  return {
    ...cost,
    salt: Buffer.concat([Buffer.from(salt, 'base64'), Buffer.from(saltSeparator, 'base64')]),
    signerKey: Buffer.from(signerKey, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

/** `$fbscrypt$v=1,n=…,r=…,p=…,ss=…,sk=…$salt$hash`, the form of GoTrue. */
export const firebaseForm = {
  prefix: /^\$fbscrypt\$/,
  isImportable: (text: string): boolean => parseFirebase(text) !== undefined,
  async verify(password: string, text: string): Promise<boolean> {
    const known = parseFirebase(text);
    if (known === undefined) return false;
    const key = await derive(password, known.salt, { ...known, bytes: aesKeyBytes });
    // Each key encrypts a single text, so the counter can start at 0.
    const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
    const hash = Buffer.concat([cipher.update(known.signerKey), cipher.final()]);
    return hash.length === known.hash.length && timingSafeEqual(hash, known.hash);
  },
};
