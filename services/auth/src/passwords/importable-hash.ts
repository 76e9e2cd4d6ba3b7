import { isFirebaseHash } from './firebase-scrypt.ts';

const bcryptForm = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const argon2Form = /^\$argon2(?:id|i)\$v=19\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$[\w+/]+\$[\w+/]+$/;

/** What the column holds. */
const maxHashChars = 255;
/** One gibibyte, 20 passes, 16 lanes: what a hash may cost at each sign-in. */
const argon2Limits = { memoryKib: 1024 * 1024, passes: 20, lanes: 16 } as const;

/**
 * Is that a password hash of another server that can be verified here, at a cost that this server bears: bcrypt, argon2i, argon2id, or
 * scrypt as Firebase has it?
 */
export function isImportableHash(hash: string): boolean {
  if (hash.length > maxHashChars) return false;
  return isBcrypt(hash) || isArgon2(hash) || isFirebaseHash(hash);
}

function isBcrypt(hash: string): boolean {
  const cost = Number(bcryptForm.exec(hash)?.[1]);
  return cost >= 4 && cost <= 31;
}

function isArgon2(hash: string): boolean {
  const [memoryKib = 0, passes = 0, lanes = 0] = argon2Form.exec(hash)?.slice(1, 4).map(Number) ?? [];
  const { memoryKib: mostMemory, passes: mostPasses, lanes: mostLanes } = argon2Limits;
  return isWithin(memoryKib, mostMemory) && isWithin(passes, mostPasses) && isWithin(lanes, mostLanes);
}

function isWithin(value: number, most: number): boolean {
  return value >= 1 && value <= most;
}
