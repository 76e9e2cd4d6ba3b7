import { verify as argon2Verify } from '@node-rs/argon2';
import { verify as bcryptVerify } from '@node-rs/bcrypt';
import { pbkdf2Form } from './pbkdf2.ts';
import { firebaseForm, scryptForm } from './scrypt.ts';

/** A form of password hashes. */
interface HashForm {
  readonly prefix: RegExp;
  /** Whether a hash is well-formed, and cheap enough that it cannot keep the server busy. */
  isImportable(hash: string): boolean;
  /** False, or an error, for a malformed hash. */
  verify(password: string, hash: string): Promise<boolean>;
}

const bcrypt = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
/** Each step doubles the work; 16 takes about four seconds. */
const maxBcryptCost = 16;

const bcryptForm: HashForm = {
  prefix: /^\$2[aby]\$/,
  isImportable: (hash) => isWithin(Number(bcrypt.exec(hash)?.[1]), 4, maxBcryptCost),
  verify: (password, hash) => bcryptVerify(password, hash),
};

const argon2 = /^\$argon2(?:id|i)\$v=19\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$[\w+/]+\$[\w+/]+$/;
/** The work is memory times passes; the maximum takes a few seconds. */
const argon2Limits = { memoryKib: 1024 * 1024, passes: 20, lanes: 16, workKib: 4 * 1024 * 1024 } as const;

const argon2Form: HashForm = {
  prefix: /^\$argon2(?:id|i)\$/,
  isImportable(hash) {
    const [memoryKib = 0, passes = 0, lanes = 0] = argon2.exec(hash)?.slice(1, 4).map(Number) ?? [];
    return (
      isWithin(memoryKib, 1, argon2Limits.memoryKib) &&
      isWithin(passes, 1, argon2Limits.passes) &&
      isWithin(lanes, 1, argon2Limits.lanes) &&
      memoryKib * passes <= argon2Limits.workKib
    );
  },
  verify: (password, hash) => argon2Verify(hash, password),
};

function isWithin(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}

const forms: readonly HashForm[] = [argon2Form, bcryptForm, firebaseForm, scryptForm, pbkdf2Form];

/** Size of the column. */
const maxHashChars = 255;

/** Whether a hash of another server can be verified, at a limited cost. */
export function isImportableHash(hash: string): boolean {
  return hash.length <= maxHashChars && forms.some((form) => form.isImportable(hash));
}

/** Messages name these forms. */
export const importableForms =
  'bcrypt, argon2i or argon2id (v=19), scrypt, fbscrypt (Firebase) or PBKDF2, within limits';

/** Whether the password matches. A malformed hash, for example a truncated one, matches none. */
export async function verifyHash(password: string, hash: string): Promise<boolean> {
  const form = forms.find(({ prefix }) => prefix.test(hash));
  return (await form?.verify(password, hash).catch(() => false)) ?? false;
}
