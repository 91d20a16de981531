-- The functions, each with the name of the room's ledger as its only key.

local NIL = '\192' -- as msgpack
local CALLS = {} -- a table, because Lua knows no more than 200 locals

local function heading(left)
  local want = borrows()
  return struct.pack('<dddddddd', now, state.permits, pace_a_minute() or UNKNOWN, state.line_ahead_ms, want, state.forecast, state.unseen, left)
end

-- The wait table, unless it has this number; or empty.
local function newer_forecast(number)
  return tonumber(number) ~= state.forecast and state.forecast > 0 and call('GET', k.forecast) or ''
end

-- The summary of the other data centers, unless it has this number; or empty. NIL: there is none now.
local function newer_summary(number)
  if tonumber(number) == state.summary then return '' end
  return state.summary > 0 and call('GET', k.summary) or NIL
end

-- Applies the settings of this call.
local function settle()
  sweep(SWEEP_SYNC) -- ghosts under the old settings do not come back
  if given == state.settings then return end
  local before = s
  s, state.settings = read_settings(given), given
  newcomers.configure()
  if s.claim_ms > 0 then state.watched = 1 end
  if s.life_ms ~= before.life_ms then
    if doubts() then state.closing_until_ms = state.closing_until_ms + max(0, s.life_ms - before.life_ms) end
    local ended, _, passing = end_sessions(now - before.life_ms, SWEEP_SYNC, before.life_ms)
    expire(ended, passing)
  end
  if s.sessions_ended_ms > state.told_ended_ms then
    state.told_ended_ms, state.all_ended_ms = s.sessions_ended_ms, now
    close(end_every_session())
    call('UNLINK', k.claims)
  end
  if before.rejecting and not s.rejecting then
    state.opened_ms, state.pardoned_ms = now, now + longest_refresh_ms() + GRACE_MS
  end
  dirty = true
end

-- An older state may lack the newest settings: the first caller's count.
local function open(room, settings)
  if open_ledger(room, settings) then settle() end
end

-- ARGV: settings of a new ledger, operations as `<B c12 d I4 I4` (what, ticket id, key, random_bits: low half, high half; behind a move the new id), numbers of the forecast and of the summary known.
-- Answers `<dddddddd` (time, permits, pace a minute, line ahead, permits to ask for, number of the forecast, unseen newcomers, for how many permits
-- requests that cannot wait may ask), then one answer an operation; and the forecast and the summary, if others are known.
function CALLS.handle(keys, argv)
  local room, operations = keys[1], argv[2]
  open(room, argv[1])
  passes_left = 0
  local answers = {''}
  local at = 1
  while at <= #operations do
    local what, id, key, low, high = struct.unpack('<Bc12dI4I4', operations, at)
    at = at + 29
    if what == 6 then
      local renewed_ms, served_ms, here, length = struct.unpack('<ddBB', operations, at)
      at = at + 18 + length
      answers[#answers + 1] = OPERATIONS[what](id, key, high, low, renewed_ms, served_ms, here == 1, string.sub(operations, at - length, at - 1))
    elseif what == 9 then
      at = at + 12
      answers[#answers + 1] = OPERATIONS[what](id, string.sub(operations, at - 12, at - 1), key == 1, low)
    else
      answers[#answers + 1] = OPERATIONS[what](id, key, high, low)
    end
  end
  local forecast, summary = newer_forecast(argv[3]), newer_summary(argv[4])
  answers[1] = heading(passes_left)
  close_ledger(room)
  return {table.concat(answers), forecast, summary}
end

-- ARGV: settings of a new ledger, numbers of the forecast and of the summary known. The table of the line (admission/queueing/line_table.py): what `handle`
-- answers first, whether visitors are let in and how many should check in now as `<Bd`, then the key, rank and plain wait of the
-- last of those and of all candidates as `<ddd`; and the forecast and the summary, if others are known.
function CALLS.line_table(keys, argv)
  open(keys[1], argv[1])
  sweep_when_due()
  local due = s.open and min(state.waiting, state.permits + max(1, ceil(state.lookahead)) + ceil(state.pace * TABLE_LOOK_S)) or 0
  local found = {heading(0), struct.pack('<Bd', s.open and not cut_off() and 1 or s.open and 2 or 0, due)}
  local function place(rank)
    local row = call('ZRANGE', k.line, rank, rank, 'WITHSCORES')
    found[#found + 1] = struct.pack('<ddd', tonumber(row[2]), rank, wait_of(rank + 1) or UNKNOWN)
  end
  if due > 0 then place(due - 1) end
  local rank = 0
  while rank < state.waiting - 1 do
    place(rank)
    rank = rank + max(1, floor(rank / TABLE_GROWTH))
  end
  if state.waiting > 0 then place(state.waiting - 1) end
  local forecast, summary = newer_forecast(argv[2]), newer_summary(argv[3])
  close_ledger(keys[1])
  return {table.concat(found), forecast, summary}
end

-- ARGV: settings. Idempotent.
function CALLS.configure(keys, argv)
  open(keys[1], argv[1])
  settle()
  close_ledger(keys[1])
  return 'OK'
end

-- ARGV: settings of a new ledger, the data center's name, permits wanted. Answers a SyncUp without moves, and the moves if there are any.
-- A fourth one: the last report of this epoch (`farewell` in admission/ledger/exchange.py); false where no fence is known to be in force.
function CALLS.report(keys, argv)
  local room, want, last = keys[1], tonumber(argv[3]), argv[4] ~= nil
  open(room, argv[1])
  sweep(SWEEP_SYNC)
  if last and (state.fence_ms == 0 or fenced()) then
    close_ledger(room)
    return false
  end
  if last then return_above(0) end
  give_back()
  local passed_ms = now - state.reported_ms
  if passed_ms > 0 then
    local rate = state.newcomers * 1000 / passed_ms
    state.arrivals_per_s = state.arrivals_per_s + (rate - state.arrivals_per_s) * passed_ms / (passed_ms + PACE_MS)
    state.newcomers, state.reported_ms = 0, now
  end
  state.reports = state.reports + 1
  if want > 0 then state.borrowed = state.reports end
  call('SUNIONSTORE', k.told, k.told, k.fresh)
  call('UNLINK', k.fresh)
  local ended = state.whole and call('HKEYS', k.ages) or {}
  for place, cell in ipairs(ended) do ended[place] = -1 - cell end
  for start = 1, #ended, 1000 do call('SADD', k.told, unpack(ended, start, min(start + 999, #ended))) end
  local seconds, cells = {}, {}
  for _, member in ipairs(call('SMEMBERS', k.told)) do
    member = tonumber(member)
    if member < 0 then
      cells[#cells + 1] = {-1 - member, tonumber(call('HGET', k.ages, -1 - member) or 0)}
    elseif not state.whole then
      seconds[#seconds + 1] = {member, tonumber(call('HGET', k.seconds, member) or 0)}
    end
  end
  if state.whole then
    local all = call('HGETALL', k.seconds)
    for place = 1, #all, 2 do seconds[#seconds + 1] = {tonumber(all[place]), tonumber(all[place + 1])} end
  end
  local up = cmsgpack.pack({
    argv[2], state.epoch, state.reports, now, state.granted_seen, state.returned_permits, state.returned_freed, state.used, state.over, state.settled, state.admitted,
    ages(), state.applied, state.permits, state.waiting, seconds, state.arrivals_per_s, want, cells, state.joined, state.lost, state.strays, state.front_s, state.whole, state.disconnected_rate,
  })
  local moves = report_moves()
  local age_ms, remembers_ms, unknown_ms = now - state.empty_ms, -1, -1
  if state.whole then
    remembers_ms = state.empty_ms > 0 and age_ms < REMEMBERS_MS and max(1, age_ms) or 0
    unknown_ms = state.unknown_until_ms > 0 and max(0, state.unknown_until_ms - now) or -1
  end
  if last then
    local epoch = state.epoch
    trim_minute()
    new_epoch()
    state.epoch = max(now, epoch + 2)
  end
  close_ledger(room)
  return {up, moves or false, state.fence_ms, remembers_ms, unknown_ms}
end

-- ARGV: settings of a new ledger, a SyncDown as a map, the forecast ('': none, or none that is new), and of its moves
-- arrivals (`c12 d`), wanted (`c12 B` and a name) and denied (`c12`), end to end; and the summary, as the forecast. Answers which time it is.
function CALLS.apply(keys, argv)
  local room, down = keys[1], cmsgpack.unpack(argv[2])
  open(room, argv[1])
  if down.epoch == state.epoch and down.number > state.applied then -- a lower number may be of a lost coordinator: refused
    if down.answers == state.reports then
      put_time_right(down)
      call('UNLINK', k.told)
      state.whole = down.afresh
    end
    if down.moves then apply_moves(down.moves, argv[4], argv[5], argv[6], down.answers == state.reports) end
    apply_lease(down)
    if argv[3] ~= '' then
      state.forecast = down.number
      call('SET', k.forecast, argv[3])
    end
    if argv[7] ~= '' then
      state.summary = down.number
      call('SET', k.summary, argv[7])
    elseif down.alone then
      state.summary = 0
      call('UNLINK', k.summary)
    end
    if down.answers == state.borrowed and state.permits <= 0 then state.borrow_ms = now + 500 end
    dirty = true
  elseif down.epoch > state.epoch then -- given up behind the fence; or the clock was behind when this ledger was begun
    trim_minute()
    new_epoch()
    state.epoch = max(now, down.epoch + 1)
  end
  close_ledger(room)
  return now
end

-- ARGV: settings of a new ledger. Answers its state and the figures of the laws of conservation, as a map.
function CALLS.inspect(keys, argv)
  local room = keys[1]
  open(room, argv[1])
  trim_minute()
  local found = {called = count_called(), now_ms = now, confirm = newcomers.confirm()}
  for _, name in ipairs(FIELDS) do
    if name ~= 'settings' then found[name] = state[name] end
  end
  found.kept = state.kept ~= 0 -- an id is no text
  close_ledger(room)
  return cmsgpack.pack(found)
end

-- ARGV: the `life` of the previous server, stopped when nobody wrote to it any more. Keeps the state if that server wrote it.
function CALLS.go_on(keys, argv)
  call = redis.call
  local raw = call('GET', keys[1] .. ':state')
  local values = raw and cmsgpack.unpack(raw) or {}
  if values[1] ~= FORMAT then return 0 end
  for place, name in ipairs(FIELDS) do
    if name == 'life' and values[place] == argv[1] then
      values[place] = this_life()
      call('SET', keys[1] .. ':state', cmsgpack.pack(values))
      return 1
    end
  end
  return 0
end

-- ARGV: settings of a new ledger. Answers and removes counts for analytics, {field, count, ...}: ages of ended sessions, and `abandoned`.
function CALLS.tally(keys, argv)
  open(keys[1], argv[1])
  sweep_when_due()
  if watches_turns() and call('ZCARD', k.absent) > 0 then -- places whose turn is too long ago are abandoned
    local over = s.claim_ms == 0 and '+inf'
    for _, raw in ipairs(over and {} or call('LRANGE', k.turns, 0, -1)) do
      local at_ms, passed = struct.unpack('<dd', raw)
      if at_ms > now - s.claim_ms - TURN_STEP_MS then break end
      over = string.format('%.0f', passed)
    end
    local ended = over and call('ZREMRANGEBYSCORE', k.absent, '(0', over) or 0
    if ended > 0 then call('HINCRBY', k.tally, 'abandoned', ended) end
  end
  local found = call('HGETALL', k.tally)
  call('UNLINK', k.tally)
  close_ledger(keys[1])
  return found
end

-- ARGV: settings of a new ledger, a key, the key to start at ('-inf': the first), the most rows. Answers those in line before the key: {id, key, ...}.
function CALLS.before(keys, argv)
  local room = keys[1]
  open(room, argv[1])
  if argv[3] == '-inf' then sweep(SWEEP_SYNC) end
  local found = call('ZRANGEBYSCORE', k.line, argv[3], '(' .. argv[2], 'WITHSCORES', 'LIMIT', 0, argv[4])
  close_ledger(room)
  return found
end

-- ARGV: settings of a new ledger, then pairs of id and new key, for those in line.
function CALLS.rekey(keys, argv)
  local room = keys[1]
  open(room, argv[1])
  for place = 2, #argv, 2 do
    local old, key = key_of(argv[place]), tonumber(argv[place + 1])
    if old and old ~= key then
      count_second(old, -1)
      call('ZADD', k.line, argv[place + 1], argv[place])
      count_second(key, 1)
    end
  end
  close_ledger(room)
  return 'OK'
end

redis.register_function(LIBRARY .. '_handle', CALLS.handle)
redis.register_function(LIBRARY .. '_line_table', CALLS.line_table)
redis.register_function(LIBRARY .. '_configure', CALLS.configure)
redis.register_function(LIBRARY .. '_report', CALLS.report)
redis.register_function(LIBRARY .. '_apply', CALLS.apply)
redis.register_function(LIBRARY .. '_inspect', CALLS.inspect)
redis.register_function(LIBRARY .. '_go_on', CALLS.go_on)
redis.register_function(LIBRARY .. '_tally', CALLS.tally)
redis.register_function(LIBRARY .. '_before', CALLS.before)
redis.register_function(LIBRARY .. '_rekey', CALLS.rekey)
