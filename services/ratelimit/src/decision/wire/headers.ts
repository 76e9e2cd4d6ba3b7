import { getAlgorithm } from '../../algorithms/registry.ts';
import type { DescriptorLimit, Limit } from '../find-limit.ts';
import { Code, type DescriptorStatus, type Header } from './response.ts';

export interface HeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/**
 * The headers Limit, Remaining and Reset, in this order; none when no descriptor has a limit.
 *
 * They describe the descriptor with the least remaining, the first of equals. A descriptor outside
 * quota mode that is over its limit takes precedence, the last one of several, as in
 * envoyproxy/ratelimit.
 *
 * @see https://datatracker.ietf.org/doc/html/draft-polli-ratelimit-headers-03
 */
export function getResponseHeaders(
  statuses: readonly DescriptorStatus[],
  names: HeaderNames,
): readonly Header[] {
  const tightest = findTightest(statuses);
  if (tightest?.currentLimit === undefined) {
    return [];
  }
  return [
    { key: names.limit, value: String(tightest.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(tightest.limitRemaining) },
    { key: names.reset, value: String(tightest.secondsUntilReset) },
  ];
}

/** More limits in one request are hardly meant for clients, and headers must stay short. */
const maxPolicies = 16;

/**
 * `RateLimit-Policy` and `RateLimit` with the limits of the request that can refuse it, and
 * `Retry-After` when it is refused. Of several limits with one name, the one with the least
 * remaining counts.
 *
 * @see https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-10
 * @see RFC 9110 §10.2.3 for Retry-After
 */
export function getStandardHeaders(
  limits: readonly DescriptorLimit[],
  { statuses, overallCode }: { readonly statuses: readonly DescriptorStatus[]; readonly overallCode: Code },
): readonly Header[] {
  const policies = new Map<string, { readonly limit: Limit; readonly status: DescriptorStatus }>();
  for (const [i, status] of statuses.entries()) {
    const limit = limits[i];
    // A client that waits for a limit in shadow mode would wait in vain.
    if (limit?.kind !== 'limited' || limit.rule.shadowMode) continue;
    const name = quote(getPolicyName(limit));
    const known = policies.get(name);
    if (
      known === undefined ? policies.size < maxPolicies : status.limitRemaining < known.status.limitRemaining
    )
      policies.set(name, { limit, status });
  }
  if (policies.size === 0) return [];
  const join = (format: (policy: { limit: Limit; status: DescriptorStatus }) => string): string =>
    Array.from(policies, ([name, policy]) => `${name}${format(policy)}`).join(', ');
  const headers = [
    {
      key: 'RateLimit-Policy',
      value: join(({ limit }) => `;q=${limit.rule.requestsPerUnit};${describeQuota(limit)}`),
    },
    {
      key: 'RateLimit',
      value: join(({ status }) => `;r=${status.limitRemaining};t=${status.secondsUntilReset}`),
    },
  ];
  return overallCode === Code.OVER_LIMIT
    ? [...headers, { key: 'Retry-After', value: String(getRetryAfter(statuses)) }]
    : headers;
}

/** The levels of a rule as configured: requests with other values have the same policy. */
function getPolicyName({ rule, isOwn, keyEntries }: Limit): string {
  if (rule.name !== '') return rule.name;
  return isOwn ? keyEntries.map(({ key }) => key).join('.') : rule.path.slice(rule.domain.length + 1);
}

/** Seconds until all limits that refuse the request allow it, and one of its quotas. */
export function getRetryAfter(
  statuses: readonly Pick<DescriptorStatus, 'code' | 'quota' | 'secondsUntilReset'>[],
): number {
  const over = statuses.filter(({ code }) => code === Code.OVER_LIMIT);
  const resets = (quota: boolean): readonly number[] =>
    over.flatMap((status) => (status.quota === quota ? [status.secondsUntilReset ?? 0] : []));
  const quotaResets = resets(true);
  const areAllOver = quotaResets.length === statuses.filter(({ quota }) => quota).length;
  return Math.max(0, ...resets(false), areAllOver && quotaResets.length > 0 ? Math.min(...quotaResets) : 0);
}

/** The window of a quota, or its unit where there is no window. */
function describeQuota({ rule, windows }: Limit): string {
  if (getAlgorithm(rule.rate).holdsSlots) return 'qu="concurrent-requests"';
  return `w=${windows?.currentSeconds ?? rule.unitSeconds}`;
}

/** A string of RFC 9651 §3.3.3, which has visible ASCII characters and spaces. */
function quote(text: string): string {
  return `"${text.replace(/[^ -~]/g, '_').replace(/[\\"]/g, '\\$&')}"`;
}

function findTightest(statuses: readonly DescriptorStatus[]): DescriptorStatus | undefined {
  let tightest: DescriptorStatus | undefined;
  // The full uint32 stands for "unlimited" on the wire and is never the tightest.
  let leastRemaining = 0xffff_ffff;
  for (const status of statuses) {
    if (status.currentLimit === undefined) {
      continue;
    }
    const over = status.code === Code.OVER_LIMIT && !status.quota;
    if (over || status.limitRemaining < leastRemaining) {
      leastRemaining = status.limitRemaining;
      tightest = status;
    }
  }
  return tightest;
}
