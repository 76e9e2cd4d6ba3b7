import {
  AbortError,
  ConfigurationError,
  ConnectionError,
  OAuthClientError,
  type OAuthClientErrorOptions,
  TimeoutError,
} from './errors.ts';
import { isTlsFailure } from './http/connection-failures.ts';
import { printable } from './text.ts';

/** The longest timer. Longer ones fire immediately, in Node and in browsers. */
export const longestTimerMs = 2 ** 31 - 1;

/** Why a timer does not support a number of milliseconds; undefined if it does. */
export function timerProblem(ms: number): string | undefined {
  if (!(Number.isFinite(ms) && ms >= 0)) return 'must be a number of 0 or more';
  return ms > longestTimerMs ? `must be at most ${longestTimerMs} ms (24.8 days)` : undefined;
}

/** @throws {ConfigurationError} if timers do not support the number. */
export function assertTimer(name: string, ms: number): void {
  const problem = timerProblem(ms);
  if (problem !== undefined) throw new ConfigurationError(`\`${name}\` ${problem}`);
}

/**
 * Resolves after that many milliseconds; rejects with the signal's reason if it is aborted before.
 */
export type Sleep = (ms: number, options?: { signal?: AbortSignal | undefined }) => Promise<void>;

/** The default Sleep. Rejects with a ConfigurationError for a time that timers do not support. */
export const sleep: Sleep = (ms, { signal } = {}) =>
  new Promise((resolve, reject) => {
    assertTimer('the wait', ms);
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });

/** Bounds of the waits between attempts. */
export interface Backoff {
  /** Upper bound of the first wait, doubled with every attempt. */
  readonly baseDelayMs: number;
  /** Upper bound of all waits. */
  readonly maxDelayMs: number;
}

/**
 * Exponential backoff with full jitter, so that clients that failed together do not retry together.
 * `random` is in [0, 1), attempts count from 1.
 */
export function backoffDelayMs(
  attempt: number,
  { baseDelayMs, maxDelayMs }: Backoff,
  random: number,
): number {
  // Larger exponents lose precision, and every bound is smaller.
  const bound = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(attempt - 1, 52));
  return Math.floor(random * bound);
}

/**
 * The time limit of a request, combined with the caller's signal. One controller and one timer cost
 * a tenth of `AbortSignal.any` over `AbortSignal.timeout`.
 */
export class Deadline {
  readonly #timeoutMs: number;
  readonly #caller: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #ended = Promise.withResolvers<never>();
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  #timeoutReason: DOMException | undefined;

  /** @throws {ConfigurationError} if timers do not support the time. */
  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    assertTimer('timeoutMs', timeoutMs);
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
    // It may reject when nothing races against it.
    this.#ended.promise.catch(() => undefined);
    this.#timer = timeoutMs > 0 ? setTimeout(this.#onTimeout, timeoutMs) : undefined;
    if (caller?.aborted) this.#onAbort();
    else caller?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Aborted by the time-out or by the caller. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Settles like `work`, or rejects at the deadline even if `work` ignores the signal. */
  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#ended.promise]);
  }

  /** The error to throw for what was thrown before the deadline ended. */
  toError(error: unknown): OAuthClientError {
    if (this.#timeoutReason !== undefined) return timeoutError(this.#timeoutMs, error);
    return transportError(error, this.#caller);
  }

  /** Releases timer and listener. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }

  #abort(reason: unknown): void {
    this.#controller.abort(reason);
    this.#ended.reject(reason);
  }

  readonly #onTimeout = (): void => {
    const message = `no complete response within ${this.#timeoutMs} ms`;
    this.#timeoutReason = new DOMException(message, 'TimeoutError');
    this.#abort(this.#timeoutReason);
  };

  readonly #onAbort = (): void => this.#abort(this.#caller?.reason);
}

/** The error for a request that exceeded its time limit. */
function timeoutError(timeoutMs: number, cause: unknown): TimeoutError {
  const message = `no complete response within ${timeoutMs} ms; raise \`timeoutMs\` if the server needs longer`;
  return new TimeoutError(message, { cause, retryable: true });
}

/**
 * The error for what `fetch` or reading a body threw; errors of the library are returned unchanged.
 */
function transportError(error: unknown, caller: AbortSignal | undefined): OAuthClientError {
  if (caller?.aborted) return new AbortError('the call was aborted by its signal', { cause: caller.reason });
  if (error instanceof OAuthClientError) return error;
  const options: OAuthClientErrorOptions = { cause: error, retryable: !isTlsFailure(error) };
  const detail = describeCause(error);
  return new ConnectionError(
    options.retryable
      ? `the server could not be reached: ${detail}`
      : `the TLS connection failed: ${detail}; check that the server's certificate is issued by a trusted authority for this name`,
    options,
  );
}

/** `fetch` throws only `fetch failed`; the reason is its cause. */
function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const { cause } = error;
  return printable(cause instanceof Error && cause.message !== '' ? cause.message : error.message, 512);
}
