import { createHash } from 'node:crypto';
import type { BatchCounter } from '../batch.ts';

/** A Lua script with one key. */
interface Script {
  readonly text: string;
  /** Its name in EVALSHA. */
  readonly sha: string;
}

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Takes hits from a counter that stays at 0 or above; a counter that does not exist is 0. */
const refund = script(`
local n = math.min(tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1]))
if n <= 0 then return 0 end
return redis.call('DECRBY', KEYS[1], string.format('%.0f', n))`);

// The clock of Redis, so that all replicas agree, whatever their clocks say. Tests pass a time.
const start = `
local hits, limit, period, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) * 1e6, tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1e6 + tonumber(time[2])
end
local state = redis.call('GET', KEYS[1])
local function refused(wait) return -1 - math.max(1, math.ceil(wait / 1e6 - 1e-6)) end`;

/** @see takeFromBucket in ../algorithms.ts */
const tokenBucket = script(`${start}
local tokens, at = burst, now
if state then
  local stored, stored_at = string.match(state, '^(%S+) (%S+)$')
  stored_at = tonumber(stored_at)
  at = math.max(now, stored_at)
  tokens = math.min(burst, tonumber(stored) + (at - stored_at) * limit / period)
end
if hits > 0 and hits > tokens + 1e-6 then
  if hits > burst or limit == 0 then return refused(period) end
  return refused((hits - tokens) * period / limit)
end
tokens = math.min(burst, tokens - hits)
if hits ~= 0 and limit > 0 then
  local ttl = math.ceil((burst - tokens) * period / limit / 1000) + 1000
  redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, at), 'PX', string.format('%.0f', ttl))
end
return math.max(0, math.floor(tokens + 1e-6))`);

/** @see takeFromSlidingWindow in ../algorithms.ts */
const slidingWindow = script(`${start}
local index = math.floor(now / period)
local elapsed, before, current = now / period - index, 0, 0
if state then
  local stored, stored_before, stored_current = string.match(state, '^(%S+) (%S+) (%S+)$')
  stored = tonumber(stored)
  if stored > index then
    index = stored
    elapsed = 0
  end
  if stored == index then
    before, current = tonumber(stored_before), tonumber(stored_current)
  elseif stored == index - 1 then
    before = tonumber(stored_current)
  end
end
local used = before * (1 - elapsed) + current
if hits > 0 and used + hits > limit + 1e-6 then
  if hits > limit then return refused(period) end
  if current + hits <= limit then
    return refused((1 - (limit - current - hits) / before - elapsed) * period)
  end
  return refused((1 - elapsed + math.max(0, 1 - (limit - hits) / current)) * period)
end
current = current + hits
if current < 0 then
  before = math.max(0, before + current)
  current = 0
end
if hits ~= 0 then
  local ttl = math.ceil((2 - elapsed) * period / 1000) + 1000
  redis.call('SET', KEYS[1], string.format('%.0f %.17g %.17g', index, before, current), 'PX', string.format('%.0f', ttl))
end
return math.max(0, math.floor(limit - (before * (1 - elapsed) + current) + 1e-6))`);

/** The script and arguments of a counter that INCRBY cannot change. */
export function scriptCall(
  { addend, rate }: Pick<BatchCounter, 'addend' | 'rate'>,
  nowUs: number | undefined = undefined,
): { readonly script: Script; readonly args: readonly string[] } {
  if (rate === undefined) return { script: refund, args: [String(-addend)] };
  const { algorithm, limit, periodSeconds, burst } = rate;
  return {
    script: algorithm === 'token_bucket' ? tokenBucket : slidingWindow,
    args: [addend, limit, periodSeconds, burst, nowUs ?? ''].map(String),
  };
}
