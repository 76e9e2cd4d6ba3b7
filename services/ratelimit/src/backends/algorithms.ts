import { getMaxDebt, type Rate } from '@tollgate/rules/rule-set';

/** What an algorithm stores of a counter; undefined when it does not exist. */
export type State = readonly number[] | undefined;

/** Equal requests at one time. */
interface Request {
  /** Hits of each; negative gives hits back, 0 checks whether a hit is left. */
  readonly hits: number;
  /** Number of requests. */
  readonly times: number;
  readonly nowUs: number;
}

export interface Taken {
  /** The first so many requests are allowed. */
  readonly taken: number;
  /** Whole hits that remain after them. */
  readonly remaining: number;
  /**
   * Time until the last of the refused requests would be allowed, at least 1; 0 when none is
   * refused.
   */
  readonly waitSeconds: number;
  /** Undefined when it is unchanged. */
  readonly state?: State;
}

type Take = (rate: Rate, state: State, request: Request) => Taken;

/** `redis/scripts.ts` has the same steps in Lua, and a test that compares them. */
const algorithms: Readonly<Record<Rate['algorithm'], Take>> = {
  token_bucket: takeFromBucket,
  sliding_window: takeFromSlidingWindow,
  concurrency: takeSlots,
};

/**
 * Takes hits from a limit, or gives them back. A refused request takes nothing, or, where the limit
 * has a `maxDebt`, all of its hits up to that debt. The result is that of the requests one after
 * the other, except that all refused ones have the wait of the last.
 */
export function take(rate: Rate, state: State, request: Request): Taken {
  return algorithms[rate.algorithm](rate, state, request);
}

/** When a state equals that of a new counter. */
export function getExpiryUs(
  { algorithm, limit, burst, periodSeconds }: Rate,
  state: readonly number[],
): number {
  const periodUs = periodSeconds * 1e6;
  const [first = 0, second = 0] = state;
  if (algorithm === 'token_bucket') return limit === 0 ? 0 : second + ((burst - first) * periodUs) / limit;
  if (algorithm === 'sliding_window') return (first + 2) * periodUs;
  return ((state.at(-2) ?? 0) * periodUs) / partsPerPeriod;
}

/**
 * One request's part as a number, so that it passes through batches as the count of a fixed window
 * does: what remains after it (0 or more), or `-1 - seconds` until it would be allowed.
 */
export function toResult({ taken, remaining, waitSeconds }: Taken, hits: number, index: number): number {
  return index < taken ? remaining + (taken - 1 - index) * hits : -1 - waitSeconds;
}

/** What a result says. */
export function readResult(result: number): { readonly remaining: number; readonly retrySeconds: number } {
  return result < 0 ? { remaining: 0, retrySeconds: -1 - result } : { remaining: result, retrySeconds: 0 };
}

// Sums of fractions are off by far less; without it the third of three refills would be missing.
const epsilon = 1e-6;

/**
 * A clock that stepped back, or that of another Redis after a failover, finds states of the future.
 * They stay as they are, so that nothing is given back; but a state that is further ahead than this
 * would refuse hits for too long, or is of a shorter period, and counts as none.
 */
const maxPeriodsAhead = 1;

/** State: the tokens at a time. One that is ahead by more than a full refill counts as none. */
function takeFromBucket(rate: Rate, state: State, { hits, times, nowUs }: Request): Taken {
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

/**
 * State: the number of a window, and the hits in the window before it and in it. The window before
 * counts by the part of it that is within one period from now, as if its hits were spread evenly.
 */
function takeFromSlidingWindow(rate: Rate, state: State, { hits, times, nowUs }: Request): Taken {
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

/** Parts of a period that expiries are rounded up to, so that a state has at most 65 of them. */
const partsPerPeriod = 64;

/** Slots that expire together; the time is a number of parts of the period. */
interface SlotGroup {
  readonly expiry: number;
  slots: number;
}

/**
 * State: expiry and number of the slots that are in use, soonest first. A refund releases those
 * that expire first: the others then outlast every request that is shorter than the period,
 * whichever request has ended.
 */
function takeSlots(rate: Rate, state: State, { hits, times, nowUs }: Request): Taken {
  const { limit } = rate;
  const periodUs = rate.periodSeconds * 1e6;
  const now = (nowUs / periodUs) * partsPerPeriod;
  const groups = readGroups(state, now);
  const taken = countTaken(limit - countSlots(groups), hits, times);
  if (taken * hits > 0) addSlots(groups, Math.ceil(now) + partsPerPeriod, taken * hits);
  else releaseSlots(groups, -taken * hits);
  const used = countSlots(groups);
  const needed = toNeeded(hits);
  const parts = needed <= limit ? findRelease(groups, used + needed - limit) - now : partsPerPeriod;
  return {
    taken,
    remaining: toRemaining(limit - used),
    waitSeconds: taken < times ? toSeconds((parts * periodUs) / partsPerPeriod) : 0,
    ...(taken * hits !== 0 && { state: groups.flatMap(({ expiry, slots }) => [expiry, slots]) }),
  };
}

/** Groups that have not expired. */
function readGroups(state: State, now: number): SlotGroup[] {
  const groups: SlotGroup[] = [];
  if (state === undefined) return groups;
  for (let i = 0; i < state.length; i += 2) groups.push({ expiry: state[i] ?? 0, slots: state[i + 1] ?? 0 });
  const isFarAhead = (groups.at(-1)?.expiry ?? 0) > now + (1 + maxPeriodsAhead) * partsPerPeriod;
  return isFarAhead ? [] : groups.filter(({ expiry }) => expiry > now);
}

function countSlots(groups: readonly SlotGroup[]): number {
  return groups.reduce((sum, { slots }) => sum + slots, 0);
}

/** After a clock that stepped back, they join the slots that were taken before it. */
function addSlots(groups: SlotGroup[], expiry: number, slots: number): void {
  const last = groups.at(-1);
  if (last !== undefined && last.expiry >= expiry) last.slots += slots;
  else groups.push({ expiry, slots });
}

function releaseSlots(groups: SlotGroup[], slots: number): void {
  let rest = slots;
  while (rest > 0 && groups[0] !== undefined) {
    const released = Math.min(rest, groups[0].slots);
    rest -= released;
    groups[0].slots -= released;
    if (groups[0].slots === 0) groups.shift();
  }
}

/** When so many slots have expired. */
function findRelease(groups: readonly SlotGroup[], slots: number): number {
  let rest = slots;
  for (const group of groups) {
    rest -= group.slots;
    if (rest <= 0) return group.expiry;
  }
  return 0;
}

/** How many of equal requests are allowed. */
function countTaken(available: number, hits: number, times: number): number {
  if (hits < 0) return times;
  if (hits === 0) return available + epsilon >= 1 ? times : 0;
  const isEnough = hits * times <= available + epsilon;
  return isEnough ? times : Math.max(0, Math.floor((available + epsilon) / hits));
}

/** The hits that must be left for a request: a check of 0 hits is for one that follows. */
function toNeeded(hits: number): number {
  return hits === 0 ? 1 : hits;
}

/** The part of the hits of refused requests that is charged; `available` may be a debt already. */
function toDebt(rate: Rate, available: number, refusedHits: number): number {
  const maxDebt = getMaxDebt(rate);
  if (maxDebt === undefined || rate.limit === 0) return 0;
  const debt = Math.min(refusedHits, available + maxDebt);
  return debt > epsilon ? debt : 0;
}

function toRemaining(available: number): number {
  return Math.max(0, Math.floor(available + epsilon));
}

function toSeconds(us: number): number {
  return Math.max(1, Math.ceil(us / 1e6 - epsilon));
}
