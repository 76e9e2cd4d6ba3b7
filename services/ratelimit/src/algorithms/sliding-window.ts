import type { Rate } from '@tollgate/rules/rule-set';
import {
  countTaken,
  maxPeriodsAhead,
  type RateAlgorithm,
  type State,
  type Taken,
  type TakeRequest,
  toDebt,
  toNeeded,
  toRemaining,
  toSeconds,
} from './algorithm.ts';

/**
 * State: the number of a window, and the hits in the window before it and in it. The window before
 * counts by the part of it that is within one period from now, as if its hits were spread evenly.
 */
function takeFromSlidingWindow(rate: Rate, state: State, { hits, times, nowUs }: TakeRequest): Taken {
  const { limit } = rate;
  const periodUs = rate.periodSeconds * 1e6;
  let index = Math.floor(nowUs / periodUs);
  let elapsed = nowUs / periodUs - index;
  let before = 0;
  let current = 0;
  if (state !== undefined) {
    const [storedIndex = 0, storedBefore = 0, storedCurrent = 0] = state;
    if (storedIndex > index && storedIndex <= index + maxPeriodsAhead) {
      // Negative: the window has not begun by this clock.
      elapsed = nowUs / periodUs - storedIndex;
      index = storedIndex;
    }
    if (storedIndex === index) [before, current] = [storedBefore, storedCurrent];
    else if (storedIndex === index - 1) before = storedCurrent;
  }
  const weight = Math.min(1, 1 - elapsed);
  const needed = toNeeded(hits);
  const taken = countTaken(limit - (before * weight + current), hits, times);
  current += taken * hits;
  if (current < 0) {
    before = Math.max(0, before + current);
    current = 0;
  }
  const available = limit - (before * weight + current);
  const debt = toDebt(rate, available, (times - taken) * hits);
  current += debt;
  let waitPeriods = 1;
  if (needed <= limit && current + needed <= limit)
    waitPeriods = 1 - (limit - current - needed) / before - elapsed;
  else if (needed <= limit) waitPeriods = 1 - elapsed + Math.max(0, 1 - (limit - needed) / current);
  return {
    taken,
    remaining: toRemaining(available),
    waitSeconds: taken < times ? toSeconds(waitPeriods * periodUs) : 0,
    ...(taken * hits + debt !== 0 && { state: [index, before, current] }),
  };
}

function getExpiryUs({ periodSeconds }: Rate, [index = 0]: readonly number[]): number {
  return (index + 2) * periodSeconds * 1e6;
}

/**
 * State: the number of a window, and the hits in the window before it and in it. The key expires
 * one window later.
 */
const lua = `
function takes.sliding_window(call, state)
  local hits, times, limit, period = call.hits, call.times, call.limit, call.period
  local index = floor(now / period)
  local elapsed, before, current = now / period - index, 0, 0
  local ttl = (2 - elapsed) * period + 1e6
  if state and #state == 24 then
    local stored, stored_before, stored_current = unpack_numbers('>ddd', state)
    if stored == index + 1 then
      index = stored
      elapsed = now / period - index
    end
    if stored == index then
      before, current, ttl = stored_before, stored_current, nil
    elseif stored == index - 1 then
      before = stored_current
    end
  end
  local weight, needed = min(1, 1 - elapsed), call.needed
  local available, taken, wait = limit - (before * weight + current), times, 0
  if needed > 0 and needed * times > available + 1e-6 then taken = count_taken(call, available) end
  current = current + taken * hits
  if current < 0 then
    before = max(0, before + current)
    current = 0
  end
  available = limit - (before * weight + current)
  local charged = taken * hits
  if taken < times then
    local debt, periods = to_debt(call, available, (times - taken) * hits), 1
    current, charged = current + debt, charged + debt
    if needed <= limit and current + needed <= limit then
      periods = 1 - (limit - current - needed) / before - elapsed
    elseif needed <= limit then
      periods = 1 - elapsed + max(0, 1 - (limit - needed) / current)
    end
    wait = to_seconds(periods * period)
  end
  local remaining = max(0, floor(available + 1e-6))
  if charged == 0 then return taken, remaining, wait end
  return taken, remaining, wait, pack('>ddd', index, before, current), ttl
end`;

export const slidingWindow: RateAlgorithm = {
  name: 'sliding_window',
  take: takeFromSlidingWindow,
  getExpiryUs,
  getResetSeconds: ({ secondsLeft }) => secondsLeft,
  lua,
  hasBurst: false,
  holdsSlots: false,
};
