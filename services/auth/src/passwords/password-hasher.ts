import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2';
import { hash as bcryptHash, verify as bcryptVerify } from '@node-rs/bcrypt';
import { createWorkQueue, QueueFull } from '../background/work-queue.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { PasswordHasher } from '../ports/password-hasher.ts';
import { verifyFirebaseHash } from './firebase-scrypt.ts';
import { isImportableHash } from './importable-hash.ts';

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
