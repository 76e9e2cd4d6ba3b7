import { createHash } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import { fetchText } from '../outbound/fetch.ts';
import { WorkQueue } from '../work-queue.ts';

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
