import type { Rate } from '@tollgate/rules/rule-set';
import {
  countTaken,
  maxPeriodsAhead,
  type RateAlgorithm,
  type State,
  type Taken,
  type TakeRequest,
  toNeeded,
  toRemaining,
  toSeconds,
} from './algorithm.ts';

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
function takeSlots(rate: Rate, state: State, { hits, times, nowUs }: TakeRequest): Taken {
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

/** The last slots have expired. */
function getExpiryUs({ periodSeconds }: Rate, state: readonly number[]): number {
  return ((state.at(-2) ?? 0) * periodSeconds * 1e6) / partsPerPeriod;
}

/**
 * State: the slots in use, then expiry and slots of each group, soonest first. Groups are read and
 * written at the ends of the text only: all 65 would take longer than the rest. The key expires
 * with the last.
 */
const lua = `
function takes.concurrency(call, state)
  local hits, times, limit, period = call.hits, call.times, call.limit, call.period
  local at, used, text, first, last = now / period * 64, 0, '', 5, 0
  if state and #state % 16 == 4 then
    used, text, last = unpack_numbers('>I4', state), state, #state
    if last > 4 and unpack_numbers('>d', state, last - 15) > at + 2 * 64 then used, text, last = 0, '', 0 end
  end
  while first < last do
    local expiry, slots = unpack_numbers('>dd', text, first)
    if expiry > at then break end
    used, first = used - slots, first + 16
  end
  local last_expiry, last_slots = at, 0
  if first < last then last_expiry, last_slots = unpack_numbers('>dd', text, last - 15) end
  local taken, wait, head, tail, needed = times, 0, '', '', call.needed
  if needed > 0 and needed * times > limit - used + 1e-6 then taken = count_taken(call, limit - used) end
  local added = taken * hits
  if added > 0 then
    local expiry = ceil(at) + 64
    if last_expiry < expiry then
      last_expiry, last_slots = expiry, added
    else
      last, last_slots = last - 16, last_slots + added
    end
    used, tail = used + added, pack('>dd', last_expiry, last_slots)
  end
  local rest = -added
  while rest > 0 and first < last do
    local expiry, slots = unpack_numbers('>dd', text, first)
    local released = min(rest, slots)
    rest, used, first = rest - released, used - released, first + 16
    if released < slots then head = pack('>dd', expiry, slots - released) end
  end
  if taken < times then
    local parts, excess, group = 64, used + needed - limit, first
    while needed <= limit and excess > 0 do
      local expiry, slots = last_expiry, last_slots
      if group < last then expiry, slots = unpack_numbers('>dd', text, group) end
      parts, excess, group = expiry - at, excess - slots, group + 16
    end
    wait = to_seconds(parts * period / 64)
  end
  local remaining = max(0, floor(limit - used + 1e-6))
  if added == 0 then return taken, remaining, wait end
  local ttl = (used > 0 and (last_expiry - at) * period / 64 or 0) + 1e6
  return taken, remaining, wait, pack('>I4', used) .. head .. string.sub(text, first, last) .. tail, ttl
end`;

export const concurrency: RateAlgorithm = {
  name: 'concurrency',
  take: takeSlots,
  getExpiryUs,
  getResetSeconds: ({ rate }) => rate.periodSeconds,
  lua,
  hasBurst: false,
  holdsSlots: true,
};
