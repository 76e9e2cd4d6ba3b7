/** Measures for how long requests to services were in flight. Those at the same time count once. */
export class RequestTimer {
  #requests = 0;
  #inFlight = 0;
  #startedMs = 0;
  #elapsedMs = 0;

  async measure<T>(request: Promise<T>): Promise<T> {
    this.#requests++;
    if (this.#inFlight++ === 0) this.#startedMs = performance.now();
    try {
      return await request;
    } finally {
      if (--this.#inFlight === 0) this.#elapsedMs += performance.now() - this.#startedMs;
    }
  }

  /** The value of `Server-Timing`, which browsers show with the request. */
  header(): string {
    return `services;dur=${this.#elapsedMs.toFixed(1)};desc="${this.#requests} requests"`;
  }
}
