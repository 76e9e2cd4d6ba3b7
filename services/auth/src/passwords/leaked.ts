import { createHash } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import { fetchText } from '../http/fetch.ts';
import { createWorkQueue } from '../messages/background.ts';

/** Passwords that are known from leaks. */
export interface LeakedPasswords {
  /** Is that one of them? Rejects when that cannot be told, and has logged why. */
  includes(password: string): Promise<boolean>;
}

/** Somebody waits for it; an answer usually takes a tenth of a second. */
const timeoutMs = 3_000;
/** A range has about a thousand lines of 40 bytes. */
const maxAnswerBytes = 256 * 1024;
/** While the service is away nobody waits for it; it is asked again after this time. */
const pauseMs = 10_000;
/** Requests at a time, and so many more that wait: a flood of sign-ups is no reason to open any number of connections. */
const concurrency = 16;
const maxWaiting = 256;
/** Digits of the hash that the service is told; the password could be one of a million others. */
const prefixDigits = 5;

/**
 * Asks Pwned Passwords, or a copy of it, by range: the service learns five digits of the SHA-1 of a password, and not from the length of
 * its answer which of the passwords in that range it was. With the setting off no password is known.
 *
 * @see https://haveibeenpwned.com/API/v3#SearchingPwnedPasswordsByRange
 */
export function createPwnedPasswords(
  settings: Pick<Settings, 'passwordHibpEnabled' | 'passwordHibpUrl' | 'passwordHibpUserAgent'>,
  { logger, nowMs }: { readonly logger: Logger; readonly nowMs: () => number },
): LeakedPasswords {
  if (!settings.passwordHibpEnabled) return { includes: () => Promise.resolve(false) };
  const base = settings.passwordHibpUrl.replace(/\/$/, '');
  const headers = { 'user-agent': settings.passwordHibpUserAgent, 'add-padding': 'true' };
  // The operator has named the host: it may be a copy in a network of their own.
  const privateHosts = [new URL(base).hostname.replace(/^\[|\]$/g, '').toLowerCase()];
  const queue = createWorkQueue({ concurrency, maxWaiting });
  let pausedUntilMs = 0;

  async function fetchRange(prefix: string): Promise<string> {
    if (nowMs() < pausedUntilMs) throw new Error('the service did not answer a moment ago');
    try {
      const options = { privateHosts, timeoutMs, maxBytes: maxAnswerBytes, headers };
      return await fetchText(new URL(`${base}/range/${prefix}`), options);
    } catch (error) {
      pausedUntilMs = nowMs() + pauseMs;
      logger.warn({ err: error, pauseMs }, 'passwords are not looked for in leaks for a while');
      throw error;
    }
  }

  return {
    async includes(password) {
      const hash = createHash('sha1').update(password).digest('hex').toUpperCase();
      const range = await queue.run(() => fetchRange(hash.slice(0, prefixDigits)));
      return isInRange(range, hash.slice(prefixDigits));
    },
  };
}

/** Lines are `<35 digits>:<count>`; those that only pad the answer count 0. */
function isInRange(range: string, rest: string): boolean {
  const line = range.split(/\r?\n/).find((text) => text.toUpperCase().startsWith(`${rest}:`));
  return line !== undefined && Number(line.slice(rest.length + 1)) > 0;
}
