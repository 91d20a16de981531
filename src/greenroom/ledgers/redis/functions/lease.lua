-- What may be spent: admission/lease.py in Lua. Source of an admission: 1 a permit, 2 a freed unit, 3 a debt.

local function saved_us() return max(SAVED_US, SAVED_VISITORS * state.gap_us) end

local function connected() return state.answered_ms and now - state.answered_ms < CUT_OFF_MS end

-- Whether the coordinator may give this ledger's units to others, because the last contact was so long ago.
local function fenced() return state.fence_ms > 0 and max(now, server_now) - state.contact_ms >= state.fence_ms end

local function is_old(place) return now - tonumber(call('LINDEX', k.minute, place)) > WINDOW_MS end

local function trim_minute()
  if state.minute_rows == 0 or not is_old(0) then return end
  local old, young = 0, state.minute_rows -- the last place known to be old, the first known not to be
  while young - old > 1 do
    local middle = floor((old + young) / 2)
    if is_old(middle) then old = middle else young = middle end
  end
  call('LTRIM', k.minute, young, -1)
  state.minute_rows, dirty = state.minute_rows - young, true
end

-- Whether permits are held back by the pace.
local function holds_back()
  return state.gap_us > 0 and not (state.queueing and state.permits * state.gap_us <= saved_us())
end

-- As many of `count` as the pace allows now (admission/pacing.py).
local function paced(count)
  if fenced() then return 0 end
  if count == 0 or not holds_back() then return count end
  local left_us = saved_us() - max(0, state.spent_until_us - now * 1000)
  return min(count, max(0, floor(left_us / state.gap_us)))
end

local function spendable()
  if state.permits > 0 or state.freed == 0 or connected() then return paced(state.permits) end
  trim_minute()
  return paced(max(0, min(state.freed, state.disconnected_rate - state.minute_rows)))
end

local function source_of(overdraws, unpaced)
  if overdraws then return state.permits > 0 and 1 or state.freed > 0 and 2 or 3 end
  if fenced() or not unpaced and paced(1) == 0 then return nil end
  if state.permits > 0 then return 1 end
  if state.freed > 0 and not connected() then
    trim_minute()
    if state.minute_rows + state.permits < state.disconnected_rate then return 2 end
  end
  return nil
end

local function spend(source, unpaced)
  if source == 1 then
    state.permits, state.used = state.permits - 1, state.used + 1
  elseif source == 2 then
    state.freed = state.freed - 1
  else
    state.over = state.over + 1
  end
  state.admitted = state.admitted + 1
  if not unpaced then state.spent_until_us = max(state.spent_until_us, now * 1000) + state.gap_us end
  call('RPUSH', k.minute, now)
  state.minute_rows = state.minute_rows + 1
end

-- `count` sessions ended: their units pay debts or are returned.
local function free(count)
  local paid = min(count, state.over - state.settled)
  state.settled, state.freed = state.settled + paid, state.freed + count - paid
end

-- An operator ended `count` sessions: their units are freed a little later, with those that are closing already.
local function close(count)
  state.closing, state.closing_until_ms = state.closing + count, max(state.closing_until_ms, now + CLOSING_MS)
end

-- Whether this ledger began from an older state (`open_ledger`) so lately that sessions which are over here may live.
local function doubts() return now + CLOSING_MS < state.closing_until_ms end

-- The time of `count` sessions is over, or a visitor had two; `certain`: how many of them began since.
local function expire(count, certain)
  if doubts() then
    state.closing, count = state.closing + count - (certain or 0), certain or 0
  end
  free(count)
end

local function free_closed()
  if state.closing > 0 and floor(now / CELL_MS) > floor(state.closing_until_ms / CELL_MS) then
    free(state.closing)
    state.closing = 0
  end
end

local function return_above(level)
  state.returned_freed, state.freed = state.returned_freed + state.freed, 0
  local surplus = max(0, state.permits - level)
  state.permits, state.returned_permits = state.permits - surplus, state.returned_permits + surplus
end

local function give_back()
  if connected() then return_above(state.recall) end
end

-- Ages of admissions that are not acknowledged, oldest first; in a whole report, of all.
local function ages()
  local count = state.whole and state.minute_rows or min(state.minute_rows, state.admitted - state.acknowledged)
  local found = {}
  if count > 0 then
    for _, time in ipairs(call('LRANGE', k.minute, -count, -1)) do
      local age = now - tonumber(time)
      if age <= WINDOW_MS then found[#found + 1] = age end
    end
  end
  return found
end

local function apply_lease(down)
  state.permits = state.permits + max(0, down.granted - state.granted_seen)
  state.granted_seen = max(down.granted, state.granted_seen)
  local paid = min(state.permits, state.over - state.settled)
  state.permits, state.used, state.settled = state.permits - paid, state.used + paid, state.settled + paid
  state.applied = down.number
  state.acknowledged = max(state.acknowledged, down.acknowledged)
  state.disconnected_rate, state.recall, state.queueing, state.horizon_ms = down.disconnected_rate, down.recall, down.queueing, down.horizon_ms or false
  state.pool, state.alone, state.gap_us = down.pool, down.alone, down.gap_us or 0
  state.contact_ms, state.fence_ms, state.data_centers = down.sent_ms, down.fence_ms or 0, down.data_centers or 1
  if (down.unknown_ms or -1) >= 0 then state.unknown_until_ms = max(state.unknown_until_ms, now + down.unknown_ms) end
  local round_trip_ms = now - down.sent_ms
  if not state.answered_ms or round_trip_ms <= state.round_trip_ms then
    state.round_trip_ms, state.line_ahead_ms = round_trip_ms, down.time_ms - floor((down.sent_ms + now) / 2)
  else
    state.round_trip_ms = state.round_trip_ms + 1
  end
  state.answered_ms = now
end
