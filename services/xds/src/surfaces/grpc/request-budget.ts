/** Tells a client that talks from one that floods. */
export interface RequestBudget {
  /** Takes what a request of this length costs; false when there is not as much left. */
  take(bytes: number): boolean;
}

/** What a budget grants. */
export interface RequestBudgetOptions {
  /** Requests at once. */
  readonly burst: number;
  /** Requests earned back with each second. */
  readonly perSecond: number;
  /** A request costs as much as one for each of these that it has begun: a large one takes long to read. */
  readonly bytesPerRequest: number;
}

/** Makes a full budget. */
export function createRequestBudget(
  { burst, perSecond, bytesPerRequest }: RequestBudgetOptions,
  nowMs: () => number,
): RequestBudget {
  let left = burst;
  let lastMs = nowMs();
  return {
    take(bytes) {
      const elapsedMs = Math.max(0, nowMs() - lastMs);
      lastMs = nowMs();
      left = Math.min(burst, left + (elapsedMs * perSecond) / 1_000);
      const cost = Math.max(1, Math.ceil(bytes / bytesPerRequest));
      if (left < cost) return false;
      left -= cost;
      return true;
    },
  };
}
