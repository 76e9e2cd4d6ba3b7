import { Stopwatch } from '../clock.ts';
import {
  AbortError,
  ConfigurationError,
  type OAuthClientError,
  OAuthError,
  TokenUnavailableError,
  TransportError,
} from '../errors.ts';
import { isTlsFailure } from '../http/connection-failures.ts';
import type { Sleep } from '../timers.ts';
import { type DeviceAuthorization, MINIMUM_INTERVAL_SECONDS } from './authorization.ts';

/**
 * The result of a poll. `waiting`: the user has not decided; `unreachable`: the server did not
 * respond, or was busy.
 */
export type DevicePollEvent<Token> =
  | { readonly type: 'waiting'; readonly nextPollInSeconds: number }
  | { readonly type: 'unreachable'; readonly nextPollInSeconds: number; readonly error: OAuthClientError }
  | { readonly type: 'token'; readonly token: Token };

/**
 * Seconds that `slow_down` adds to the interval.
 * @see RFC 8628 §3.5 https://www.rfc-editor.org/rfc/rfc8628#section-3.5
 */
const SLOW_DOWN_SECONDS = 5;

/** Longest interval while the server is unreachable: users wait in front of the device. */
const MAXIMUM_BACKOFF_SECONDS = 60;

/**
 * Polls until there is a token. Waits before the first poll, too.
 *
 * @throws {TokenResponseError} if the user refused (`access_denied`), the code expired, or the
 * server refuses
 * @throws {TokenUnavailableError} if the device code's lifetime is over
 * @throws {AbortError} if the signal is aborted
 * @see RFC 8628 §3.4 https://www.rfc-editor.org/rfc/rfc8628#section-3.4
 */
export async function* pollForToken<Token>(
  { intervalSeconds, expiresAt }: Pick<DeviceAuthorization, 'intervalSeconds' | 'expiresAt'>,
  {
    requestToken,
    sleep,
    now,
    signal,
  }: {
    /** Sends one token request. */
    readonly requestToken: () => Promise<Token>;
    readonly sleep: Sleep;
    /** Epoch seconds. */
    readonly now: () => number;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<DevicePollEvent<Token>, void, undefined> {
  let interval = Math.max(MINIMUM_INTERVAL_SECONDS, intervalSeconds);
  let delay = interval;
  let waitedSeconds = 0;
  // Devices set their clock when they get a network: from here on, only time that passes counts.
  const lifetimeSeconds = expiresAt - now();
  const polling = new Stopwatch(() => waitedSeconds);
  for (;;) {
    if (polling.elapsedSeconds() + delay >= lifetimeSeconds) throw tooLate();
    await pause(sleep, delay, signal);
    waitedSeconds += delay;
    const outcome = await poll(requestToken);
    if (outcome.type === 'token') {
      yield outcome;
      return;
    }
    if (outcome.type === 'slow_down') interval += SLOW_DOWN_SECONDS;
    if (outcome.type === 'unreachable')
      interval = Math.max(interval, Math.min(interval * 2, MAXIMUM_BACKOFF_SECONDS));
    delay = outcome.type === 'unreachable' ? Math.max(interval, outcome.retryAfterSeconds) : interval;
    yield outcome.type === 'unreachable'
      ? { type: 'unreachable', nextPollInSeconds: delay, error: outcome.error }
      : { type: 'waiting', nextPollInSeconds: delay };
  }
}

type PollOutcome<Token> =
  | { readonly type: 'token'; readonly token: Token }
  | { readonly type: 'pending' }
  | { readonly type: 'slow_down' }
  | { readonly type: 'unreachable'; readonly error: OAuthClientError; readonly retryAfterSeconds: number };

async function poll<Token>(requestToken: () => Promise<Token>): Promise<PollOutcome<Token>> {
  try {
    return { type: 'token', token: await requestToken() };
  } catch (error) {
    if (error instanceof OAuthError) {
      if (error.code === 'authorization_pending') return { type: 'pending' };
      if (error.code === 'slow_down') return { type: 'slow_down' };
      if (error.retryable)
        return { type: 'unreachable', error, retryAfterSeconds: (error.retryAfterMs ?? 0) / 1000 };
    }
    if (error instanceof TransportError && !(error instanceof AbortError) && !isTlsFailure(error)) {
      return { type: 'unreachable', error, retryAfterSeconds: 0 };
    }
    throw error;
  }
}

async function pause(sleep: Sleep, delaySeconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(delaySeconds * 1000, { signal });
  } catch (cause) {
    if (cause instanceof ConfigurationError) throw cause;
    throw new AbortError('polling for the device token was aborted', { cause: signal?.reason ?? cause });
  }
}

function tooLate(): TokenUnavailableError {
  return new TokenUnavailableError(
    'the device code expired before the user finished; start the device flow again',
  );
}
