import { createHash } from 'node:crypto';
import { bucketQuota } from '../../domain/quota.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { FoundOneTimeToken } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';

const limiter = 'guessable_link';
/** More than the users of a network follow, and one in 10,000 of the codes with six digits. */
const quota = bucketQuota(100, 10 * 60_000);

/**
 * Counts wrong links and those in the form of GoTrue by the network of the client, and refuses the
 * latter beyond a limit: without a secret in the hash, an attacker can compute the links of all
 * codes of a known contact. Links of Tollgate cannot be guessed and are never refused.
 *
 * @param token what was found for the link
 * @throws AppError `over_request_rate_limit`
 */
export async function limitGuessableLinks(
  { store }: DepsWith<'store', never>,
  token: FoundOneTimeToken | undefined,
  { clientNetwork = '', nowMs }: RequestFacts,
): Promise<void> {
  if (token !== undefined && !token.isGuessable) return;
  const key = createHash('sha256').update(clientNetwork).digest('base64url');
  const answer = await store.quotas.take({ limiter, key, quota }, nowMs);
  if (token !== undefined && !answer.allowed)
    throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
}
