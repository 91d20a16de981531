-- What may be spent: admission/lease.py once more. Source of an admission: 1 a permit, 2 a freed unit, 3 a debt.

local function connected() return b.answered_ms and now - b.answered_ms < CUT_OFF_MS end

local function is_old(place) return now - tonumber(call('LINDEX', k.minute, place)) > WINDOW_MS end

local function trim_minute()
  if b.minute_rows == 0 or not is_old(0) then return end
  local old, young = 0, b.minute_rows -- the last place known to be old, the first known not to be
  while young - old > 1 do
    local middle = floor((old + young) / 2)
    if is_old(middle) then old = middle else young = middle end
  end
  call('LTRIM', k.minute, young, -1)
  b.minute_rows, dirty = b.minute_rows - young, true
end

local function spendable()
  if b.permits > 0 or b.freed == 0 or connected() then return b.permits end
  trim_minute()
  return max(0, min(b.freed, b.disconnected_rate - b.minute_rows))
end

local function source_of(overdraws)
  if b.permits > 0 then return 1 end
  if overdraws then return b.freed > 0 and 2 or 3 end
  if b.freed > 0 and not connected() then
    trim_minute()
    if b.minute_rows + b.permits < b.disconnected_rate then return 2 end
  end
  return nil
end

local function spend(source)
  if source == 1 then
    b.permits, b.used = b.permits - 1, b.used + 1
  elseif source == 2 then
    b.freed = b.freed - 1
  else
    b.over = b.over + 1
  end
  b.admitted = b.admitted + 1
  call('RPUSH', k.minute, now)
  b.minute_rows = b.minute_rows + 1
end

-- So many sessions ended: their units pay debts, or are on their way back.
local function free(count)
  local paid = min(count, b.over - b.settled)
  b.settled, b.freed = b.settled + paid, b.freed + count - paid
end

local function give_back()
  if not connected() then return end
  b.returned_freed, b.freed = b.returned_freed + b.freed, 0
  local surplus = max(0, b.permits - b.recall)
  b.permits, b.returned_permits = b.permits - surplus, b.returned_permits + surplus
end

-- Ages of the admissions that the coordinator does not know, oldest first; in a whole report, of all.
local function ages()
  local count = b.whole and b.minute_rows or min(b.minute_rows, b.admitted - b.acknowledged)
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
  b.permits = b.permits + max(0, down.granted - b.granted_seen)
  b.granted_seen = max(down.granted, b.granted_seen)
  local paid = min(b.permits, b.over - b.settled)
  b.permits, b.used, b.settled = b.permits - paid, b.used + paid, b.settled + paid
  if down.number <= b.applied then return end
  b.applied = down.number
  b.acknowledged = max(b.acknowledged, down.acknowledged)
  b.disconnected_rate, b.recall, b.queueing, b.horizon_ms = down.disconnected_rate, down.recall, down.queueing, down.horizon_ms or false
  b.pool, b.alone = down.pool, down.alone
  local round_trip_ms = now - down.sent_ms
  if not b.answered_ms or round_trip_ms <= b.round_trip_ms then
    b.round_trip_ms, b.line_ahead_ms = round_trip_ms, down.time_ms - floor((down.sent_ms + now) / 2)
  else
    b.round_trip_ms = b.round_trip_ms + 1
  end
  b.answered_ms = now
end
