/** A token bucket: refills with time up to its burst. */
export class Budget {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Takes one token; false when there is none. */
  take(nowMs: number): boolean {
    if (this.#tokens < 1) {
      const refill = ((nowMs - this.#filledMs) * this.#perSecond) / 1000;
      this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, refill));
      this.#filledMs = nowMs;
      if (this.#tokens < 1) return false;
    }
    this.#tokens--;
    return true;
  }

  /** Adds tokens that were earned otherwise. */
  add(tokens: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + tokens);
  }
}
