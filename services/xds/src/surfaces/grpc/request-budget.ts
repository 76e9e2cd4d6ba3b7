/** Tells a client that talks from one that floods. */
export interface RequestBudget {
  /** Takes one request; false when there is none left. */
  take(): boolean;
}

/** Makes a full budget: `burst` requests at once, `perSecond` more with each second. */
export function createRequestBudget(
  { burst, perSecond }: { readonly burst: number; readonly perSecond: number },
  nowMs: () => number,
): RequestBudget {
  let left = burst;
  let lastMs = nowMs();
  return {
    take() {
      const elapsedMs = Math.max(0, nowMs() - lastMs);
      lastMs = nowMs();
      left = Math.min(burst, left + (elapsedMs * perSecond) / 1_000);
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
