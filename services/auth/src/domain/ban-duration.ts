import { parseDuration } from '@tollgate/kit/duration';

/** Far enough in the future to be for ever, and near enough for every clock and database. */
const longestMs = 100 * 366 * 24 * 3_600_000;

/**
 * Reads how long a user is banned, a duration in Go's syntax; `none`, and any that is not longer than nothing, lifts a ban. Answers when
 * the ban ends, `null` for no ban, and undefined for what is no duration.
 */
export function parseBan(text: string, nowMs: number): Date | null | undefined {
  if (text === 'none') return null;
  const durationMs = parseDuration(text);
  if (durationMs === undefined) return undefined;
  return durationMs > 0 ? new Date(nowMs + Math.min(durationMs, longestMs)) : null;
}
