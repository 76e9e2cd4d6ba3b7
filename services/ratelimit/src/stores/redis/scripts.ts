import { createHash } from 'node:crypto';
import { luaHelpers } from '../../algorithms/algorithm.ts';
import { fixedWindow } from '../../algorithms/fixed-window.ts';
import { algorithms } from '../../algorithms/registry.ts';

/** A Lua script. */
export interface Script {
  readonly text: string;
  /** Its name in EVALSHA. */
  readonly sha: string;
}

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Takes hits from a counter that stays at 0 or above; a counter that does not exist is 0. */
export const refund = script(`
local n = math.min(tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1]))
if n <= 0 then return 0 end
return redis.call('DECRBY', KEYS[1], string.format('%.0f', n))`);

/**
 * One argument for each key: the rate, the hits of a request and the number of requests. It is the
 * same for most keys of a call, and parsed once.
 */
const calls = `
local calls = {}
local function read_call(text)
  local algorithm, limit, period, burst, debt, hits, times =
    string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  local call = {
    take = takes[algorithm],
    limit = tonumber(limit), period = tonumber(period) * 1e6, burst = tonumber(burst),
    debt = tonumber(debt), hits = tonumber(hits), times = tonumber(times),
  }
  -- A check of 0 hits is for one that follows.
  call.needed = call.hits == 0 and 1 or call.hits
  calls[text] = call
  return call
end
local function write(key, state, ttl)
  if ttl then
    redis.call('SET', key, state, 'PX', min(ceil(ttl / 1000), 1e12))
  elseif state then
    redis.call('SET', key, state, 'KEEPTTL')
  end
end`;

/** Replies what was taken, or the error of a key, then what remains and the wait. */
const each = `
local states, replies = redis.call('MGET', unpack(KEYS)), {}
for i, key in ipairs(KEYS) do
  local text = ARGV[i + 1]
  local call = calls[text] or read_call(text)
  local taken, remaining, wait, state, ttl = find_error(key, states[i]), 0, 0
  if not taken then
    taken, remaining, wait, state, ttl = call.take(call, states[i])
    write(key, state, ttl)
  end
  replies[i * 3 - 2], replies[i * 3 - 1], replies[i * 3] = taken, remaining, wait
end
return replies`;

const takes = [luaHelpers, ...Object.values(algorithms).map(({ lua }) => lua)];

export const takeEach = script([...takes, calls, each].join('\n'));

const addToWindow = `
-- False for a key that cannot be added to: its request fails alone. Other errors are those of the
-- server, and the second call raises them.
local function add(key, hits, count, ttl)
  if hits >= 0 then
    local reply = redis.pcall('INCRBY', key, hits)
    if type(reply) ~= 'number' then
      for _, reason in ipairs({ 'WRONGTYPE', 'not an integer', 'overflow' }) do
        if string.find(reply.err, reason, 1, true) then return false end
      end
      redis.call('INCRBY', key, hits)
    end
    redis.call('EXPIRE', key, ttl)
  elseif count > 0 then
    redis.call('DECRBY', key, min(count, -hits))
  end
  return true
end`;

/**
 * For each request the number of its keys, then three arguments for each key: those of `each`,
 * what exceeding the limit does to the request, and the TTL of a window. A debt, also of a window,
 * says that the hits are counted even if the request is refused. Replies 0, 1 when the request is
 * refused, or 2 when a key has no counter, then three numbers for each key.
 *
 * @see getRefusal in ../all-or-none.ts
 */
const all = `
local replies, first, at = {}, 1, 2
local function reply(value) replies[#replies + 1] = value end

local function count_over(parts, refuses)
  local count, over = 0, 0
  for _, part in ipairs(parts) do
    if part.refuses == refuses then
      count = count + 1
      if part.taken == 0 then over = over + 1 end
    end
  end
  return count, over
end

local function decide(part, stored)
  part.taken, part.remaining, part.wait, part.state, part.next_ttl = part.call.take(part.call, stored)
end

-- False when a counter cannot be added to.
local function commit(part)
  if part.is_window then return add(part.key, part.call.hits, part.wait, part.ttl) end
  write(part.key, part.state, part.next_ttl)
  return true
end

-- What was taken, what remains, or the count of a window, and the wait.
local function reply_part(part, left)
  reply(part.taken)
  reply(left)
  reply(part.is_window and 0 or part.wait)
end

local function commit_all(parts)
  local is_written = true
  for _, part in ipairs(parts) do is_written = commit(part) and is_written end
  reply(is_written and 0 or 2)
  for _, part in ipairs(parts) do reply_part(part, part.remaining) end
end

-- Hits that are charged in any case: without those of the other limits, which may have the same key.
local function charge(parts)
  local current, is_written = {}, true
  for _, part in ipairs(parts) do
    if part.call.debt then
      decide(part, current[part.key] or part.stored)
      current[part.key] = part.state or current[part.key]
      is_written = commit(part) and is_written
    end
  end
  return is_written
end

local function refuse(parts)
  reply(charge(parts) and 1 or 2)
  for _, part in ipairs(parts) do
    if part.call.debt or (part.taken == 0 and not part.is_window) then
      reply_part(part, part.remaining)
    elseif part.is_window then
      reply_part(part, max(0, tonumber(part.stored or '0')))
    else
      local call = part.call
      call.reading = call.reading
        or { limit = call.limit, period = call.period, burst = call.burst, hits = 0, needed = 1, times = 1 }
      local _, remaining = call.take(call.reading, part.stored)
      reply_part(part, remaining)
    end
  end
end

while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local stored, current, parts, is_valid = redis.call('MGET', unpack(KEYS, first, first + count - 1)), {}, {}, true
  for i = 1, count do
    local key, text, refuses, ttl = KEYS[first + i - 1], ARGV[at + i * 3 - 2], ARGV[at + i * 3 - 1], ARGV[at + i * 3]
    local call = calls[text] or read_call(text)
    local part = { key = key, call = call, refuses = refuses, stored = stored[i], ttl = ttl,
      is_window = call.take == takes.fixed_window }
    if find_error(key, part.stored) or (part.is_window and not tonumber(part.stored or '0')) then
      is_valid = false
      break
    end
    decide(part, current[key] or part.stored)
    current[key] = part.state or current[key]
    parts[i] = part
  end
  local _, alone_over = count_over(parts, 'alone')
  local together, together_over = count_over(parts, 'together')
  if not is_valid then
    for i = 0, count * 3 do reply(i == 0 and 2 or 0) end
  elseif alone_over > 0 or (together > 0 and together == together_over) then
    refuse(parts)
  else
    commit_all(parts)
  end
  first, at = first + count, at + 1 + count * 3
end
return replies`;

export const takeAll = script([...takes, fixedWindow.lua, addToWindow, calls, all].join('\n'));
