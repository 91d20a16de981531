-- Rows of visitors whom the origin failed, between data centers: admission/messages/turns.py and ledger/moving_turns.py in Lua.
-- `leaving` is id and receiver -> serial, row in three parts; `seeks` id -> since when and when it asked last; `rows_seen` id and source ->
-- serial, and until when it is remembered; `rows_got` what the newest answer named.

local ID_BYTES = 12

local function pairs_of(key)
  local found = {}
  local rows = call('HGETALL', key)
  for place = 1, #rows, 2 do
    found[#found + 1] = {string.sub(rows[place], 1, ID_BYTES), string.sub(rows[place], ID_BYTES + 1), cmsgpack.unpack(rows[place + 1]), rows[place]}
  end
  return found
end

function failures.known(id)
  local since_s, offset_s, what = failures.of(id)
  if since_s > 0 and now < since_s * 1000 + FAILURE_WINDOW_MS then return since_s, offset_s, what end
end

function failures.put(id, since_s, offset_s, what)
  failures.write(id, since_s, offset_s, what)
  if what ~= TURN_USED then state.failed_s = max(state.failed_s, since_s + offset_s) end
end

-- A row of another data center, merged with what is known; whether it is not of long ago.
function failures.absorb(id, since_s, offset_s, what)
  if now >= since_s * 1000 + FAILURE_WINDOW_MS then return end
  local own_s, own_offset_s, own = failures.known(id)
  if own_s then
    local end_s = since_s + offset_s
    local taken = (what == TURN_USED and offset_s > 0) or (own == TURN_USED and own_offset_s > 0)
    if own > what or (own == what and own_s + own_offset_s > end_s) then what, end_s = own, own_s + own_offset_s end
    since_s = min(since_s, own_s)
    offset_s = (what ~= TURN_USED or taken) and min(OFFSET_MOST_S, end_s - since_s) or 0
  end
  failures.put(id, since_s, offset_s, what)
end

-- Lets a spent id take a place again, unless it moves or has moved.
function failures.revive(id)
  local bar = places.bar_of(id)
  if bar and bar[7] then return end
  if state.spent_rows > 0 then state.spent_rows = state.spent_rows - call('ZREM', k.spent, id) end
  if not session_of(id) then
    local count = call('ZREM', k.inside, id)
    if count > 0 then state.inside_rows, dirty = state.inside_rows - count, true end
  end
end

function failures.leave(id, to)
  local since_s, offset_s, what = failures.known(id)
  if not since_s then return end
  call('HSET', k.leaving, id .. to, cmsgpack.pack({now, since_s, offset_s, what}))
  if what ~= TURN_USED or offset_s > 0 then failures.revive(id) end
  state.turns_move, dirty = 1, true
  if what == TURN_KEPT and to ~= '' then
    failures.drop(id)
    call('ZADD', k.turns_left, now + TURN_KEPT_MS, id)
  end
end

-- The visitor goes on under another id (admission/ledger/moving.py).
function failures.rename(old, new)
  local since_s, offset_s, what = failures.known(old)
  if not since_s then return end
  failures.drop(old)
  failures.absorb(new, since_s, offset_s, what)
  local _, _, known = failures.of(new)
  if known == TURN_USED then failures.leave(new, '') end
  return true
end

function failures.seek(id)
  local raw = call('HGET', k.seeks, id)
  local since_ms = raw and cmsgpack.unpack(raw)[1] or now
  if state.turns_elsewhere == 0 or now - since_ms >= TURN_SEEK_MS then
    call('HDEL', k.seeks, id)
    return false
  end
  call('HSET', k.seeks, id, cmsgpack.pack({since_ms, now}))
  state.turns_move, dirty = 1, true
  return true
end

-- {failing, rows, got, seeks}, flat; nil while there is nothing to say, and never was.
function failures.report()
  local failing = now < state.failed_s * 1000 + 2 * TURN_KEPT_MS
  if failing and state.turns_move == 0 then state.turns_move, dirty = 1, true end
  if state.turns_move == 0 then return nil end
  local rows, seeks = {}, {}
  local leaving = pairs_of(k.leaving)
  table.sort(leaving, function(one, other) return one[3][1] > other[3][1] end) -- see moving_turns.py
  for _, one in ipairs(leaving) do
    local serial, since_s, offset_s, what = unpack(one[3])
    if since_s * 1000 + FAILURE_WINDOW_MS <= now then
      call('HDEL', k.leaving, one[4])
    elseif #rows < 6 * CLAIMS_MAX then
      for _, part in ipairs({one[1], one[2], serial, now - since_s * 1000, offset_s, what}) do rows[#rows + 1] = part end
    end
  end
  for _, one in ipairs(pairs_of(k.seeks)) do
    local age_ms = now - one[3][2]
    if age_ms >= TURN_ASKED_MS then
      call('HDEL', k.seeks, one[4])
    elseif #seeks < 2 * CLAIMS_MAX then
      seeks[#seeks + 1], seeks[#seeks + 2] = one[1], age_ms
    end
  end
  for _, one in ipairs(pairs_of(k.rows_seen)) do
    if one[3][2] <= now then call('HDEL', k.rows_seen, one[4]) end
  end
  call('ZREMRANGEBYSCORE', k.turns_left, '-inf', now)
  local raw = call('GET', k.rows_got)
  return {failing and 1 or 0, rows, raw and cmsgpack.unpack(raw) or {}, seeks}
end

local function id_of(digits)
  return (string.gsub(digits, '..', function(byte) return string.char(tonumber(byte, 16)) end))
end

function failures.hear(down)
  state.turns_elsewhere = down.elsewhere and 1 or 0
  for _, one in ipairs(down.got) do
    local field = id_of(one[1]) .. one[2]
    local raw = call('HGET', k.leaving, field)
    if raw and cmsgpack.unpack(raw)[1] == one[3] then call('HDEL', k.leaving, field) end
  end
  local got = {}
  for _, row in ipairs(down.rows) do
    local id, source, serial, age_ms, offset_s, what = id_of(row[1]), unpack(row, 2)
    for _, part in ipairs({id, source, serial}) do got[#got + 1] = part end
    local raw = call('HGET', k.rows_seen, id .. source)
    if not raw or serial > cmsgpack.unpack(raw)[1] then
      call('HSET', k.rows_seen, id .. source, cmsgpack.pack({serial, now + FAILURE_WINDOW_MS}))
      local was_taken = failures.is_taken(id)
      failures.absorb(id, ceil((now - age_ms) / 1000), min(offset_s, OFFSET_MOST_S), what)
      if not was_taken and failures.is_taken(id) then failures.revive(id) end
    end
  end
  if #got > 0 then
    state.turns_move = 1
    call('SET', k.rows_got, cmsgpack.pack(got))
  else
    call('UNLINK', k.rows_got)
  end
  for _, one in ipairs(down.sought) do
    local id, to, age_ms = id_of(one[1]), unpack(one, 2)
    local raw = call('HGET', k.seeks, id)
    if now - age_ms > (raw and cmsgpack.unpack(raw)[2] or 0) and failures.is_kept(id) then failures.leave(id, to) end
  end
  dirty = true
end
