-- The ledger of one room in one data center, as a Redis function library: how its state is kept, opened and closed.
--
-- Theory. This is admission/ledger/ledger.py with the same words and results (tests compare every answer), because what must be atomic has
-- to run where the state is. One call has many operations of one room. The rules:
--
-- * All keys of a room have one hash tag, so a call touches one shard. A call is atomic.
-- * Small numbers are in one string (`state`, the fields of FIELDS); people are in sorted sets. 53 bits of a score are enough
--   for a key, and for two numbers about a waiter or a session at once.
-- * The end of sessions is not written to each of them. Sessions are sorted by renewal, so all up to `ended_to` are over, and moving
--   that border ends any number of them at once.
-- * Time is the server's, unless other clocks say that it was stepped (admission/ledger_time.py), and never runs backwards in a ledger.
--
-- Permits must never be spent twice, but a Redis that has restarted or taken over may have a state in which they were not spent yet. So the
-- state names the process that wrote it last (`life`), and this process remembers outside the data (`written`) how far it has written. If
-- either does not match, time has gone backwards and a new epoch begins: sessions and places stay, unused permits are void.

local FORMAT = 1
local CELL_MS = 256
local TIES = 4096 -- 2^12 keys a millisecond
local SWEEP = 40 -- ended sessions looked at in one call of visitors, and a quarter as many ghosts: 0.1 ms
local SWEEP_SYNC = 1600 -- the same in a report, which no visitor waits for: 4 ms

local FIELDS = {
  'format', 'life', 'serial', 'settings', 'epoch', 'latest_ms',
  'permits', 'freed', 'granted_seen', 'returned_permits', 'returned_freed', 'used', 'over', 'settled', 'admitted', 'acknowledged',
  'disconnected_rate', 'recall', 'queueing', 'horizon_ms', 'pool', 'alone', 'applied', 'answered_ms', 'line_ahead_ms', 'round_trip_ms',
  'inside', 'inside_rows', 'spent_rows', 'ended_to', 'minute_rows', 'waiting',
  'drawn', 'everybody', -- of an older greenroom; to be removed in 2.0
  'swept', 'pardoned_ms', 'opened_ms',
  'lookahead', 'pace', 'gap_ms', 'entered', 'newcomers', 'measured_ms', 'arrivals_per_s',
  'reported_ms', 'reports', 'whole', 'borrowed', 'borrow_ms', 'forecast',
  'slot_admitted', 'slot_ms', 'tempo_ms', 'tempo_queueing', 'per_minute',
  'joined', 'lost', 'strays', 'front_s',
  'born_ms', 'moving', 'given', 'arrived', 'unconfirmed', 'unseen',
  'gap_us', 'spent_until_us', 'contact_ms', 'fence_ms', 'shift_ms', 'seen_rows', 'kept', 'kept_ms',
  'data_centers',
  'confirms', 'switched_ms', 'before', 'trusted_ms', 'slot', 'issued', 'shown', -- of an older greenroom; to be removed in 2.0
  'told_ended_ms', 'all_ended_ms', 'closing', 'closing_until_ms',
  'unshown_slot', 'unshown_slots',
  'summary',
  'empty_ms', 'unknown_until_ms',
  'watched', 'turns', 'turn_ms', 'passed',
  'failure_rows',
  'sent_s', 'sent',
  'failed_s', 'turns_move', 'turns_elsewhere',
  'places',
}

local KEYS_OF = {
  'state', 'line', 'due', 'inside', 'spent', 'minute', 'seconds', 'ages', 'fresh', 'told', 'drawn', 'tempo', 'forecast',
  'claims', 'denied', 'gifts', 'unknown', 'unknown_told', 'elsewhere', 'kept_gifts', 'sources', 'provisional', 'passed', 'tally', 'seen', 'unshown', 'summary',
  'extended', 'left', 'turns', 'absent', 'failures',
  'leaving', 'seeks', 'rows_seen', 'rows_got', 'turns_left',
  'barred', 'barred_until', 'place_asks', 'place_olds', 'place_seen', 'place_seen_until', 'place_said', 'place_tell'}

local call, floor, ceil, min, max -- taken when the first call comes: while a library is loaded there is nothing of the kind yet

local life -- of this process; read once
local written = {} -- room -> serial that this process wrote last
local names = {} -- room -> its keys

local SETTINGS_BYTES = 34 -- behind them a process says what time it expects, and how far that may be off

local given -- the settings of this call
local expected_ms -- the ledger's time as the process that calls expects it; 0: it knows nothing
local server_now -- the server's clock, shifted
local state -- of the ledger at hand: field -> value
local k -- its keys
local s -- the settings in force
local now -- milliseconds
local dirty -- whether the state has to be written

local function keys_of(room)
  local found = names[room]
  if not found then
    found = {}
    for _, name in ipairs(KEYS_OF) do found[name] = room .. ':' .. name end
    names[room] = found
  end
  return found
end

local function this_life()
  if not life then life = string.match(call('INFO', 'server'), 'run_id:(%x+)') end
  return life
end

local METHODS = {[0] = 'fifo', [1] = 'random', [2] = 'passthrough', [3] = 'reject'}

local function read_settings(raw)
  local method, queue_all, confirm, renews, strong, session_ms, renewal_age_ms, refresh_max_s, minute_limit =
    struct.unpack('<BBBBBI4I4I4I4', raw)
  local shut = METHODS[method] == 'reject'
  return {
    method = METHODS[method],
    open = not shut and queue_all == 0,
    rejecting = shut and queue_all == 0,
    overdraws = METHODS[method] == 'passthrough',
    confirm = confirm == 1,
    watches = confirm == 2 and METHODS[method] ~= 'passthrough',
    renews = renews == 1,
    strong = strong == 1,
    renewal_age_ms = renewal_age_ms,
    life_ms = session_ms + (renews == 1 and renewal_age_ms or 0),
    refresh_max_ms = refresh_max_s * 1000,
    minute_limit = minute_limit,
    total_limit = #raw >= 25 and struct.unpack('<I4', raw, 22) or 0, -- a state that an older greenroom wrote does not say; the next call does
    sessions_ended_ms = #raw >= 33 and struct.unpack('<d', raw, 26) or 0,
    claim_ms = #raw >= 34 and string.byte(raw, 34) * 60000 or 0,
  }
end

local function longest_refresh_ms() return floor(s.refresh_max_ms * 11 / 10) end

-- Whether visitors may be away until their turn (admission/ledger/turns.py), now or earlier.
local function watches_turns() return state.watched > 0 or s.claim_ms > 0 end

-- Begins an empty ledger and deletes other data under its keys.
local function new_state(settings)
  for _, name in ipairs(KEYS_OF) do call('UNLINK', k[name]) end
  state = {}
  for _, name in ipairs(FIELDS) do state[name] = 0 end
  state.format, state.life, state.settings, state.epoch = FORMAT, this_life(), settings, now
  state.queueing, state.horizon_ms, state.alone, state.answered_ms = false, false, false, false
  state.tempo_queueing, state.per_minute, state.whole, state.moving = false, false, true, false
  state.gap_ms = CALLED_REFRESH_MS
  state.measured_ms, state.reported_ms, state.tempo_ms = now, now, now
  state.latest_ms, state.born_ms, state.empty_ms = now, now, now
  state.told_ended_ms = s.sessions_ended_ms
  if s.claim_ms > 0 then state.watched = 1 end
end

-- The state may be older than the last answers: visitors stay, units do not.
local function new_epoch()
  if call('ZCARD', k.line) ~= state.waiting or call('ZCARD', k.due) ~= state.waiting then -- places are in the tickets too
    call('UNLINK', k.line, k.due, k.seconds)
    state.waiting = 0
  end
  state.inside_rows, state.spent_rows, state.minute_rows = call('ZCARD', k.inside), call('ZCARD', k.spent), call('LLEN', k.minute)
  state.seen_rows, state.failure_rows = call('HLEN', k.seen), call('ZCARD', k.failures)
  state.inside = call('ZCOUNT', k.inside, (state.ended_to + 1) * 2048, '+inf')
  state.life, state.epoch = this_life(), max(now, state.epoch + 1)
  state.permits, state.freed, state.returned_permits, state.returned_freed, state.over, state.settled = 0, 0, 0, 0, 0, 0
  state.closing = 0
  state.granted_seen, state.used = state.inside, state.inside
  state.admitted, state.acknowledged = state.minute_rows, 0
  state.disconnected_rate, state.recall, state.queueing, state.horizon_ms, state.pool, state.alone = 0, 0, false, false, 0, false
  state.applied, state.answered_ms, state.reports, state.borrowed, state.borrow_ms, state.forecast = 0, false, 0, 0, 0, 0
  state.joined, state.lost, state.strays = 0, 0, 0
  state.born_ms, state.moving, state.given, state.arrived, state.unconfirmed = now, false, 0, 0, 0
  state.reported_ms, state.contact_ms = now, 0 -- the fence stays: without an answer in this epoch it is closed
  state.pardoned_ms = now + longest_refresh_ms() + GRACE_MS
  call('UNLINK', k.fresh, k.told, k.ages, k.forecast, k.claims, k.denied, k.gifts, k.unknown, k.unknown_told, k.elsewhere, k.kept_gifts, k.left, k.absent)
  state.whole = true
  dirty = true
end

-- Recent admissions may be missing from the state.
local function forgets()
  state.empty_ms = now
  if state.unknown_until_ms <= now then state.unknown_until_ms = 0 end
end

-- Whether rows are missing (a server that evicts keys removes whole ones).
local function torn()
  return call('ZCARD', k.line) ~= state.waiting or call('ZCARD', k.due) ~= state.waiting
    or call('ZCARD', k.inside) ~= state.inside_rows or call('LLEN', k.minute) ~= state.minute_rows
end

-- Versions before 0.1 kept the state under another name: renamed once. To be removed in 2.0.
local function adopt_old_state(room)
  local raw = call('GET', room .. ':books')
  if raw then
    call('UNLINK', room .. ':books')
    call('SET', k.state, raw)
  end
  return raw
end

-- Reads the time: the server's, unless the process expects another one.
local function read_time(slack_ms)
  now = server_now
  if expected_ms > 0 and math.abs(now - expected_ms) > slack_ms then now = expected_ms end
  now = max(now, state.latest_ms)
end

-- With the coordinator's reading the median of three clocks is right.
local function put_time_right(down)
  local round_trip_ms = now - down.sent_ms
  if expected_ms == 0 or not state.answered_ms or round_trip_ms > 2 * STEP_MS then return end
  local line_ms = down.time_ms + floor(round_trip_ms / 2) - state.line_ahead_ms
  local clocks = {server_now, expected_ms, line_ms}
  table.sort(clocks)
  if math.abs(server_now - clocks[2]) > STEP_MS then
    state.shift_ms = state.shift_ms + clocks[2] - server_now
    server_now = clocks[2]
  end
  now = max(now, clocks[2])
end

-- Opens the ledger of `room`, or an empty one with these settings. Returns whether its state may be outdated.
local function open_ledger(room, settings)
  call, floor, ceil, min, max = redis.call, math.floor, math.ceil, math.min, math.max
  k, dirty = keys_of(room), false
  local slack_ms = 0
  given, expected_ms, server_now = settings, 0, server_ms(room)
  if #settings > SETTINGS_BYTES then
    given = string.sub(settings, 1, SETTINGS_BYTES)
    expected_ms, slack_ms = struct.unpack('<dd', settings, SETTINGS_BYTES + 1)
  end
  now = server_now
  local raw = call('GET', k.state) or adopt_old_state(room)
  if raw then
    local values = cmsgpack.unpack(raw)
    if values[1] > FORMAT then error({err = 'NEWER this ledger was written by a newer greenroom'}) end
    state = {}
    for place, name in ipairs(FIELDS) do
      if values[place] == nil then state[name] = 0 else state[name] = values[place] end -- 0: of a greenroom that did not know it
    end
    if #values < #FIELDS then state.places = min(1, call('HLEN', k.barred)) end -- an older greenroom wrote, beside this one
    server_now = server_now + state.shift_ms
    read_time(slack_ms)
    s = read_settings(state.settings)
    if state.life ~= this_life() or state.serial < (written[room] or 0) then
      new_epoch()
      forgets()
      state.closing_until_ms = now + s.life_ms + CLOSING_MS -- nor what it renewed
      return true
    end
  else
    s = read_settings(given)
    new_state(given)
    written[room] = 0
    dirty = true
  end
end

local function close_ledger(room)
  if not dirty then return end
  state.latest_ms, state.serial = now, state.serial + 1
  written[room] = state.serial
  local values = {}
  for place, name in ipairs(FIELDS) do values[place] = state[name] end
  call('SET', k.state, cmsgpack.pack(values))
end
