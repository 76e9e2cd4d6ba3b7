/** What a token's expiry is worked out from. */
export type ExpiryInput = {
  readonly expiresIn?: unknown;
  readonly expiresAt?: unknown;
  readonly expiresLatency?: unknown;
};

/** When a token expires; all in seconds, `expiresAt` since the epoch. */
export type Expiry = {
  readonly expiresIn: number | undefined;
  readonly expiresAt: number | undefined;
  readonly expiresLatency: number | undefined;
};

/**
 * Works out when a token expires. `expiresAt` wins over `expiresIn`, of which 0 means never; the latency is taken off once, here.
 * Numbers may come as text. A time that is none counts as long past, which is the safe way to be wrong.
 */
export function computeExpiry(input: ExpiryInput, nowSeconds: number): Expiry {
  const expiresIn = toSeconds(input.expiresIn);
  const expiresLatency = toSeconds(input.expiresLatency);
  const given = toEpochSeconds(input.expiresAt);
  const derived = expiresIn === undefined || expiresIn === 0 ? undefined : Math.floor(nowSeconds) + expiresIn;
  const expiresAt = given ?? derived;
  return {
    expiresIn,
    expiresAt: expiresAt === undefined ? undefined : expiresAt - (expiresLatency ?? 0),
    expiresLatency,
  };
}

function toSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const seconds = typeof value === 'number' ? Math.trunc(value) : Number.parseInt(String(value), 10);
  return Number.isFinite(seconds) ? seconds : 0;
}

function toEpochSeconds(value: unknown): number | undefined {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)) {
    const ms = Date.parse(value);
    return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
  }
  return toSeconds(value);
}
