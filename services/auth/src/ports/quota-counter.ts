import type { Millis } from '@tollgate/kit/duration';
import type { Quota } from '../domain/quota.ts';

/** May it happen, and if not, when is it worth another try, at the latest? */
export type QuotaAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly retryAfterMs: Millis };

/** Counts events against quotas, for all replicas together. */
export interface QuotaCounter {
  /**
   * Counts one event, unless the quota of this limiter and key is used up. `limiter` is a constant of the program, `key` names
   * whom it is for (an address, or nothing for all).
   */
  take(
    of: { readonly limiter: string; readonly key: string; readonly quota: Quota },
    nowMs: number,
  ): Promise<QuotaAnswer>;
}
