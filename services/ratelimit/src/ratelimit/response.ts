import type { JsonObject } from '@tollgate/rules/rule-document';
import type { Unit } from '@tollgate/rules/rule-set';

/** Result codes with the numbers of the wire. @see envoy.service.ratelimit.v3.RateLimitResponse.Code */
export const Code = { OK: 1, OVER_LIMIT: 2 } as const;
export type Code = (typeof Code)[keyof typeof Code];

/** The limit a status was measured against. */
interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** Name of the rule's `rate_limit`, or empty. */
  readonly name: string;
}

/** What became of one descriptor. */
export interface DescriptorStatus {
  readonly code: Code;
  /** Absent where nothing was counted: no rule, unlimited, replaced. */
  readonly currentLimit?: CurrentLimit;
  readonly limitRemaining: number;
  /** Whole seconds until the window ends, 1 to the unit's length; absent with `currentLimit`. */
  readonly secondsUntilReset?: number;
}

/** One HTTP header for Envoy to add to the response. */
export interface Header {
  readonly key: string;
  readonly value: string;
}

/** The answer to a RateLimitRequest. */
export interface Decision {
  readonly overallCode: Code;
  /** One for each descriptor, in the request's order. */
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeaders: readonly Header[];
  readonly dynamicMetadata?: JsonObject;
}

/** What the overall code depends on, one for each descriptor. */
export interface CodeVote {
  readonly code: Code;
  /** A quota descriptor is over only together with all other quota descriptors. */
  readonly quota: boolean;
}

/**
 * OVER_LIMIT when any ordinary descriptor is over its limit, or when there are quota descriptors and every one
 * of them is over: a request may draw on any quota that has something left.
 */
export function overallCode(votes: readonly CodeVote[]): Code {
  let quotas = 0;
  let quotasOver = 0;
  for (const vote of votes) {
    const over = vote.code === Code.OVER_LIMIT;
    if (!vote.quota) {
      if (over) {
        return Code.OVER_LIMIT;
      }
      continue;
    }
    quotas += 1;
    quotasOver += over ? 1 : 0;
  }
  return quotas > 0 && quotas === quotasOver ? Code.OVER_LIMIT : Code.OK;
}
