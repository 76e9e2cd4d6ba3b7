import { getMaxDebt, type Rate } from '@tollgate/rules/rule-set';
import {
  countTaken,
  type RateAlgorithm,
  type State,
  type Taken,
  type TakeRequest,
  toDebt,
  toNeeded,
  toRemaining,
  toSeconds,
} from './algorithm.ts';

/** State: the tokens at a time. One that is ahead by more than a full refill counts as none. */
function takeFromBucket(rate: Rate, state: State, { hits, times, nowUs }: TakeRequest): Taken {
  const { limit } = rate;
  const burst = limit === 0 ? 0 : rate.burst;
  const periodUs = rate.periodSeconds * 1e6;
  let tokens = burst;
  let atUs = nowUs;
  if (state !== undefined) {
    const [stored = 0, storedAtUs = 0] = state;
    if (storedAtUs - nowUs <= (burst * periodUs) / limit) {
      atUs = Math.max(nowUs, storedAtUs);
      tokens = Math.min(burst, stored + ((atUs - storedAtUs) * limit) / periodUs);
    }
  }
  const maxDebt = getMaxDebt(rate);
  // The limit may have had a larger one.
  if (maxDebt !== undefined) tokens = Math.max(tokens, -maxDebt);
  const needed = toNeeded(hits);
  const taken = countTaken(tokens, hits, times);
  tokens = Math.min(burst, tokens - taken * hits);
  const remaining = toRemaining(tokens);
  const debt = toDebt(rate, tokens, (times - taken) * hits);
  tokens -= debt;
  const waitUs = needed <= burst ? ((needed - tokens) * periodUs) / limit + (atUs - nowUs) : periodUs;
  return {
    taken,
    remaining,
    waitSeconds: taken < times ? toSeconds(waitUs) : 0,
    ...(taken * hits + debt !== 0 && { state: [tokens, atUs] }),
  };
}

/** The tokens are full. */
function getExpiryUs(
  { limit, burst, periodSeconds }: Rate,
  [tokens = 0, atUs = 0]: readonly number[],
): number {
  return limit === 0 ? 0 : atUs + ((burst - tokens) * periodSeconds * 1e6) / limit;
}

function getResetSeconds({ rate, used }: Parameters<RateAlgorithm['getResetSeconds']>[0]): number {
  return Math.ceil((used * rate.periodSeconds) / Math.max(1, rate.limit));
}

/**
 * State: the tokens, their time and when the key expires, as binary numbers, because Lua takes
 * longer to read and write them as text than for all the rest. The TTL is twice what is needed, and
 * 10 seconds, so that few hits set it again.
 */
const lua = `
function takes.token_bucket(call, state)
  local hits, times, limit, period, burst = call.hits, call.times, call.limit, call.period, call.burst
  local needed = call.needed
  if limit == 0 then burst = 0 end
  local tokens, at, expires = burst, now, 0
  if state and #state == 24 then
    local stored, stored_at, stored_expires = unpack_numbers('>ddd', state)
    if stored_at - now <= burst * period / limit then
      at = max(now, stored_at)
      tokens = min(burst, stored + (at - stored_at) * limit / period)
      expires = stored_expires
    end
  end
  if call.debt then tokens = max(tokens, -call.debt) end
  local taken = times
  if needed > 0 and needed * times > tokens + 1e-6 then taken = count_taken(call, tokens) end
  tokens = min(burst, tokens - taken * hits)
  local remaining, wait, charged = max(0, floor(tokens + 1e-6)), 0, taken * hits
  if taken < times then
    local debt = to_debt(call, tokens, (times - taken) * hits)
    tokens, charged = tokens - debt, charged + debt
    wait = to_seconds(needed <= burst and (needed - tokens) * period / limit + at - now or period)
  end
  if charged == 0 or limit == 0 then return taken, remaining, wait end
  local full, ttl = at + (burst - tokens) * period / limit, nil
  if full > expires then
    expires = full + (full - now) + 1e7
    ttl = expires - now
  end
  return taken, remaining, wait, pack('>ddd', tokens, at, expires), ttl
end`;

export const tokenBucket: RateAlgorithm = {
  name: 'token_bucket',
  take: takeFromBucket,
  getExpiryUs,
  getResetSeconds,
  lua,
  hasBurst: true,
  holdsSlots: false,
};
