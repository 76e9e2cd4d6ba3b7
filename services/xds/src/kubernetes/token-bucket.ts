/** How fast something may be done. */
export interface TokenBucketOptions {
  readonly ratePerSecond: number;
  /** How many may be done at once after a rest. */
  readonly burst: number;
}

/** Time, as a bucket sees it. */
export interface TokenBucketDeps {
  /** A clock in milliseconds that does not go back. */
  readonly now: () => number;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Makes callers wait so that they keep to a rate; they go in the order in which they came. */
export interface TokenBucket {
  /** Resolves when it is the caller's turn. Rejects when the signal aborts. */
  take(signal: AbortSignal): Promise<void>;
}

/** Makes a full bucket. */
export function createTokenBucket(
  { ratePerSecond, burst }: TokenBucketOptions,
  deps: TokenBucketDeps,
): TokenBucket {
  const intervalMs = 1_000 / ratePerSecond;
  /** When the last token that was given out has been earned. */
  let earnedMs = Number.NEGATIVE_INFINITY;
  return {
    async take(signal) {
      const nowMs = deps.now();
      earnedMs = Math.max(earnedMs, nowMs - burst * intervalMs) + intervalMs;
      if (earnedMs > nowMs) await deps.sleep(earnedMs - nowMs, { signal });
    },
  };
}
