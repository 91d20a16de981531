-- Sessions and waiters: the rows of the sorted sets.

-- Inside: id -> renewal * 2048 + steps of 5 s from the beginning of the session to that renewal, at most AGE_MOST; AGE_UNKNOWN; or UNSHOWN:
-- the session has just begun, for a newcomer who was let in at once and has not been seen since. (An older greenroom on the same Redis takes
-- UNSHOWN for an unknown age, from which it learns nothing, and AGE_UNKNOWN, of provisional and moved sessions, for a long one: only
-- forecasts and analytics notice.)
local AGE_CELL_MS, AGE_CELLS, AGE_MOST, AGE_UNKNOWN, UNSHOWN = 5000, 1440, 2045, 2046, 2047
-- Due: id -> hour at which a waiter is a ghost * 2^17 + the refresh that was assigned. Hours count from ORIGIN_MS, so that both
-- numbers are exact from 2024 to 2029, and afterwards the refresh to a few milliseconds.
local ORIGIN_MS, REFRESHES = 1800000000000, 131072

-- How long after the last renewal a waiting ticket of the same id may come.
local function spent_ms() return (watches_turns() and PLACE_CLAIMED_MS or PLACE_KEPT_MS) + SPENT_SLACK_MS end

local function arrival_ms(key) return floor(key / TIES) end

-- Changes an absolute count that is reported: arrival seconds as they are, ages as negative numbers.
local function count_second(key, change)
  local second = floor(arrival_ms(key) / 1000)
  if call('HINCRBY', k.seconds, second, change) == 0 then call('HDEL', k.seconds, second) end
  call('SADD', k.fresh, second)
end

-- A visitor came who gets no renewal behind the fence: noted for analytics only.
local function note_seen(id)
  state.seen_rows, dirty = state.seen_rows + call('HSET', k.seen, id, now), true
end

local function forget_seen(id)
  if state.seen_rows > 0 then state.seen_rows, dirty = state.seen_rows - call('HDEL', k.seen, id), true end
end

-- Last renewal, age then, and whether the session is unconfirmed.
local function read_session(score)
  local renewed_ms, age = floor(score / 2048), score % 2048
  if age == UNSHOWN then return renewed_ms, 0, true end
  return renewed_ms, age, false
end

local function write_session(id, renewed_ms, age)
  return call('ZADD', k.inside, string.format('%.0f', renewed_ms * 2048 + age), id)
end

local function count_age(id, renewed_ms, age)
  local seen_ms = state.seen_rows > 0 and tonumber(call('HGET', k.seen, id) or renewed_ms) or renewed_ms
  forget_seen(id)
  if age == AGE_UNKNOWN then return end
  local begun = floor(renewed_ms / AGE_CELL_MS) - age
  -- for analytics: from the beginning to the last renewal, or to what was seen after it; in steps of AGE_CELL_MS
  if s.renews then call('HINCRBY', k.tally, min(AGE_MOST, floor(seen_ms / AGE_CELL_MS) - begun), 1) end
  local cell = min(max(0, floor(now / AGE_CELL_MS) - begun), AGE_CELLS - 1)
  call('HINCRBY', k.ages, cell, 1)
  call('SADD', k.fresh, -1 - cell)
end

-- Of a living (or not yet swept) session what `read_session` returns; else nil, and whether the id is spent.
local function session_of(id)
  local score = call('ZSCORE', k.inside, id)
  if score then
    local renewed_ms, age, unshown = read_session(tonumber(score))
    if renewed_ms > state.ended_to then return renewed_ms, age, unshown end
    if renewed_ms + spent_ms() > now then return nil, true end
  end
  if state.spent_rows > 0 then
    local until_ms = call('ZSCORE', k.spent, id)
    if until_ms and tonumber(until_ms) > now then return nil, true end
  end
  return nil, false
end

local function renew_session(id, renewed_ms, age, until_ms)
  forget_seen(id)
  until_ms = until_ms or now
  if age ~= AGE_UNKNOWN then
    age = min(AGE_MOST, floor(until_ms / AGE_CELL_MS) - floor(renewed_ms / AGE_CELL_MS) + age)
  end
  write_session(id, until_ms, age)
end

local function begin_session(id, unshown)
  state.inside_rows = state.inside_rows + write_session(id, now, unshown and UNSHOWN or 0)
  state.inside = state.inside + 1
  if unshown then call('ZADD', k.unshown, now, id) end
end

local function spend_id(id, last_seen_ms)
  local until_ms = last_seen_ms + spent_ms()
  if until_ms > now then state.spent_rows = state.spent_rows + call('ZADD', k.spent, until_ms, id) end
  return until_ms
end

-- The same for a place, before its turn has come.
local function spend_place(id) return spend_id(id, now + (watches_turns() and AWAY_MAX_MS or 0)) end

local function end_session(id, renewed_ms, age)
  call('ZREM', k.inside, id)
  call('ZREM', k.unshown, id)
  state.inside, state.inside_rows = state.inside - 1, state.inside_rows - 1
  count_age(id, renewed_ms, age)
  spend_id(id, renewed_ms)
end

-- Whether the session has been provisional since this epoch began.
local function is_passing(id) return tonumber(call('ZSCORE', k.provisional, id) or 0) > state.born_ms end

-- Ends all sessions renewed up to `border` ms; returns how many, whether there are more, and how many of them a copy of before
-- this epoch cannot know. At most `limit` are looked at, then the border moves less far.
local function end_sessions(border, limit, life_ms)
  if border <= state.ended_to then return 0, false, 0 end
  local low = string.format('%.0f', (state.ended_to + 1) * 2048)
  local rows = call('ZRANGEBYSCORE', k.inside, low, string.format('(%.0f', (border + 1) * 2048), 'WITHSCORES', 'LIMIT', 0, limit)
  local limited = #rows == 2 * limit
  if limited then
    local first, last = floor(tonumber(rows[2]) / 2048), floor(tonumber(rows[#rows]) / 2048)
    border = first == last and last or last - 1 -- whole milliseconds only
  end
  local passing = 0
  for place = 2, #rows, 2 do
    local renewed_ms, age = read_session(tonumber(rows[place]))
    if renewed_ms <= border then
      if age == AGE_UNKNOWN and state.closing_until_ms > now and is_passing(rows[place - 1]) then passing = passing + 1 end
      count_age(rows[place - 1], renewed_ms, age)
      if state.failure_rows > 0 then failures.finish(rows[place - 1], renewed_ms + (life_ms or s.life_ms)) end
    end
  end
  local count = call('ZCOUNT', k.inside, low, string.format('(%.0f', (border + 1) * 2048))
  if count > 0 then call('ZREMRANGEBYSCORE', k.unshown, '-inf', border) end
  state.ended_to, state.inside = border, state.inside - count
  return count, limited, passing
end

-- An operator ends every session; returns how many. Not counted in the lengths of stays. The border ends those renewed before this
-- millisecond; later ones of this ledger must not count as ended, so the others are ended one by one.
local function end_every_session()
  local here = string.format('%.0f', now * 2048)
  local count = call('ZCOUNT', k.inside, string.format('%.0f', (state.ended_to + 1) * 2048), '(' .. here)
  state.ended_to = max(state.ended_to, now - 1)
  local rows = call('ZRANGEBYSCORE', k.inside, here, '+inf', 'WITHSCORES')
  for place = 1, #rows, 2 do
    call('ZREM', k.inside, rows[place])
    state.inside_rows = state.inside_rows - 1
    spend_id(rows[place], floor(tonumber(rows[place + 1]) / 2048))
  end
  call('UNLINK', k.seen, k.unshown, k.failures)
  state.inside, state.seen_rows, state.failure_rows = 0, 0, 0
  return count + #rows / 2
end

-- Forgets ids whose waiting tickets have expired.
local function forget_spent(limit)
  local old = min(state.ended_to, now - spent_ms())
  local count = min(limit, call('ZCOUNT', k.inside, '-inf', string.format('(%.0f', (old + 1) * 2048)))
  if count > 0 then state.inside_rows = state.inside_rows - call('ZREMRANGEBYRANK', k.inside, 0, count - 1) end
  if state.spent_rows > 0 then
    count = min(limit, call('ZCOUNT', k.spent, '-inf', now))
    if count > 0 then state.spent_rows = state.spent_rows - call('ZREMRANGEBYRANK', k.spent, 0, count - 1) end
  end
end

-- When a waiter tried last and which refresh was assigned; nil when not in line.
local function waiter(id)
  local score = call('ZSCORE', k.due, id)
  if not score then return nil end
  score = tonumber(score)
  local refresh_ms = score % REFRESHES
  return floor(score / REFRESHES) + ORIGIN_MS - refresh_ms - GRACE_MS, refresh_ms
end

local function expect(id, refresh_ms)
  call('ZADD', k.due, string.format('%.0f', (now + refresh_ms + GRACE_MS - ORIGIN_MS) * REFRESHES + refresh_ms), id)
end

local function key_of(id) return tonumber(call('ZSCORE', k.line, id)) end

local function rank_of(key) return call('ZCOUNT', k.line, '-inf', string.format('(%.0f', key)) end

-- The rank of a visitor in line; equal keys have different ranks.
local function place_of(id) return call('ZRANK', k.line, id) end

-- When the first in line came.
local function first_ms() return arrival_ms(tonumber(call('ZRANGE', k.line, 0, 0, 'WITHSCORES')[2])) end

local function join_line(id, key)
  call('ZADD', k.line, string.format('%.0f', key), id)
  state.waiting = state.waiting + 1
  count_second(key, 1)
  if watches_turns() then call('ZADD', k.absent, 'XX', 0, id) end
end

-- `strays`: the visitor stayed away.
local function leave_line(id, key, strays)
  call('ZREM', k.line, id)
  call('ZREM', k.due, id)
  state.waiting = state.waiting - 1
  if state.kept == id then state.kept = 0 end
  count_second(key, -1)
  if not strays and watches_turns() then call('ZREM', k.absent, id) end
end

-- Calls `lost(id, key, attempted)` for ghosts among at most `limit`, and takes them out of the line.
local function sweep_line(limit, lost)
  local cell = floor(now / CELL_MS)
  if floor(state.pardoned_ms / CELL_MS) >= cell or state.waiting == 0 then return false end
  local edge_ms = cell * CELL_MS - (s.rejecting and PLACE_KEPT_MS or 0)
  local border = string.format('(%.0f', (edge_ms - ORIGIN_MS) * REFRESHES)
  local rows = call('ZRANGEBYSCORE', k.due, '-inf', border, 'WITHSCORES', 'LIMIT', 0, limit)
  for place = 1, #rows, 2 do
    if rows[place] ~= state.kept or floor(state.kept_ms / CELL_MS) < cell then
      local score = tonumber(rows[place + 1])
      local key = key_of(rows[place])
      leave_line(rows[place], key, true)
      lost(rows[place], key, floor(score / REFRESHES) + ORIGIN_MS - score % REFRESHES - GRACE_MS)
    end
  end
  return #rows == 2 * limit
end
