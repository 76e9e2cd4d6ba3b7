import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash as argon2Hash } from '@node-rs/argon2';
import { hash as bcryptHash } from '@node-rs/bcrypt';
import PQueue from 'p-queue';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { errors, RetryLaterError, WeakPasswordError, type WeakPasswordReason } from '../errors.ts';
import type { ColumnCipher } from '../keys/secrets.ts';
import { Metrics, type WorkCounters } from '../metrics.ts';
import { containsContextWord } from './context-words.ts';
import { verifyHash } from './imported-hashes.ts';
import type { LeakedPasswords } from './leaked-passwords.ts';

export interface PasswordsContext extends BaseContext {
  readonly passwords: PasswordHasher;
  readonly leakedPasswords: LeakedPasswords;
}

/**
 * Argon2id with 19 MiB, 2 passes, 1 lane: the minimum that OWASP recommends, about 20 ms of a core.
 * The library's enum is ambient, which type stripping cannot read; 2 is Argon2id.
 *
 * @see https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html
 */
const argon2Options = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const currentPrefix = '$argon2id$v=19$m=19456,t=2,p=1$';

/** The cost of GoTrue, whose releases before summer 2024 read no other hashes. */
const bcryptCost = 10;
const bcryptForm = /^\$2[aby]\$1\d\$/;

/** At 20 ms each the last one waits for a second. */
const maxWaitingPerHash = 50;
const retryAfterSeconds = 2;

interface HasherOptions {
  /** Uses bcrypt instead of Argon2id. Default false. */
  readonly dbSharedWithGotrue?: boolean;
  /** Decrypts stored hashes; absent if they are not encrypted. */
  readonly cipher?: ColumnCipher;
  readonly metrics?: Metrics;
  /**
   * Hashes run on the threads of libuv. The default, one fewer than there are cores, leaves a core
   * to the event loop and threads to WebCrypto.
   */
  readonly concurrency?: number;
}

/**
 * Hashes and verifies passwords in one bounded queue; rejects with `hash_queue_full` when it is
 * full.
 */
export class PasswordHasher {
  readonly #dbSharedWithGotrue: boolean;
  readonly #cipher: ColumnCipher | undefined;
  readonly #queue: PQueue;
  readonly #metrics: Metrics;
  #dummyHash: Promise<string> | undefined;

  constructor({
    dbSharedWithGotrue = false,
    cipher,
    metrics = new Metrics(),
    concurrency = Math.max(1, availableParallelism() - 1),
  }: HasherOptions) {
    this.#dbSharedWithGotrue = dbSharedWithGotrue;
    this.#cipher = cipher;
    this.#queue = new PQueue({ concurrency });
    this.#metrics = metrics;
  }

  hash(password: string): Promise<string> {
    return this.#count(this.#metrics.passwordHashes, () => this.#hash(password));
  }

  /** Whether the password matches the stored hash of a user; false for an unknown form of hash. */
  verify(password: string, storedHash: string, userId: string): Promise<boolean> {
    return this.#count(this.#metrics.passwordComparisons, () =>
      verifyHash(password, this.#decrypt(storedHash, userId)),
    );
  }

  /**
   * Does the work of `verify` for a user who does not exist: prevents user enumeration by timing.
   */
  async verifyDummy(password: string): Promise<false> {
    await this.#count(this.#metrics.passwordComparisons, async () => {
      this.#dummyHash ??= this.#hash(randomBytes(16).toString('base64'));
      return verifyHash(password, await this.#dummyHash);
    });
    return false;
  }

  /**
   * Whether `hash` would use the same parameters and encryption; if not, a sign-in replaces the
   * hash.
   */
  isCurrent(storedHash: string, userId: string): boolean {
    const cipher = this.#cipher;
    const isStale = isPlain(storedHash) ? cipher?.encrypts : cipher?.isCurrent(storedHash) === false;
    if (isStale) return false;
    const hash = this.#decrypt(storedHash, userId);
    return hash.startsWith(currentPrefix) || (this.#dbSharedWithGotrue && bcryptForm.test(hash));
  }

  #hash(password: string): Promise<string> {
    return this.#dbSharedWithGotrue ? hashAsGotrue(password) : argon2Hash(password, argon2Options);
  }

  #decrypt(storedHash: string, userId: string): string {
    return this.#cipher === undefined || isPlain(storedHash)
      ? storedHash
      : this.#cipher.decrypt(userId, storedHash);
  }

  /**
   * Hashes codes that are too long to be guessed, each with one pass of Argon2id: the parameters of
   * GoTrue. The codes take one turn in the queue.
   */
  hashRandomCodes(codes: readonly string[]): Promise<string[]> {
    return this.#enqueue(async () => {
      const hashes: string[] = [];
      for (const code of codes) hashes.push(await argon2Hash(code, { ...argon2Options, timeCost: 1 }));
      return hashes;
    });
  }

  /** Index of the code's hash; -1 for none. Takes the time of all comparisons. */
  findRandomCode(code: string, hashes: readonly string[]): Promise<number> {
    return this.#enqueue(async () => {
      const matches: boolean[] = [];
      for (const hash of hashes) matches.push(await verifyHash(code, hash));
      return matches.indexOf(true);
    });
  }

  async #count<T>({ submitted, completed }: WorkCounters, work: () => Promise<T>): Promise<T> {
    submitted.inc();
    const result = await this.#enqueue(work);
    completed.inc();
    return result;
  }

  async #enqueue<T>(work: () => Promise<T>): Promise<T> {
    if (this.#queue.size >= this.#queue.concurrency * maxWaitingPerHash) {
      this.#metrics.passwordQueueFull.inc();
      throw new RetryLaterError(errors.hash_queue_full(), retryAfterSeconds);
    }
    return await this.#queue.add(work);
  }
}

/** GoTrue writes `2a`, which is the same as `2b` for passwords of fewer than 256 bytes. */
async function hashAsGotrue(password: string): Promise<string> {
  return (await bcryptHash(password, bcryptCost)).replace('$2b$', '$2a$');
}

/** All encrypted values begin with a brace, and no hash does. */
function isPlain(storedHash: string): boolean {
  return !storedHash.startsWith('{');
}

/** Lower values of the setting have no effect. */
const leastLength = 6;
/** Why the policy rejects a password. */
export interface PasswordWeakness {
  readonly message: string;
  readonly reasons: readonly WeakPasswordReason[];
}

type PolicyContext = PasswordsContext;

/**
 * Checks a new password against the policy and the leaked passwords. `contacts` are the email and
 * the phone of its user.
 *
 * @throws AppError `validation_failed` if it is too long; `weak_password` with reasons;
 * `unexpected_failure` if the lookup of leaked passwords fails and the settings fail closed.
 */
export async function checkPassword(
  context: PolicyContext,
  password: string,
  contacts: readonly string[],
): Promise<void> {
  checkPasswordLength(password, context.settings);
  const failClosed = context.settings.passwordHibpFailClosed;
  const weakness = await findWeakness(context, password, { contacts, failClosed });
  if (weakness !== undefined) throw new WeakPasswordError(weakness.message, weakness.reasons);
}

/** @throws AppError `validation_failed` if the password is too long. */
export function checkPasswordLength(
  password: string,
  { passwordMaxBytes }: Pick<Settings, 'passwordMaxBytes'>,
): void {
  if (Buffer.byteLength(password) > passwordMaxBytes)
    throw errors.validation_failed({
      message: `Password cannot be longer than ${passwordMaxBytes} characters`,
    });
}

/** Why the current policy rejects a password; undefined if it does not. */
export async function findWeakness(
  context: PolicyContext,
  password: string,
  { contacts, failClosed }: { readonly contacts: readonly string[]; readonly failClosed: boolean },
): Promise<PasswordWeakness | undefined> {
  const problems = policyProblems(password, context.settings);
  if (containsContextWord(password, contacts, context.settings))
    problems.push({
      reason: 'context',
      message: 'Password should not contain your email, your phone number or the name of this site.',
    });
  if (await isLeaked(context, password, { failClosed }))
    problems.push({ reason: 'pwned', message: 'Password is known from leaks, please choose another one.' });
  if (problems.length === 0) return undefined;
  return {
    message: problems.map(({ message }) => message).join(' '),
    reasons: problems.map(({ reason }) => reason),
  };
}

async function isLeaked(
  { leakedPasswords, settings }: PolicyContext,
  password: string,
  { failClosed }: { readonly failClosed: boolean },
): Promise<boolean> {
  if (!settings.passwordHibpEnabled) return false;
  try {
    return await leakedPasswords.includes(password);
  } catch (cause) {
    if (!failClosed) return false;
    throw errors.unexpected_failure({
      message: 'Unable to check whether the password is known from leaks, please try again later',
      cause,
    });
  }
}

interface PasswordProblem {
  readonly reason: WeakPasswordReason;
  readonly message: string;
}

function policyProblems(
  password: string,
  settings: Pick<Settings, 'passwordMinLength' | 'passwordRequiredCharacters'>,
): PasswordProblem[] {
  const problems: PasswordProblem[] = [];
  const minLength = Math.max(leastLength, settings.passwordMinLength);
  if ([...password].length < minLength)
    problems.push({ reason: 'length', message: `Password should be at least ${minLength} characters.` });
  const sets = parseCharacterSets(settings.passwordRequiredCharacters);
  if (sets.some((set) => ![...password].some((character) => set.includes(character)))) {
    const message = `Password should contain at least one character of each: ${sets.join(', ')}.`;
    problems.push({ reason: 'characters', message });
  }
  return problems;
}

/** The policy for users who choose a password. */
export function passwordRule(settings: Pick<Settings, 'passwordMinLength' | 'passwordRequiredCharacters'>): {
  readonly length: number;
  /** Sets of which a character each is required; empty for none. */
  readonly sets: string;
} {
  return {
    length: Math.max(leastLength, settings.passwordMinLength),
    sets: parseCharacterSets(settings.passwordRequiredCharacters).join(' '),
  };
}

/** Splits at `:`; `\:` is a colon. */
function parseCharacterSets(text: string): string[] {
  return text
    .replaceAll('\\:', '\0')
    .split(':')
    .map((set) => set.replaceAll('\0', ':'))
    .filter((set) => set !== '');
}
