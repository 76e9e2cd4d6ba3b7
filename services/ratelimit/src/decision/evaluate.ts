import { getAlgorithm } from '../algorithms/registry.ts';
import { isRefused, type Refuses } from '../stores/all-or-none.ts';
import { type DescriptorCheck, type LimitCheck, requireResult } from './check.ts';
import type { DecisionOptions } from './options.ts';
import { Code, type DescriptorStatus } from './wire/response.ts';

type EvaluateOptions = Pick<DecisionOptions, 'quotaMode'>;

const ok: DescriptorStatus = { code: Code.OK, limitRemaining: 0, quota: false };
const okQuota: DescriptorStatus = { ...ok, quota: true };
/** It is no quota: it would allow the request when all quotas are used up. */
const unlimited: DescriptorStatus = { code: Code.OK, limitRemaining: 0xffff_ffff, quota: false };

/**
 * The status of a descriptor without a limit. With QUOTA_MODE, it is a quota that is never used up.
 */
export function getUnmatchedStatus({ quotaMode }: EvaluateOptions): DescriptorStatus {
  return quotaMode ? okQuota : ok;
}

/**
 * The statuses of descriptors whose results are known, in their order: for requests, and for those
 * that are only compared, reserved or explained.
 */
export function evaluate(
  options: EvaluateOptions,
  checks: readonly DescriptorCheck[],
): readonly DescriptorStatus[] {
  return checks.map((check) => {
    if (check.hit !== undefined) return toStatus(options, check);
    return check.limit === undefined ? getUnmatchedStatus(options) : unlimited;
  });
}

function toStatus({ quotaMode }: EvaluateOptions, check: LimitCheck): DescriptorStatus {
  const { limit, hit } = check;
  const { allowed, used, resetSeconds, withheld } = requireResult(check);
  return {
    code: allowed || limit.rule.shadowMode ? Code.OK : Code.OVER_LIMIT,
    currentLimit: limit.rule,
    // Other clients of the store may bring a counter below zero; the wire holds no more than the
    // limit. After a refund a counter may still be above its limit.
    limitRemaining: allowed ? Math.max(0, limit.rule.capacity - Math.max(0, used)) : 0,
    quota: quotaMode || limit.rule.quotaMode,
    secondsUntilReset: resetSeconds,
    tookSlots: getAlgorithm(limit.rule.rate).holdsSlots && hit.addend > 0 && allowed && withheld !== true,
  };
}

/**
 * OVER_LIMIT when a descriptor outside quota mode is over its limit, or when all descriptors in
 * quota mode are: a request may draw on any quota that is left.
 */
export function getOverallCode(statuses: readonly Pick<DescriptorStatus, 'code' | 'quota'>[]): Code {
  return isRefused(statuses, refusesByStatus, isOverLimit) ? Code.OVER_LIMIT : Code.OK;
}

function refusesByStatus({ quota }: Pick<DescriptorStatus, 'quota'>): Refuses {
  return quota ? 'together' : 'alone';
}

function isOverLimit({ code }: Pick<DescriptorStatus, 'code'>): boolean {
  return code === Code.OVER_LIMIT;
}
