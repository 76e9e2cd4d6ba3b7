/** When a token is renewed before it expires. */
export interface EarlyRenewal {
  /** Seconds before its expiry. */
  readonly earlySeconds: number;
  /** Up to so many seconds earlier still, by chance: not all processes come at once. */
  readonly jitterSeconds: number;
}

/**
 * The moment (epoch seconds) from which a token is renewed although it is valid; never in the first half of the life it has
 * left, so that short-lived tokens are not renewed at every call. `random` is in [0, 1). Infinity for tokens that do not expire.
 */
export function renewalTime(
  expiresAt: number | undefined,
  now: number,
  { earlySeconds, jitterSeconds, random }: EarlyRenewal & { readonly random: number },
): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  const leftSeconds = Math.max(0, expiresAt - now);
  return expiresAt - Math.min(earlySeconds + random * jitterSeconds, leftSeconds / 2);
}
