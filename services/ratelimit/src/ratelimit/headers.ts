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
