import { Stopwatch } from '../clock.ts';

/** The fields that determine a token's expiry. */
export type ExpiryInput = {
  readonly expiresIn?: unknown;
  readonly expiresAt?: unknown;
  readonly expiresLatency?: unknown;
};

/**
 * When a token expires. `expiresAt` takes precedence over `expiresIn`, of which 0 means never. The
 * latency is subtracted once, here. Numbers may be text; invalid values count as expired, which is
 * safe.
 *
 * The wall clock may be set back, so a token is never valid for longer than its lifetime after it
 * was made or restored.
 */
export class Expiry {
  /** Seconds from issue to expiry, as sent by the server. */
  readonly expiresIn: number | undefined;
  /** Epoch seconds, reduced by the latency. Whole unless `expiresIn` is not. */
  readonly expiresAt: number | undefined;
  readonly expiresLatency: number | undefined;
  /** Seconds from issue to `expiresAt`; undefined if it does not expire. */
  readonly lifetimeSeconds: number | undefined;
  readonly #now: () => number;
  readonly #age: Stopwatch;
  /** Seconds from the making of this object. */
  readonly #maxAgeSeconds: number;

  /** `now` returns epoch seconds. */
  constructor(input: ExpiryInput, now: () => number) {
    const madeAt = now();
    const expiresIn = toSeconds(input.expiresIn);
    this.expiresIn = numberOrUndefined(expiresIn);
    this.expiresLatency = numberOrUndefined(toSeconds(input.expiresLatency));
    const latency = this.expiresLatency ?? 0;
    const expiresAt = toEpochSeconds(input.expiresAt) ?? expiresAfter(expiresIn, madeAt);
    this.expiresAt = expiresAt === undefined ? undefined : expiresAt - latency;
    this.#now = now;
    this.#age = new Stopwatch(now);
    const leftSeconds = this.expiresAt === undefined ? Number.POSITIVE_INFINITY : this.expiresAt - madeAt;
    const issuedFor = this.expiresIn ? this.expiresIn - latency : leftSeconds;
    this.lifetimeSeconds = this.expiresAt === undefined ? undefined : issuedFor;
    this.#maxAgeSeconds = Math.min(leftSeconds, issuedFor);
  }

  /** Seconds until it expires, by the clock that says less; Infinity if it does not expire. */
  secondsLeft(): number {
    if (this.expiresAt === undefined) return Number.POSITIVE_INFINITY;
    return Math.min(this.expiresAt - this.#now(), this.#maxAgeSeconds - this.#age.elapsedSeconds());
  }
}

function numberOrUndefined(seconds: number | undefined): number | undefined {
  return Number.isNaN(seconds) ? undefined : seconds;
}

function expiresAfter(expiresIn: number | undefined, now: number): number | undefined {
  if (expiresIn === undefined || expiresIn === 0) return undefined;
  if (Number.isNaN(expiresIn)) return Math.floor(now);
  return Number.isInteger(expiresIn) ? Math.floor(now) + expiresIn : now + expiresIn;
}

/** NaN for anything but a number. */
function toSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return isSeconds(value) ? Number(value) : Number.NaN;
}

/** Whether a value is a number of seconds, possibly as text. */
export function isSeconds(value: unknown): boolean {
  const isNumber = typeof value === 'string' ? numeric.test(value) : typeof value === 'number';
  return isNumber && Number.isFinite(Number(value));
}

/** A decimal number; `3600 seconds` and `1h` are rejected. */
const numeric = /^\s*[+-]?\d+(?:\.\d+)?\s*$/;

function toEpochSeconds(value: unknown): number | undefined {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)) {
    const ms = Date.parse(value);
    return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
  }
  const seconds = toSeconds(value);
  if (seconds === undefined) return undefined;
  return Number.isNaN(seconds) ? 0 : Math.trunc(seconds);
}
