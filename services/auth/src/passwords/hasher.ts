import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import { hash as bcryptHash, verify as bcryptVerify } from '@node-rs/bcrypt';
import { isAppError } from '@tollgate/kit/errors';
import { Counter, type Registry } from 'prom-client';
import { errors, RetryLaterError } from '../errors.ts';
import type { ColumnCipher } from '../keys/column-encryption.ts';
import { createWorkQueue, QueueFull } from '../messages/background.ts';
import { isImportableHash, verifyFirebaseHash } from './imported-hashes.ts';

/** Hashes and verifies passwords. Both wait in one bounded queue; when it is full they reject with `hash_queue_full`. */
export interface PasswordHasher {
  /** A new hash, in the form that `isCurrent` accepts. */
  hash(password: string): Promise<string>;
  /** Does the password belong to the hash, as it is kept for a user? A hash in a form that nobody knows belongs to none. */
  verify(password: string, hash: string, userId: string): Promise<boolean>;
  /** The same work as `verify`, for a user who does not exist: whoever measures must not learn that. */
  verifyNobody(password: string): Promise<false>;
  /** Can a hash that comes from another server be verified, at a cost that can be borne? */
  isImportable(hash: string): boolean;
  /** Was the hash made as `hash` makes them now, and is it kept as it would be now? If not, it is to be replaced when the password is known. */
  isCurrent(hash: string, userId: string): boolean;
}

/**
 * Argon2id with 19 MiB, 2 passes, 1 lane: the least that OWASP recommends, about 20 ms of a core.
 * The library's enum is ambient, which type stripping cannot read; 2 is its Argon2id.
 *
 * @see https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html
 */
const argon2Options = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const currentPrefix = '$argon2id$v=19$m=19456,t=2,p=1$';

/** As GoTrue makes them. Its releases of before the summer of 2024 know no other hashes. */
const bcryptOptions = { cost: 10, version: '2a' } as const;
const bcryptForm = /^\$2[aby]\$1\d\$/;

/** At 20 ms each the last of them waits for a second; whoever comes later is better told to try again. */
const maxWaitingPerHash = 50;
const retryAfterSeconds = 2;

/** Hash forms that are verified, by how they begin. */
const verifiers: readonly {
  readonly prefix: RegExp;
  verify(password: string, hash: string): Promise<boolean>;
}[] = [
  { prefix: /^\$argon2(?:id|i)\$/, verify: (password, hash) => argon2Verify(hash, password) },
  { prefix: /^\$2[aby]\$/, verify: (password, hash) => bcryptVerify(password, hash) },
  { prefix: /^\$fbscrypt\$/, verify: verifyFirebaseHash },
];

/** A hasher of hashes that are not encrypted: whose they are does not matter. */
export interface BareHasher extends PasswordHasher {
  verify(password: string, hash: string): Promise<boolean>;
  isCurrent(hash: string): boolean;
}

/** How passwords are hashed. */
export interface HashOptions {
  /** By bcrypt, in place of argon2id. Default false. */
  readonly dbSharedWithGotrue?: boolean;
}

/**
 * Creates the hasher. Hashes run on the threads of libuv, `concurrency` at a time: by default one fewer than there are cores, and at
 * least one. More would be a little faster; the event loop would wait for a core, and all who need those threads for their turn.
 */
export function createPasswordHasher(
  { dbSharedWithGotrue = false }: HashOptions,
  concurrency: number = Math.max(1, availableParallelism() - 1),
): BareHasher {
  const queue = createWorkQueue({ concurrency, maxWaiting: concurrency * maxWaitingPerHash });
  let nobody: Promise<string> | undefined;

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await queue.run(work);
    } catch (error) {
      if (error instanceof QueueFull) throw new RetryLaterError(errors.hash_queue_full(), retryAfterSeconds);
      throw error;
    }
  }

  const hash = (password: string): Promise<string> =>
    inTurn(() =>
      dbSharedWithGotrue ? bcryptHash(password, bcryptOptions) : argon2Hash(password, argon2Options),
    );

  return {
    hash,
    verify: (password, known) => inTurn(() => verifyAny(password, known)),
    async verifyNobody(password) {
      nobody ??= hash(randomBytes(16).toString('base64'));
      const known = await nobody;
      await inTurn(() => verifyAny(password, known));
      return false;
    },
    isImportable: isImportableHash,
    isCurrent: (known) => known.startsWith(currentPrefix) || (dbSharedWithGotrue && bcryptForm.test(known)),
  };
}

async function verifyAny(password: string, hash: string): Promise<boolean> {
  const verifier = verifiers.find(({ prefix }) => prefix.test(hash));
  // What looks like a hash and is none, a cut one for example, belongs to no password.
  return (await verifier?.verify(password, hash).catch(() => false)) ?? false;
}

/** A hasher that takes hashes as they are kept, encrypted or not; they are opened when a password is at hand, and not before. */
export function withSealedHashes(hasher: BareHasher, cipher: ColumnCipher): PasswordHasher {
  return {
    ...hasher,
    verify: async (password, kept, userId) => hasher.verify(password, cipher.decrypt(userId, kept)),
    isCurrent: (kept, userId) => cipher.isCurrent(kept) && hasher.isCurrent(cipher.decrypt(userId, kept)),
  };
}

/** Counts passwords that are hashed and compared: the difference of submitted and completed waits, or was refused. Without a registry, nothing. */
export function countHashes(hasher: PasswordHasher, registry: Registry | undefined): PasswordHasher {
  if (registry === undefined) return hasher;
  const queueFull = new Counter({
    name: 'auth_password_queue_full_total',
    help: 'Passwords neither hashed nor compared because too many were waiting.',
    registers: [registry],
  });
  const onError = (error: unknown): void => {
    if (isAppError(error, 'hash_queue_full')) queueFull.inc();
  };
  const hashes = counted('gotrue_generate_from_password', 'Passwords hashed', { registry, onError });
  const comparisons = counted('gotrue_compare_hash_and_password', 'Passwords compared with a hash', {
    registry,
    onError,
  });
  return {
    ...hasher,
    hash: (password) => hashes(hasher.hash(password)),
    verify: (password, known, userId) => comparisons(hasher.verify(password, known, userId)),
    verifyNobody: (password) => comparisons(hasher.verifyNobody(password)),
  };
}

function counted(
  name: string,
  what: string,
  { registry, onError }: { readonly registry: Registry; readonly onError: (error: unknown) => void },
) {
  const registers = [registry];
  const submitted = new Counter({
    name: `${name}_submitted_total`,
    help: `${what}, or to be so.`,
    registers,
  });
  const completed = new Counter({ name: `${name}_completed_total`, help: `${what}.`, registers });
  return async <T>(work: Promise<T>): Promise<T> => {
    submitted.inc();
    try {
      const result = await work;
      completed.inc();
      return result;
    } catch (error) {
      onError(error);
      throw error;
    }
  };
}
