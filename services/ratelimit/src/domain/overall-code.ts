import { Code } from './decision.ts';

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
