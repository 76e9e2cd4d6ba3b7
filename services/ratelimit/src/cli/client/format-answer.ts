import {
  type RateLimitResponse,
  RateLimitResponse_Code,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_RateLimit_Unit,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Entry } from '@tollgate/rules/match';

/** What remains of an unlimited rule, by the contract. */
const unlimitedRemaining = 0xffff_ffff;

/** An answer for people: the overall code, a line for each descriptor, a line for each header to add. */
export function formatAnswer(
  { overallCode, statuses, responseHeadersToAdd }: RateLimitResponse,
  descriptors: readonly (readonly Entry[])[],
): string {
  const lines = [
    codeName(overallCode),
    ...statuses.map((status, index) => `  (${entriesText(descriptors[index])}): ${statusText(status)}`),
    ...responseHeadersToAdd.map(({ key, value }) => `  header ${key}: ${value}`),
  ];
  return `${lines.join('\n')}\n`;
}

function entriesText(entries: readonly Entry[] = []): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(', ');
}

function statusText(status: RateLimitResponse_DescriptorStatus): string {
  const { code, currentLimit, limitRemaining, durationUntilReset } = status;
  const parts = [codeName(code)];
  if (currentLimit !== undefined) {
    const { requestsPerUnit, unit, name } = currentLimit;
    const unitName = RateLimitResponse_RateLimit_Unit[unit]?.toLowerCase() ?? `unit ${unit}`;
    parts.push(`limit ${requestsPerUnit} per ${unitName}${name === '' ? '' : ` (${name})`}`);
    parts.push(`${limitRemaining} remaining`);
  } else {
    parts.push(limitRemaining === unlimitedRemaining ? 'unlimited' : 'no limit');
  }
  if (durationUntilReset !== undefined) parts.push(`resets in ${durationUntilReset.seconds}s`);
  return parts.join(', ');
}

/** Servers may know codes that this client does not. */
function codeName(code: RateLimitResponse_Code): string {
  return RateLimitResponse_Code[code] ?? `code ${code}`;
}
