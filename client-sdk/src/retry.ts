/**
 * Retries that know which requests may be repeated.
 *
 * @module
 */

import { Stopwatch } from './clock.ts';
import { AbortError, ConfigurationError, TransportError } from './errors.ts';
import type { RequestContext } from './hooks.ts';
import { certainlyNeverReachedServer, isTlsFailure } from './http/connection-failures.ts';
import type { RetryPolicy } from './http/options.ts';
import type { ApiResponse } from './http/response.ts';
import { parseRetryAfter } from './http/response-error.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';
import { assertTimer, backoffDelayMs, longestTimerMs, sleep as machineSleep, type Sleep } from './timers.ts';

export type { Sleep } from './timers.ts';

/**
 * Whether a request may be sent again. `never`: not even if the response asks for it.
 * `unprocessed`: only if the server cannot have processed it. `always`: repeating it is harmless.
 */
type ReplaySafety = 'never' | 'unprocessed' | 'always';

/** Grants whose credential is single-use. Devices poll by rules of their own (RFC 8628 §3.5). */
const singleUseGrants: ReadonlySet<string | undefined> = new Set([
  'authorization_code',
  'urn:ietf:params:oauth:grant-type:device_code',
]);

const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

/**
 * Classifies a call. A code is spent by its first use, and its second use revokes the tokens of the
 * first (RFC 6749 §4.1.2). A rotating refresh token that is used twice looks stolen (RFC 9700
 * §4.14.2), unless the server is idempotent (`refreshIsIdempotent`). Other requests to the
 * authorization server at worst issue another token.
 */
function replaySafety(context: RequestContext, refreshIsIdempotent: boolean): ReplaySafety {
  const { operation, grantType, method } = context;
  if (operation === 'token') {
    if (singleUseGrants.has(grantType)) return 'never';
    return grantType === 'refresh_token' && !refreshIsIdempotent ? 'unprocessed' : 'always';
  }
  if (operation === 'resource' || operation === 'request') {
    return idempotentMethods.has(method.toUpperCase()) ? 'always' : 'unprocessed';
  }
  return 'always';
}

/** Options of `createRetryPolicy`. */
export interface RetryOptions {
  /** Maximum number of attempts, the first included. Default 3. */
  maxAttempts?: number;
  /** Upper bound of the first wait in milliseconds, doubled with every attempt. Default 200. */
  baseDelayMs?: number;
  /** Upper bound of every backoff in milliseconds. Default 10,000. */
  maxDelayMs?: number;
  /**
   * Milliseconds from the first attempt until the last may start; a longer Retry-After is not
   * waited for. Default 30,000.
   */
  deadlineMs?: number;
  /** Whether the server responds to a repeated refresh like to the first. Default false. */
  refreshIsIdempotent?: boolean;
  /** Returns a number in [0, 1). Default `Math.random`. */
  random?: () => number;
  /** Default: the machine's timers. */
  sleep?: Sleep;
  /** Epoch milliseconds. Default from `Date`. */
  nowMs?: () => number;
}

const retryOptionNames: OptionNames<RetryOptions> = {
  ...{ maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1, deadlineMs: 1, refreshIsIdempotent: 1 },
  ...{ random: 1, sleep: 1, nowMs: 1 },
};

/**
 * Makes a policy for a Client's `retry` that repeats only what is safe to repeat. A code is never
 * sent again, and a refresh token only if the server cannot have used it. Other token requests and
 * idempotent API calls are retried after network errors, 502, 503 and 504; all of them after 429,
 * and after 503 with Retry-After, which mean that nothing was processed. Waits with full jitter, or
 * as Retry-After says. TLS failures are not retried. An aborted signal ends the wait.
 *
 * @throws ConfigurationError if a delay is longer than timers support.
 * @throws AbortError from the policy if the signal is aborted during a wait.
 * @see RFC 9110 §10.2.3 https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function createRetryPolicy(options: RetryOptions = {}): RetryPolicy {
  assertKnownOptions('createRetryPolicy', options, retryOptionNames);
  const { maxAttempts = 3, baseDelayMs = 200, maxDelayMs = 10_000, deadlineMs = 30_000 } = options;
  const { refreshIsIdempotent = false, random = Math.random, sleep = machineSleep } = options;
  const nowMs = options.nowMs ?? Date.now;
  assertTimer('baseDelayMs', baseDelayMs);
  assertTimer('maxDelayMs', maxDelayMs);

  return async (context, attempt, onRetry) => {
    const sinceFirst = new Stopwatch(() => nowMs() / 1000);
    const safety = replaySafety(context, refreshIsIdempotent);
    for (let number = 1; ; number += 1) {
      const outcome = await settle(attempt, number);
      const reason = number < maxAttempts ? retryReason(outcome, safety, nowMs()) : undefined;
      if (reason === undefined) return unwrap(outcome);
      const delayMs = reason.retryAfterMs ?? backoffDelayMs(number, { baseDelayMs, maxDelayMs }, random());
      const startsMs = sinceFirst.elapsedSeconds() * 1000 + delayMs;
      if (startsMs >= deadlineMs || delayMs > longestTimerMs) return unwrap(outcome);
      onRetry({ attempt: number, delayMs, reason: reason.name });
      await wait(sleep, delayMs, context.signal);
    }
  };
}

type Outcome =
  | { readonly ok: true; readonly response: ApiResponse }
  | { readonly ok: false; readonly error: unknown };

async function settle(attempt: (number: number) => Promise<ApiResponse>, number: number): Promise<Outcome> {
  try {
    return { ok: true, response: await attempt(number) };
  } catch (error) {
    return { ok: false, error };
  }
}

function unwrap(outcome: Outcome): ApiResponse {
  if (outcome.ok) return outcome.response;
  throw outcome.error;
}

/** The reason to retry (from a bounded set of names), or undefined to keep the outcome. */
function retryReason(
  outcome: Outcome,
  safety: ReplaySafety,
  nowMs: number,
): { readonly name: string; readonly retryAfterMs?: number } | undefined {
  if (safety === 'never') return undefined;
  if (!outcome.ok) {
    if (!(outcome.error instanceof TransportError) || outcome.error instanceof AbortError) return undefined;
    // A rejected certificate is rejected again.
    if (isTlsFailure(outcome.error)) return undefined;
    const mayRepeat = safety === 'always' || certainlyNeverReachedServer(outcome.error);
    return mayRepeat ? { name: outcome.error.kind } : undefined;
  }
  const { status, headers } = outcome.response;
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), nowMs);
  const saysUnprocessed = status === 429 || (status === 503 && retryAfterMs !== undefined);
  const isGatewayFailure = status >= 502 && status <= 504;
  if (!saysUnprocessed && !(isGatewayFailure && safety === 'always')) return undefined;
  return { name: `status_${status}`, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

async function wait(sleep: Sleep, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, { signal });
  } catch (cause) {
    if (cause instanceof ConfigurationError) throw cause;
    throw new AbortError('aborted while waiting for the next attempt', { cause });
  }
}
