import { backoffDelays } from '@tollgate/kit/backoff';
import { maxTimerMs } from '@tollgate/kit/time';
import type { EndedStream } from './stream.ts';

export interface ReconnectBackoffOptions {
  /** Pause after a lost connection; each is 0.5 to 1.5 times as long. */
  readonly connectRetryMs: number;
  /** First and longest pause when a server ends streams without a response. */
  readonly initialMs: number;
  readonly maxMs: number;
  /** Jitter of the growing pauses, 0 to 1. */
  readonly jitter: number;
}

/** Jitter of the short pauses, so that clients that lost one server do not reconnect at once. */
const connectRetryJitter = 0.5;

/**
 * The pauses between streams. After a stream that had worked, and while the server is unreachable,
 * it is the short interval, so that the configuration is current again soon after any outage: an
 * attempt that fails to connect costs next to nothing. Servers that end streams without a response
 * get pauses that double.
 */
export class ReconnectBackoff {
  readonly #short: (attempt: number) => number;
  readonly #growing: (attempt: number) => number;
  #growingPauses = 0;

  constructor(options: ReconnectBackoffOptions, random?: () => number) {
    const { connectRetryMs, initialMs, maxMs, jitter } = options;
    this.#short = backoffDelays({
      initialMs: connectRetryMs,
      maxMs: Math.min(maxTimerMs, connectRetryMs * (1 + connectRetryJitter)),
      factor: 1,
      jitter: connectRetryJitter,
      ...(random && { random }),
    });
    this.#growing = backoffDelays({ initialMs, maxMs, jitter, ...(random && { random }) });
  }

  delayAfterMs({ connected, delivered }: Pick<EndedStream, 'connected' | 'delivered'>): number {
    this.#growingPauses = delivered || !connected ? 0 : this.#growingPauses + 1;
    return this.#growingPauses === 0 ? this.#short(1) : this.#growing(this.#growingPauses);
  }
}
