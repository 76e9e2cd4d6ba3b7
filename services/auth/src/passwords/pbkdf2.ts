import { pbkdf2, timingSafeEqual } from 'node:crypto';

interface Pbkdf2Hash {
  readonly digest: string;
  readonly iterations: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** `$pbkdf2-sha256$i=600000,l=32$salt$hash` (PHC), or without `i=` and `l=` (passlib). */
const modularForm =
  /^\$pbkdf2(?:-(sha1|sha256|sha512))?\$(?:i=)?(\d{1,8})(?:,l=\d{1,3})?\$([A-Za-z0-9+/.]+={0,2})\$([A-Za-z0-9+/.]+={0,2})$/;
/** `pbkdf2_sha256$600000$salt$hash`, with a salt that is not encoded. */
const djangoForm = /^pbkdf2_(sha1|sha256|sha512)\$(\d{1,8})\$([!-#%-~]{1,64})\$([A-Za-z0-9+/]+={0,2})$/;

/** Maximum of all blocks together, a few seconds; several times what OWASP recommends for SHA-1. */
const maxIterations = 5_000_000;
const minHashBytes = 16;
const maxHashBytes = 64;
const digestBytes: Readonly<Record<string, number>> = { sha1: 20, sha256: 32, sha512: 64 };

function parse(text: string): Pbkdf2Hash | undefined {
  const django = djangoForm.exec(text);
  const [, digest = 'sha1', iterations, salt = '', encoded = ''] = django ?? modularForm.exec(text) ?? [];
  const hash = decode(encoded);
  const blocks = Math.ceil(hash.length / (digestBytes[digest] ?? 1));
  const count = Number(iterations);
  if (!(count >= 1 && count * blocks <= maxIterations)) return undefined;
  if (hash.length < minHashBytes || hash.length > maxHashBytes) return undefined;
  return { digest, iterations: count, salt: django ? Buffer.from(salt) : decode(salt), hash };
}

/** passlib writes `.` for `+`. */
function decode(base64: string): Buffer {
  return Buffer.from(base64.replaceAll('.', '+'), 'base64');
}

export const pbkdf2Form = {
  prefix: /^\$pbkdf2[-$]|^pbkdf2_/,
  isImportable: (text: string): boolean => parse(text) !== undefined,
  async verify(password: string, text: string): Promise<boolean> {
    const known = parse(text);
    if (known === undefined) return false;
    const { salt, iterations, digest } = known;
    const hash = await new Promise<Buffer>((resolve, reject) => {
      pbkdf2(password, salt, iterations, known.hash.length, digest, (error, key) =>
        error ? reject(error) : resolve(key),
      );
    });
    return timingSafeEqual(hash, known.hash);
  },
};
