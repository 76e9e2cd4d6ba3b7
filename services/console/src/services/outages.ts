/** A service that does not answer. */
export interface Outage {
  readonly sinceMs: number;
  readonly reason: string;
}

/** Since when services do not answer, by URL. */
export class Outages {
  readonly #outages = new Map<string, Outage>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  recordFailure(url: string, reason: string): Outage {
    const outage = { sinceMs: this.#outages.get(url)?.sinceMs ?? this.#nowMs(), reason };
    this.#outages.set(url, outage);
    return outage;
  }

  recordResponse(url: string): void {
    this.#outages.delete(url);
  }
}
