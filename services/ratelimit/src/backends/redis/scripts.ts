import { createHash } from 'node:crypto';
import type { Rate } from '@tollgate/rules/rule-set';
import type { Taken } from '../algorithms.ts';
import type { BatchCounter } from '../batch.ts';
import type { Pipeline, RedisReply } from './resp.ts';

/** A Lua script. */
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
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpack_numbers = struct.pack, struct.unpack
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1e6 + tonumber(time[2])
end
local function count_taken(available, hits, times)
  if hits <= 0 then return times end
  return min(times, max(0, floor((available + 1e-6) / hits)))
end
local function to_remaining(available) return max(0, floor(available + 1e-6)) end
local function to_seconds(us) return max(1, ceil(us / 1e6 - 1e-6)) end

-- Each returns what was taken, what remains, the seconds to wait, and, when it changes the counter,
-- the new state and its TTL in microseconds; without a TTL that of the counter is kept, which costs
-- less. A state that another version wrote counts as none.
local takes = {}`;

/**
 * State: the tokens, their time and when the key expires, as binary numbers, because Lua takes
 * longer to read and write them as text than for all the rest. The TTL is twice what is needed, so
 * that few hits set it again.
 *
 * @see takeFromBucket in ../algorithms.ts
 */
const tokenBucket = `
function takes.token_bucket(rate, state, hits, times)
  local limit, period, burst = rate.limit, rate.period, rate.burst
  if limit == 0 then burst = 0 end
  local tokens, at, expires = burst, now, 0
  if state and #state == 24 then
    local stored, stored_at, stored_expires = unpack_numbers('>ddd', state)
    at = max(now, stored_at)
    tokens = min(burst, stored + (at - stored_at) * limit / period)
    expires = stored_expires
  end
  local taken = count_taken(tokens, hits, times)
  tokens = min(burst, tokens - taken * hits)
  local wait = 0
  if taken < times then
    wait = to_seconds(hits <= burst and (hits - tokens) * period / limit or period)
  end
  if taken * hits == 0 or limit == 0 then return taken, to_remaining(tokens), wait end
  local full, ttl = at + (burst - tokens) * period / limit, nil
  if full > expires then
    expires = full + (full - now) + 1e6
    ttl = expires - now
  end
  return taken, to_remaining(tokens), wait, pack('>ddd', tokens, at, expires), ttl
end`;

/**
 * State: the number of a window, and the hits in the window before it and in it. The key expires
 * one window later.
 *
 * @see takeFromSlidingWindow in ../algorithms.ts
 */
const slidingWindow = `
function takes.sliding_window(rate, state, hits, times)
  local limit, period = rate.limit, rate.period
  local index = floor(now / period)
  local elapsed, before, current = now / period - index, 0, 0
  local ttl = (2 - elapsed) * period + 1e6
  if state and #state == 24 then
    local stored, stored_before, stored_current = unpack_numbers('>ddd', state)
    if stored > index then
      index = stored
      elapsed = 0
    end
    if stored == index then
      before, current, ttl = stored_before, stored_current, nil
    elseif stored == index - 1 then
      before = stored_current
    end
  end
  local taken = count_taken(limit - (before * (1 - elapsed) + current), hits, times)
  current = current + taken * hits
  if current < 0 then
    before = max(0, before + current)
    current = 0
  end
  local wait, remaining = 0, to_remaining(limit - (before * (1 - elapsed) + current))
  if taken < times then
    local periods = 1
    if hits <= limit and current + hits <= limit then
      periods = 1 - (limit - current - hits) / before - elapsed
    elseif hits <= limit then
      periods = 1 - elapsed + max(0, 1 - (limit - hits) / current)
    end
    wait = to_seconds(periods * period)
  end
  if taken * hits == 0 then return taken, remaining, wait end
  return taken, remaining, wait, pack('>ddd', index, before, current), ttl
end`;

/** Three arguments for each key: its rate, the hits of a request, and the number of requests. */
const each = `
local rates = {}
local function read_rate(text)
  local algorithm, limit, period, burst = string.match(text, '^(%S+) (%S+) (%S+) (%S+)$')
  local rate = { take = takes[algorithm], limit = tonumber(limit), period = tonumber(period) * 1e6, burst = tonumber(burst) }
  rates[text] = rate
  return rate
end
local function write(key, state, ttl)
  if ttl then
    redis.call('SET', key, state, 'PX', min(ceil(ttl / 1000), 1e12))
  elseif state then
    redis.call('SET', key, state, 'KEEPTTL')
  end
end
local states, replies = redis.call('MGET', unpack(KEYS)), {}
for i = 1, #KEYS do
  local at = i * 3
  local text = ARGV[at - 1]
  local rate = rates[text] or read_rate(text)
  local taken, remaining, wait, state, ttl = rate.take(rate, states[i], tonumber(ARGV[at]), tonumber(ARGV[at + 1]))
  write(KEYS[i], state, ttl)
  replies[at - 2], replies[at - 1], replies[at] = taken, remaining, wait
end
return replies`;

const takeEach = script([start, tokenBucket, slidingWindow, each].join('\n'));

/** Counters that one call of a script decides. */
export interface ScriptCall {
  readonly script: Script;
  readonly counters: readonly BatchCounter[];
}

/**
 * Groups the counters that INCRBY cannot change into calls of at most `maxKeys` keys. Calls with the
 * same key stay in order.
 */
export function groupCalls(counters: readonly BatchCounter[], maxKeys: number): readonly ScriptCall[] {
  const calls: ScriptCall[] = [];
  let open: BatchCounter[] | undefined;
  for (const counter of counters) {
    if (counter.rate === undefined) {
      calls.push({ script: refund, counters: [counter] });
      continue;
    }
    if (open === undefined || open.length >= maxKeys || counter.isRepeated) {
      open = [];
      calls.push({ script: takeEach, counters: open });
    }
    open.push(counter);
  }
  return calls;
}

/**
 * Writes the call, with the text of the script unless the connection has sent it before. Returns
 * the position of its reply. Tests pass a time.
 */
export function writeCall(
  pipeline: Pipeline,
  { script, counters }: ScriptCall,
  { knownScripts, nowUs }: { readonly knownScripts: Set<string>; readonly nowUs?: number },
): number {
  // ASKING applies to the next command only; redirected calls have one key.
  if (counters[0]?.asking === true) pipeline.command('ASKING');
  const position = pipeline.commandCount;
  const keys = counters.length;
  pipeline.begin(3 + keys + (script === refund ? 1 : 1 + 3 * keys));
  if (knownScripts.has(script.sha)) {
    pipeline.word('EVALSHA');
    pipeline.word(script.sha);
  } else {
    pipeline.word('EVAL');
    pipeline.word(script.text);
    knownScripts.add(script.sha);
  }
  pipeline.integer(keys);
  for (const { key } of counters) pipeline.word(key);
  if (script !== refund) pipeline.word(nowUs === undefined ? '' : String(nowUs));
  for (const { rate, addend, times } of counters) {
    if (rate === undefined) {
      pipeline.integer(-addend);
    } else {
      pipeline.word(rateText(rate));
      pipeline.integer(addend / times);
      pipeline.integer(times);
    }
  }
  return position;
}

function rateText({ algorithm, limit, periodSeconds, burst }: Rate): string {
  return `${algorithm} ${limit} ${periodSeconds} ${burst}`;
}

/** What the reply to a call says of its counters; undefined when it is of another form. */
export function readCallReply({ counters }: ScriptCall, reply: RedisReply): readonly Taken[] | undefined {
  const numbers = Array.isArray(reply) ? reply.map(Number) : [];
  if (numbers.length !== counters.length * 3 || numbers.includes(Number.NaN)) return undefined;
  return counters.map((_, i) => {
    const [taken = 0, remaining = 0, waitSeconds = 0] = numbers.slice(i * 3);
    return { taken, remaining, waitSeconds };
  });
}
