import { createHash } from 'node:crypto';

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

// The clock of Redis, so that all replicas agree, whatever their clocks say. Tests pass a time.
const start = `
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

-- Each returns what was taken, what remains, the seconds to wait, and, when it changes the counter,
-- the new state and its TTL in microseconds; without a TTL that of the counter is kept, which costs
-- less. A state that another version wrote counts as none.
local takes = {}`;

/**
 * State: the tokens, their time and when the key expires, as binary numbers, because Lua takes
 * longer to read and write them as text than for all the rest. The TTL is twice what is needed, and
 * 10 seconds, so that few hits set it again.
 *
 * @see takeFromBucket in ../algorithms.ts
 */
const tokenBucket = `
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

/**
 * State: the number of a window, and the hits in the window before it and in it. The key expires
 * one window later.
 *
 * @see takeFromSlidingWindow in ../algorithms.ts
 */
const slidingWindow = `
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

/**
 * State: the slots in use, then expiry and slots of each group, soonest first. Groups are read and
 * written at the ends of the text only: all 65 would take longer than the rest. The key expires
 * with the last.
 *
 * @see takeSlots in ../algorithms.ts
 */
const concurrency = `
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

const algorithms = [tokenBucket, slidingWindow, concurrency];

export const takeEach = script([start, ...algorithms, calls, each].join('\n'));

/** Returns the count before the hits instead of a wait, and has its own way of writing. */
const fixedWindow = `
function takes.fixed_window(call, state)
  local count = max(0, tonumber(state or '0'))
  local after = max(0, count + call.hits)
  local needed = call.debt and call.needed or call.hits
  local taken = call.hits >= 0 and count + needed > call.limit and 0 or 1
  return taken, after, count, string.format('%.0f', after)
end
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
 * refused, or 2 when a key has no counter, then the counts.
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

local function to_count(part)
  return part.taken == 0 and not part.is_window and -1 - part.wait or part.remaining
end

local function commit_all(parts)
  local is_written = true
  for _, part in ipairs(parts) do is_written = commit(part) and is_written end
  reply(is_written and 0 or 2)
  for _, part in ipairs(parts) do reply(to_count(part)) end
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
    if part.call.debt then
      reply(to_count(part))
    elseif part.is_window then
      local count = max(0, tonumber(part.stored or '0'))
      reply(part.taken == 0 and -1 - count or count)
    elseif part.taken == 0 then
      reply(-1 - part.wait)
    else
      local call = part.call
      call.reading = call.reading
        or { limit = call.limit, period = call.period, burst = call.burst, hits = 0, needed = 1, times = 1 }
      local _, remaining = call.take(call.reading, part.stored)
      reply(remaining)
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
    for i = 0, count do reply(i == 0 and 2 or 0) end
  elseif alone_over > 0 or (together > 0 and together == together_over) then
    refuse(parts)
  else
    commit_all(parts)
  end
  first, at = first + count, at + 1 + count * 3
end
return replies`;

export const takeAll = script([start, ...algorithms, fixedWindow, calls, all].join('\n'));
