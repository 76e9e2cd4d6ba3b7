/** The fields that determine a token's expiry. */
export type ExpiryInput = {
  readonly expiresIn?: unknown;
  readonly expiresAt?: unknown;
  readonly expiresLatency?: unknown;
};

/** A token's expiry in seconds; `expiresAt` since the epoch. */
export type Expiry = {
  readonly expiresIn: number | undefined;
  readonly expiresAt: number | undefined;
  readonly expiresLatency: number | undefined;
};

/**
 * Computes a token's expiry. `expiresAt` takes precedence over `expiresIn`, of which 0 means never.
 * The latency is subtracted once, here. Numbers may be text; invalid values count as expired, which
 * is safe.
 */
export function computeExpiry(input: ExpiryInput, nowSeconds: number): Expiry {
  const expiresIn = toSeconds(input.expiresIn);
  const expiresLatency = numberOrUndefined(toSeconds(input.expiresLatency));
  const expiresAt = toEpochSeconds(input.expiresAt) ?? expiresAfter(expiresIn, Math.floor(nowSeconds));
  return {
    expiresIn: numberOrUndefined(expiresIn),
    expiresAt: expiresAt === undefined ? undefined : expiresAt - (expiresLatency ?? 0),
    expiresLatency,
  };
}

function numberOrUndefined(seconds: number | undefined): number | undefined {
  return Number.isNaN(seconds) ? undefined : seconds;
}

function expiresAfter(expiresIn: number | undefined, now: number): number | undefined {
  if (expiresIn === undefined || expiresIn === 0) return undefined;
  return Number.isNaN(expiresIn) ? now : now + expiresIn;
}

/** NaN for anything but a number. */
function toSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  return isSeconds(value) ? Math.trunc(Number(value)) : Number.NaN;
}

/** Whether a value is a number of seconds, possibly as text. */
export function isSeconds(value: unknown): boolean {
  const isNumber = typeof value === 'string' ? numeric.test(value) : typeof value === 'number';
  return isNumber && Number.isFinite(Number(value));
}

/** Only a decimal number: `3600 seconds` and `1h` are rejected. */
const numeric = /^\s*[+-]?\d+(?:\.\d+)?\s*$/;

function toEpochSeconds(value: unknown): number | undefined {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)) {
    const ms = Date.parse(value);
    return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
  }
  const seconds = toSeconds(value);
  return Number.isNaN(seconds) ? 0 : seconds;
}
