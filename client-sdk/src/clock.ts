/** The default clock: epoch seconds. */
export function epochSeconds(): number {
  return Date.now() / 1000;
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

  /** `now` is the clock beside the monotonic one, in seconds. */
  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  elapsedSeconds(): number {
    return Math.max(this.#now() - this.#startedAt, (performance.now() - this.#startedMs) / 1000);
  }
}
