import { Code, type DescriptorStatus, type Header } from './response.ts';

/** Names of the three headers, from LIMIT_*_HEADER. */
export interface HeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** A status together with whether its rule is in quota mode. */
export interface StatusForHeaders {
  readonly status: DescriptorStatus;
  readonly quota: boolean;
}

/**
 * The RateLimit headers of a response, in the order Limit, Remaining, Reset; none where nothing was counted.
 *
 * They speak of the descriptor with the least remaining, the first of equals; an ordinary descriptor that is over
 * its limit outranks these, and of several the last one does (as envoyproxy/ratelimit has it).
 *
 * @see https://datatracker.ietf.org/doc/html/draft-polli-ratelimit-headers-03
 */
export function responseHeaders(all: readonly StatusForHeaders[], names: HeaderNames): readonly Header[] {
  const chosen = tightest(all);
  if (chosen?.currentLimit === undefined) {
    return [];
  }
  return [
    { key: names.limit, value: String(chosen.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(chosen.limitRemaining) },
    { key: names.reset, value: String(chosen.secondsUntilReset) },
  ];
}

function tightest(all: readonly StatusForHeaders[]): DescriptorStatus | undefined {
  let chosen: DescriptorStatus | undefined;
  // A full uint32 marks "unlimited" on the wire and is never the tightest.
  let leastRemaining = 0xffff_ffff;
  for (const { status, quota } of all) {
    if (status.currentLimit === undefined) {
      continue;
    }
    const over = status.code === Code.OVER_LIMIT && !quota;
    if (over || status.limitRemaining < leastRemaining) {
      leastRemaining = status.limitRemaining;
      chosen = status;
    }
  }
  return chosen;
}
