import { createHash } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors, WeakPasswordError, type WeakPasswordReason } from '../errors.ts';
import { fetchText } from '../http/fetch.ts';
import { WorkQueue } from '../work-queue.ts';

/** Lower values of the setting have no effect. */
const leastLength = 6;
/** bcrypt ignores further bytes; imported hashes are verified with it. */
const maxPasswordBytes = 72;

/** Why the policy rejects a password. */
export interface PasswordWeakness {
  readonly message: string;
  readonly reasons: readonly WeakPasswordReason[];
}

type PolicyContext = Pick<Context, 'leakedPasswords' | 'settings'>;

/**
 * Checks a new password against the policy and the leaked passwords.
 *
 * @throws AppError `validation_failed` if it is too long; `weak_password` with reasons;
 * `unexpected_failure` if the lookup of leaked passwords fails and the settings fail closed.
 */
export async function checkPassword(context: PolicyContext, password: string): Promise<void> {
  checkPasswordLength(password);
  const failClosed = context.settings.passwordHibpFailClosed;
  const weakness = await findWeakness(context, password, { failClosed });
  if (weakness !== undefined) throw new WeakPasswordError(weakness.message, weakness.reasons);
}

/** @throws AppError `validation_failed` if the password is too long. */
export function checkPasswordLength(password: string): void {
  if (Buffer.byteLength(password) > maxPasswordBytes)
    throw errors.validation_failed({
      message: `Password cannot be longer than ${maxPasswordBytes} characters`,
    });
}

/** Why the current policy rejects a password; undefined if it does not. */
export async function findWeakness(
  context: PolicyContext,
  password: string,
  { failClosed }: { readonly failClosed: boolean },
): Promise<PasswordWeakness | undefined> {
  const problems = policyProblems(password, context.settings);
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

/** Splits at `:`; `\:` is a colon. */
function parseCharacterSets(text: string): string[] {
  return text
    .replaceAll('\\:', '\0')
    .split(':')
    .map((set) => set.replaceAll('\0', ':'))
    .filter((set) => set !== '');
}

/** Sign-ups wait for the response, which usually takes 100 ms. */
const timeoutMs = 3_000;
/** A range has about a thousand lines of 40 bytes. */
const maxResponseBytes = 256 * 1024;
/** Lookups fail immediately for this time after a failed request. */
const pauseMs = 10_000;
/** Limits the connections that a flood of sign-ups opens. */
const concurrency = 16;
const maxWaiting = 256;
/** Digits of the hash that are sent: a range has about a million possible passwords. */
const prefixDigits = 5;

/**
 * Looks passwords up in Pwned Passwords, or a copy of it, by range: the service sees five digits of
 * the SHA-1 of a password, and padding hides the size of the response from eavesdroppers.
 *
 * @see https://haveibeenpwned.com/API/v3#SearchingPwnedPasswordsByRange
 */
export class LeakedPasswords {
  readonly #settings: Pick<Settings, 'passwordHibpUrl' | 'passwordHibpUserAgent'>;
  readonly #logger: Logger;
  readonly #nowMs: () => number;
  readonly #queue = new WorkQueue({ concurrency, maxWaiting });
  #pausedUntilMs = 0;

  constructor(
    settings: Pick<Settings, 'passwordHibpUrl' | 'passwordHibpUserAgent'>,
    { logger, nowMs }: { readonly logger: Logger; readonly nowMs: () => number },
  ) {
    this.#settings = settings;
    this.#logger = logger;
    this.#nowMs = nowMs;
  }

  /** @throws Error if the service is unavailable; the failure is logged */
  async includes(password: string): Promise<boolean> {
    const hash = createHash('sha1').update(password).digest('hex').toUpperCase();
    const range = await this.#queue.run(() => this.#fetchRange(hash.slice(0, prefixDigits)));
    return isInRange(range, hash.slice(prefixDigits));
  }

  async #fetchRange(prefix: string): Promise<string> {
    if (this.#nowMs() < this.#pausedUntilMs) throw new Error('lookups are paused after a failed request');
    const base = this.#settings.passwordHibpUrl.replace(/\/$/, '');
    try {
      return await fetchText(new URL(`${base}/range/${prefix}`), {
        // The operator named this host, which may serve a copy in a private network.
        privateHosts: [new URL(base).hostname.replace(/^\[|\]$/g, '').toLowerCase()],
        timeoutMs,
        maxBytes: maxResponseBytes,
        headers: { 'user-agent': this.#settings.passwordHibpUserAgent, 'add-padding': 'true' },
      });
    } catch (error) {
      this.#pausedUntilMs = this.#nowMs() + pauseMs;
      this.#logger.warn({ err: error, pauseMs }, 'leaked passwords unavailable, pausing lookups');
      throw error;
    }
  }
}

/** Lines are `<35 digits>:<count>`; the count of padding lines is 0. */
function isInRange(range: string, suffix: string): boolean {
  const line = range.split(/\r?\n/).find((text) => text.toUpperCase().startsWith(`${suffix}:`));
  return line !== undefined && Number(line.slice(suffix.length + 1)) > 0;
}
