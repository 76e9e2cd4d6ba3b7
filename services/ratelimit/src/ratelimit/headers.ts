import type { DescriptorLimit, Limit } from './limit.ts';
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
 * `RateLimit-Policy` and `RateLimit` with all limits of the request, and `Retry-After` when it is
 * refused. A limit is named by its rule, or by the keys of its entries; of several with one name,
 * the one with the least remaining counts.
 *
 * @see https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-10
 * @see RFC 9110 §10.2.3 for Retry-After
 */
export function getStandardHeaders(
  limits: readonly DescriptorLimit[],
  { statuses, overallCode }: { readonly statuses: readonly DescriptorStatus[]; readonly overallCode: Code },
): readonly Header[] {
  const policies = new Map<string, { readonly limit: Limit; readonly status: DescriptorStatus }>();
  let retryAfter = 0;
  for (const [i, status] of statuses.entries()) {
    const limit = limits[i];
    if (limit?.kind !== 'limited') continue;
    if (status.code === Code.OVER_LIMIT) retryAfter = Math.max(retryAfter, status.secondsUntilReset ?? 0);
    const name = limit.name === '' ? limit.keyEntries.map(({ key }) => key).join('.') : limit.name;
    const known = policies.get(name);
    if (
      known === undefined ? policies.size < maxPolicies : status.limitRemaining < known.status.limitRemaining
    )
      policies.set(name, { limit, status });
  }
  if (policies.size === 0) return [];
  const join = (format: (policy: { limit: Limit; status: DescriptorStatus }) => string): string =>
    Array.from(policies, ([name, policy]) => `${quote(name)}${format(policy)}`).join(', ');
  const headers = [
    {
      key: 'RateLimit-Policy',
      value: join(({ limit }) => `;q=${limit.requestsPerUnit};${describeQuota(limit)}`),
    },
    {
      key: 'RateLimit',
      value: join(({ status }) => `;r=${status.limitRemaining};t=${status.secondsUntilReset}`),
    },
  ];
  return overallCode === Code.OVER_LIMIT
    ? [...headers, { key: 'Retry-After', value: String(retryAfter) }]
    : headers;
}

/** The window of a quota, or its unit where there is no window. */
function describeQuota({ rate, windows, unitSeconds }: Limit): string {
  if (rate?.algorithm === 'concurrency') return 'qu="concurrent-requests"';
  return `w=${windows?.currentSeconds ?? unitSeconds}`;
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
