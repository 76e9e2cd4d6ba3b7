import { AbortError, ConnectionError, OAuthClientError, TimeoutError } from '../errors.ts';
import { printable } from '../text.ts';
import { assertTimer } from '../timers.ts';
import { isTlsFailure } from './connection-failures.ts';

/** The end that a request comes to: its time-out, or the caller's signal. */
export type Deadline = {
  /** Aborted when either comes. */
  readonly signal: AbortSignal;
  /** Settles as the work does, or rejects when the end comes first, even where the work does not heed the signal. */
  readonly race: <T>(work: Promise<T>) => Promise<T>;
  /** What to throw for what was thrown. */
  readonly toError: (error: unknown) => OAuthClientError;
  /** Frees timer and listener. */
  readonly end: () => void;
};

/**
 * Starts a deadline. One controller and one timer, which cost a tenth of `AbortSignal.any` over `AbortSignal.timeout`.
 * @throws {ConfigurationError} for a time that no timer waits.
 */
export function startDeadline(timeoutMs: number, signal: AbortSignal | undefined): Deadline {
  assertTimer('timeoutMs', timeoutMs);
  const controller = new AbortController();
  const ended = Promise.withResolvers<never>();
  // Nobody may be racing when it rejects.
  ended.promise.catch(() => undefined);
  let isTimedOut = false;

  function abort(reason: unknown): void {
    controller.abort(reason);
    ended.reject(reason);
  }
  const onTimeout = (): void => {
    isTimedOut = true;
    abort(new DOMException(`no complete answer within ${timeoutMs} ms`, 'TimeoutError'));
  };
  const onAbort = (): void => abort(signal?.reason);

  const timer = timeoutMs > 0 ? setTimeout(onTimeout, timeoutMs) : undefined;
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });

  return {
    signal: controller.signal,
    race: (work) => Promise.race([work, ended.promise]),
    toError: (error) => {
      if (isTimedOut) return timeoutError(timeoutMs, error);
      if (signal?.aborted) return abortError(signal.reason);
      if (error instanceof OAuthClientError) return error;
      return connectionError(error);
    },
    end: () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

function timeoutError(timeoutMs: number, cause: unknown): TimeoutError {
  return new TimeoutError(
    `no complete answer within ${timeoutMs} ms; raise \`timeoutMs\` if the server needs longer`,
    {
      cause,
      retryable: true,
    },
  );
}

function connectionError(cause: unknown): ConnectionError {
  if (!isTlsFailure(cause)) {
    const message = `the server could not be reached: ${messageOf(cause)}`;
    return new ConnectionError(message, { cause, retryable: true });
  }
  return new ConnectionError(
    `the TLS connection failed: ${messageOf(cause)}; is the server's certificate of an authority that is trusted here, and for its name?`,
    { cause },
  );
}

function abortError(cause: unknown): AbortError {
  return new AbortError('the call was aborted by its signal', { cause });
}

/** `fetch` says only `fetch failed`; what failed is underneath. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const { cause } = error;
  return printable(cause instanceof Error && cause.message !== '' ? cause.message : error.message, 512);
}
