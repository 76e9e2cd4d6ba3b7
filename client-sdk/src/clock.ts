import { ConfigurationError } from './errors.ts';

/** The default clock: epoch seconds. */
export function epochSeconds(): number {
  return Date.now() / 1000;
}

/**
 * Wraps a clock so that it throws nothing but errors of this library.
 *
 * @throws ConfigurationError from the clock if the given one throws, or returns no number
 */
export function checkedClock(now: () => number): () => number {
  return () => {
    const seconds = call(now);
    if (Number.isFinite(seconds)) return seconds;
    throw new ConfigurationError('`now` must return a number of seconds');
  };
}

function call(now: () => number): number {
  try {
    return now();
  } catch (cause) {
    throw new ConfigurationError('`now` failed; see `cause`', { cause });
  }
}

/**
 * Measures the time since it was made, by two clocks, of which the one that has advanced further
 * counts. The system's time may be set back, and monotonic time may stop while the machine is
 * suspended: by the larger of both, nothing lives longer than it should.
 */
export class Stopwatch {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #startedMs = performance.now();

  readonly #elapsedBefore: number;

  /**
   * `now` is the clock beside the monotonic one, in seconds; `elapsedSeconds` is added to the time
   * measured.
   */
  constructor(now: () => number, { elapsedSeconds = 0 }: { readonly elapsedSeconds?: number } = {}) {
    this.#now = now;
    this.#elapsedBefore = elapsedSeconds;
    this.#startedAt = now();
  }

  elapsedSeconds(): number {
    const monotonic = (performance.now() - this.#startedMs) / 1000;
    return this.#elapsedBefore + Math.max(this.#now() - this.#startedAt, monotonic);
  }
}
