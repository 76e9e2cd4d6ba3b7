import { getMaxDebt, type Rate } from '@tollgate/rules/rule-set';

/** State of a counter; undefined when it does not exist. */
export type State = readonly number[] | undefined;

/** Equal requests at one time. */
export interface TakeRequest {
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

/** Result of hits on a counter. */
export interface CounterResult {
  readonly allowed: boolean;
  /** Hits in use with those of the request; beyond the limit when the limit refuses them. */
  readonly used: number;
  /** Whole hits that are left. */
  readonly remaining: number;
  /** Whole seconds, at least 1, until the window ends, the limit is as new, or the hits fit. */
  readonly resetSeconds: number;
}

/** A limit that has been used, for the time until it is as new. */
interface UsedLimit {
  readonly rate: Rate;
  /** Hits in use. */
  readonly used: number;
  /** Whole seconds until the period that is aligned to the epoch ends. */
  readonly secondsLeft: number;
}

/** A way of counting. */
export interface Algorithm {
  /** Its name in rules. */
  readonly name: 'fixed_window' | Rate['algorithm'];
  /**
   * The Lua function `takes.<name>(call, state)` with the steps of `take`. It returns what was
   * taken, what remains, the seconds to wait, and, when it changes the counter, the new state and
   * its TTL in microseconds; without a TTL that of the counter is kept, which costs less. A state
   * that another version wrote counts as none.
   */
  readonly lua: string;
  /** The size of the limit is an option of its own, `burst`. */
  readonly hasBurst: boolean;
  /** Hits are in use until a refund, or the period, releases them. */
  readonly holdsSlots: boolean;
}

/**
 * An algorithm with a state, in TypeScript for counters in memory and in Lua for those in Redis;
 * tests compare both. A new one is a file, a line in registry.ts and its name in the rule language.
 */
export interface RateAlgorithm extends Algorithm {
  /**
   * Takes hits from a limit, or gives them back. A refused request takes nothing, or, where the
   * limit has a `maxDebt`, all of its hits up to that debt. The result is that of the requests one
   * after the other, except that all refused ones have the wait of the last.
   */
  take(rate: Rate, state: State, request: TakeRequest): Taken;
  /** When a state equals that of a new counter. */
  getExpiryUs(rate: Rate, state: readonly number[]): number;
  /** Whole seconds until the limit is as new, if no hits follow. */
  getResetSeconds(used: UsedLimit): number;
}

// Sums of fractions are off by far less; without it the third of three refills would be missing.
const epsilon = 1e-6;

/**
 * A clock that stepped back, or that of another Redis after a failover, finds states of the future.
 * They stay as they are, so that nothing is given back; but a state that is further ahead than this
 * would refuse hits for too long, or is of a shorter period, and counts as none.
 */
export const maxPeriodsAhead = 1;

/** How many of equal requests are allowed. */
export function countTaken(available: number, hits: number, times: number): number {
  if (hits < 0) return times;
  if (hits === 0) return available + epsilon >= 1 ? times : 0;
  const isEnough = hits * times <= available + epsilon;
  return isEnough ? times : Math.max(0, Math.floor((available + epsilon) / hits));
}

/** The hits that must be left for a request: a check of 0 hits is for one that follows. */
export function toNeeded(hits: number): number {
  return hits === 0 ? 1 : hits;
}

/** The part of the hits of refused requests that is charged; `available` may be a debt already. */
export function toDebt(rate: Rate, available: number, refusedHits: number): number {
  const maxDebt = getMaxDebt(rate);
  if (maxDebt === undefined || rate.limit === 0) return 0;
  const debt = Math.min(refusedHits, available + maxDebt);
  return debt > epsilon ? debt : 0;
}

export function toRemaining(available: number): number {
  return Math.max(0, Math.floor(available + epsilon));
}

export function toSeconds(us: number): number {
  return Math.max(1, Math.ceil(us / 1e6 - epsilon));
}

/**
 * The functions of all scripts. The clock is that of Redis, so that all replicas agree, whatever
 * their clocks say. Tests pass a time.
 */
export const luaHelpers = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_numbers = struct.pack, struct.unpack
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1e6 + tonumber(time[2])
end
local function to_seconds(us) return max(1, ceil(us / 1e6 - 1e-6)) end

-- MGET has no value for a key of another type, as for one that does not exist; GET has an error.
local function find_error(key, state)
  local reply = not state and redis.pcall('GET', key)
  return type(reply) == 'table' and reply
end

-- How many of the requests of a call are allowed, when not all are.
local function count_taken(call, available)
  if call.hits == 0 then return available + 1e-6 >= 1 and call.times or 0 end
  return max(0, floor((available + 1e-6) / call.hits))
end

-- The hits of refused requests that are charged.
local function to_debt(call, available, hits)
  if not call.debt or call.limit == 0 then return 0 end
  local debt = min(hits, available + call.debt)
  return debt > 1e-6 and debt or 0
end

local takes = {}`;
