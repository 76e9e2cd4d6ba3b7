/**
 * Retries that know which requests may be repeated.
 *
 * @module
 */

import { AbortError, ConfigurationError, TransportError } from './errors.ts';
import type { RequestContext } from './hooks.ts';
import { certainlyNeverReachedServer, isTlsFailure } from './http/connection-failures.ts';
import type { RetryPolicy } from './http/options.ts';
import type { ApiResponse } from './http/response.ts';
import { parseRetryAfter } from './http/response-error.ts';
import { assertTimer, backoffDelayMs, longestTimerMs, sleep as machineSleep, type Sleep } from './timers.ts';

export type { Sleep } from './timers.ts';

/**
 * What may be sent again.
 * `never`: not even after an answer that says so. `unprocessed`: only when the server cannot have acted on it.
 * `always`: a second time does no harm.
 */
type ReplaySafety = 'never' | 'unprocessed' | 'always';

/** Grants that spend what they show. A device polls by rules of its own (RFC 8628 §3.5). */
const singleUseGrants: ReadonlySet<string | undefined> = new Set([
  'authorization_code',
  'urn:ietf:params:oauth:grant-type:device_code',
]);

const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

/**
 * Judges one call. A code is spent by its first use, and its second use revokes what the first gave (RFC 6749 §4.1.2).
 * A rotating refresh token that was used twice looks stolen (RFC 9700 §4.14.2), unless the server takes repeats for one
 * (`refreshIsIdempotent`). Every other request to the authorization server can be repeated: at worst a token more is issued.
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
  /** Attempts in all, the first included. Default 3. */
  maxAttempts?: number;
  /** Upper bound of the first wait in milliseconds; it doubles with every attempt. Default 200. */
  baseDelayMs?: number;
  /** Upper bound of every backoff in milliseconds. Default 10,000. */
  maxDelayMs?: number;
  /** Milliseconds from the first attempt after which none is begun; a longer Retry-After is not waited for. Default 30,000. */
  deadlineMs?: number;
  /** The server gives the same answer to a refresh that is repeated, so that it may be. Default false. */
  refreshIsIdempotent?: boolean;
  /** In [0, 1). Default `Math.random`. */
  random?: () => number;
  /** Default: the machine's timers. */
  sleep?: Sleep;
  /** Epoch milliseconds. Default from `Date`. */
  nowMs?: () => number;
}

/**
 * Makes a policy for a Client's `retry` that tries again only what is safe to repeat. Never a code; a refresh token only
 * when the server cannot have used it; other token requests and idempotent API calls after network errors, 502, 503 and 504;
 * anything after 429, and after 503 with Retry-After, since these say that nothing was done. Waits with full jitter, or as
 * Retry-After says. A failure of TLS is final. An aborted signal ends the wait.
 *
 * @throws ConfigurationError when a delay is longer than a timer waits.
 * @throws AbortError from the policy when the signal is aborted during a wait.
 * @see RFC 9110 §10.2.3 https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function createRetryPolicy(options: RetryOptions = {}): RetryPolicy {
  const { maxAttempts = 3, baseDelayMs = 200, maxDelayMs = 10_000, deadlineMs = 30_000 } = options;
  const { refreshIsIdempotent = false, random = Math.random, sleep = machineSleep } = options;
  const nowMs = options.nowMs ?? Date.now;
  assertTimer('baseDelayMs', baseDelayMs);
  assertTimer('maxDelayMs', maxDelayMs);

  return async (context, attempt, onRetry) => {
    const startedMs = nowMs();
    const safety = replaySafety(context, refreshIsIdempotent);
    for (let number = 1; ; number += 1) {
      const outcome = await settle(attempt, number);
      const reason = number < maxAttempts ? retryReason(outcome, safety, nowMs()) : undefined;
      if (reason === undefined) return unwrap(outcome);
      const delayMs = reason.retryAfterMs ?? backoffDelayMs(number, { baseDelayMs, maxDelayMs }, random());
      if (nowMs() - startedMs + delayMs >= deadlineMs || delayMs > longestTimerMs) return unwrap(outcome);
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

/** Why to try again (from a bounded set of names), or undefined to keep the outcome. */
function retryReason(
  outcome: Outcome,
  safety: ReplaySafety,
  nowMs: number,
): { readonly name: string; readonly retryAfterMs?: number } | undefined {
  if (safety === 'never') return undefined;
  if (!outcome.ok) {
    if (!(outcome.error instanceof TransportError) || outcome.error instanceof AbortError) return undefined;
    // A certificate that is not accepted will not be the next time.
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

/**
 * Retries that understand OAuth.
 *
 * @module
 */
