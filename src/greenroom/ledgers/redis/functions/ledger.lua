-- Visitors' operations and the passing of time: admission/ledger/ and admission/queueing/ in Lua.

-- The admission rate of the line (admission/ledger/admission_rate.py): the newest slot is in the state, older ones are under `tempo`, newest first.
local function mark_rate()
  if state.tempo_queueing and now > state.tempo_ms then
    state.slot_ms = state.slot_ms + now - state.tempo_ms
    if state.slot_ms >= RATE_SLOT_MS then
      local older = call('GET', k.tempo) or ''
      call('SET', k.tempo, string.sub(struct.pack('<dd', state.slot_admitted, state.slot_ms) .. older, 1, 16 * (SLOTS_MAX - 1)))
      state.slot_admitted, state.slot_ms = 0, 0
    end
  end
  state.tempo_ms, state.tempo_queueing = now, state.waiting > 0
end

local function measure_rate()
  local admitted, queueing_ms = state.slot_admitted, state.slot_ms
  local older = (admitted < ENOUGH or queueing_ms < BELIEVED_MS) and call('GET', k.tempo) or ''
  local at = 1
  while at <= #older and not (admitted >= ENOUGH and queueing_ms >= BELIEVED_MS) do
    local slot_admitted, slot_ms = struct.unpack('<dd', older, at)
    admitted, queueing_ms, at = admitted + slot_admitted, queueing_ms + slot_ms, at + 16
  end
  if admitted < BELIEVED or queueing_ms < BELIEVED_MS then state.per_minute = false else state.per_minute = admitted * 60000 / queueing_ms end
end

local function lose_place(key, attempted_ms)
  state.lost = state.lost + 1
  if attempted_ms - arrival_ms(key) <= SOON_MS then state.strays = state.strays + 1 end
end

-- A visitor did not come back in time. `absent` (admission/ledger/absent.py): who may close the page -> 0 while in line, else the key of the place.
local function abandon_place(id, key, attempted_ms)
  if watches_turns() and call('ZSCORE', k.absent, id) then
    call('ZADD', k.absent, string.format('%.0f', key), id)
  else
    call('HINCRBY', k.tally, 'abandoned', 1)
  end
  lose_place(key, attempted_ms)
end

-- Newcomers whose tickets have not come back (Line.unseen).
local function newcomers_unseen()
  if state.waiting == 0 then return 0 end
  local second = floor((now + state.line_ahead_ms) / 1000)
  local counts = call('HMGET', k.seconds, second - 5, second - 4, second - 3, second - 2, second - 1, second)
  local most = 0
  for place = 1, 6 do
    counts[place] = tonumber(counts[place] or 0)
    most = max(most, counts[place])
  end
  local before, since = counts[1] + counts[2] + counts[3], counts[4] + counts[5] + counts[6]
  return max(0, max(floor(before * 5 / 6), floor((most - 2 * math.sqrt(most)) * 5 / 2)) - since)
end

-- When turns came (admission/ledger/turns.py): a list of {time, highest key admitted from then on for TURN_STEP_MS}.
local function turn_came(key)
  if state.turns > 0 and (key <= state.passed) then return end
  state.passed, dirty = key, true
  if state.turns > 0 and now - state.turn_ms < TURN_STEP_MS then
    call('RPOP', k.turns)
    call('RPUSH', k.turns, struct.pack('<dd', state.turn_ms, key))
    return
  end
  state.turn_ms, state.turns = now, call('RPUSH', k.turns, struct.pack('<dd', now, key))
  if state.turns > TURN_ENTRIES then
    call('LTRIM', k.turns, -TURN_ENTRIES, -1)
    state.turns = TURN_ENTRIES
  end
end

local function holds_turn(key)
  if state.turns == 0 or key > state.passed then return s.claim_ms > 0 end
  for _, raw in ipairs(call('LRANGE', k.turns, 0, -1)) do
    local at_ms, passed = struct.unpack('<dd', raw)
    if passed >= key then return s.claim_ms > 0 and now < at_ms + s.claim_ms + TURN_STEP_MS end
  end
  return false
end

local function sweep(limit)
  if torn() then
    new_epoch()
    forgets()
  end
  dirty = true
  local ended, more, passing = end_sessions(floor(now / CELL_MS) * CELL_MS - s.life_ms - 1, limit)
  expire(ended, passing)
  free_closed()
  if state.inside == 0 and state.seen_rows > 0 then
    call('UNLINK', k.seen)
    state.seen_rows = 0
  end
  forget_spent(limit)
  failures.forget(limit)
  local ghosts = sweep_line(floor(limit / 4), abandon_place)
  trim_minute()
  mark_rate()
  measure_rate()
  local passed_ms = now - state.measured_ms
  if passed_ms > 0 then
    state.pace = state.pace + (state.entered * 1000 / passed_ms - state.pace) * passed_ms / (passed_ms + PACE_MS)
    state.entered, state.measured_ms = 0, now
  end
  state.lookahead = state.pace * state.gap_ms / 1000
  state.unseen = newcomers_unseen()
  if watches_turns() and s.open and state.permits > 0 and state.waiting == 0 and not state.queueing
    and (state.turns == 0 or now - state.turn_ms >= TURN_STEP_MS) then
    turn_came((now + state.line_ahead_ms) * TIES)
  end
  state.swept = (more or ghosts) and -1 or floor(now / CELL_MS) -- what is left over is looked at by the next operation
end

local function sweep_when_due()
  if floor(now / CELL_MS) ~= state.swept then sweep(SWEEP) end
end

-- Whose turn it is -----------------------------------------------------------------------------------------------------------------

-- Whether the visitor came within the longest interval between two tries.
local function is_new(key) return now + state.line_ahead_ms - arrival_ms(key) < s.refresh_max_ms end

-- `joins`: this try took the place.
local function has_turn(rank, key, joins)
  if s.method == 'random' then return not (joins and is_new(key)) or state.waiting <= spendable() end
  if s.overdraws then return true end
  local permits = spendable()
  if rank >= permits + floor(state.lookahead) then return false end
  if rank >= permits and arrival_ms(key) > first_ms() + OVERTAKING_MS then return false end
  if not state.horizon_ms or not connected() then return true end
  return arrival_ms(key) <= state.horizon_ms + now - state.answered_ms + HORIZON_SLACK_MS + floor(state.gap_ms)
end

local function is_called(rank)
  if s.method == 'random' then return state.waiting <= state.permits + state.lookahead end
  return rank < state.permits + max(1, ceil(state.lookahead))
end

local function count_called()
  if not s.open then return 0 end
  if s.method == 'random' then return is_called() and state.waiting or 0 end
  return min(state.waiting, state.permits + max(1, ceil(state.lookahead)))
end

-- Whether it lives on its own units, because there was no answer lately.
local function cut_off() return not connected() end

-- Admissions a minute; nil or 0: unknown. Cut off, as many as in the last one (admission/ledger/waits.py).
local function pace_a_minute()
  if not cut_off() then return state.per_minute end
  trim_minute()
  return state.disconnected_rate > 0 and state.minute_rows or 0
end

-- Seconds until the pace admits the visitor at this place, who has a permit.
local function paced_s(place)
  if not holds_back() then return 0 end
  return max(0, max(0, state.spent_until_us - now * 1000) + place * state.gap_us - saved_us()) / 1000000
end

-- The first seconds of a crowd (crowd_estimate in admission/estimate.py, part_per_minute in admission/pacing.py).
local function crowd_s(without)
  local centers = max(1, state.data_centers)
  if state.gap_us == 0 or 1000000 / state.gap_us <= 1.01 * max(10 / centers, 1) then return nil end
  local per_minute = min(s.minute_limit, 60000000 / PACE_FACTOR / state.gap_us)
  if without * s.minute_limit > state.pool * per_minute then return nil end
  trim_minute()
  local before = state.permits + state.minute_rows
  if before + without > per_minute then return nil end
  local granted_s = 60 * math.log((2 * per_minute - state.minute_rows) / (2 * per_minute - before - without))
  return max(granted_s, paced_s(without + state.permits)) -- a permit that comes sooner is held back by the pace
end

-- The wait in seconds by the published formulas (admission/estimate.py; fifo); nil: unknown.
local function plain_wait_s(position)
  local without = position - state.permits
  if without <= 0 then return paced_s(position) end
  if without <= state.pool and state.alone and not cut_off() then
    local limit = s.minute_limit
    local paced_s = without * 30 / limit
    local beyond = without - 1 - (limit - state.minute_rows)
    if beyond < 0 then return min(LONGEST_S, paced_s) end
    local minutes = floor(beyond / limit)
    local place, leaves_ms = beyond - minutes * limit, WINDOW_MS
    if place < state.minute_rows then leaves_ms = tonumber(call('LINDEX', k.minute, place)) + WINDOW_MS - now end
    return min(LONGEST_S, max(paced_s, minutes * 60 + max(0, leaves_ms) / 1000))
  end
  local crowd = not cut_off() and crowd_s(without)
  if crowd then return crowd end
  local per_minute = pace_a_minute()
  if not per_minute or per_minute <= 0 then return nil end
  return min(LONGEST_S, without * 60 / per_minute)
end

-- Answers --------------------------------------------------------------------------------------------------------------------------

local IN_LINE, BORROWS, UNTOLD, CUT_OFF, NEWCOMER, CALLED, ROOM, SEARCHING = 1, 2, 4, 8, 16, 32, 64, 128 -- flags
local UNKNOWN = -1

local function answer(standing, flags, first, second, refresh_ms, ahead, waiting, wait_s)
  return struct.pack('<BBddI4I4I4d', standing, flags, first, second, refresh_ms, ahead, waiting, wait_s)
end

local function gone() return answer(GONE, 0, 0, 0, 0, 0, 0, UNKNOWN) end

local function active(renewed_ms, kept_ms)
  return answer(ACTIVE, 0, renewed_ms + s.life_ms, renewed_ms, 0, kept_ms or 0, 0, UNKNOWN)
end

local function held(flags, attempted_ms, key, refresh_ms, ahead, wait_s)
  if cut_off() then flags = flags + CUT_OFF end
  return answer(WAITING, flags, attempted_ms, key, refresh_ms, ahead, state.waiting, wait_s or UNKNOWN)
end

local function spread(value_ms, percent, low)
  return value_ms + floor(value_ms * percent * (low % 65536 - 32768) / 3276800)
end

local function wait_of(position)
  if not s.open or s.method == 'random' then return nil end
  return plain_wait_s(position)
end

local function outside(key, ahead, low, flags, unseen, room)
  local refresh_ms = s.rejecting and 0 or spread(room and SHOW_REFRESH_MS or CALLED_REFRESH_MS, 25, low)
  return held(flags, now, key, refresh_ms, ahead, wait_of(ahead + unseen + 1))
end

local function refresh_of(called, rank, wait_s, low, first)
  if s.rejecting then return 0 end
  if called then return spread(CALLED_REFRESH_MS, 25, low) end
  local wait_ms = s.refresh_max_ms
  if s.open and s.method == 'fifo' then
    wait_ms = min(wait_ms, CALLED_REFRESH_MS * (rank + 1))
    if first then wait_ms = min(wait_ms, FIRST_REFRESH_MS) end
    if wait_s then wait_ms = max(CALLED_REFRESH_MS, min(wait_ms, floor(wait_s * 333))) end
  elseif s.open and s.method == 'random' then
    wait_ms = min(wait_ms, CALLED_REFRESH_MS * state.waiting)
  end
  return spread(wait_ms, 10, low)
end

local function hold(id, key, rank, low, first)
  local wait_s = wait_of(rank + 1)
  local called = s.open and is_called(rank)
  local refresh_ms = refresh_of(called, rank, wait_s, low, first)
  expect(id, refresh_ms)
  return held(called and IN_LINE + CALLED or IN_LINE, now, key, refresh_ms, rank, wait_s)
end

-- Admits a visitor; `key` and `attempted_ms` of one in line; `unshown`: the session is unconfirmed; `unpaced`: uses none of the pace up.
local function admit(id, source, key, attempted_ms, unshown, unpaced)
  dirty = true
  if key then
    leave_line(id, key)
    if watches_turns() then turn_came(key) end
    state.front_s = floor(arrival_ms(key) / 1000)
    if attempted_ms ~= now then
      state.entered, state.slot_admitted = state.entered + 1, state.slot_admitted + 1
      local gap_ms = min(now - max(attempted_ms, state.opened_ms), longest_refresh_ms() + GRACE_MS)
      state.gap_ms = state.gap_ms + (gap_ms - state.gap_ms) * GAP_WEIGHT
    end
  else
    state.newcomers = state.newcomers + 1
  end
  spend(source, unpaced or s.overdraws)
  begin_session(id, unshown)
  local reentered = failures.is_taken(id)
  if state.moving and call('HEXISTS', k.claims, id) == 1 then -- what the other data center keeps would be a second turn
    failures.absorb(id, floor(now / 1000), 0, TURN_USED)
  end
  return answer(ADMITTED, 0, now + s.life_ms, now, 0, reentered and 1 or 0, 0, UNKNOWN)
end

local function newcomer_source()
  if s.overdraws then return source_of(true) end
  if paced(state.permits) > state.waiting and not state.queueing then return 1 end
  if state.waiting > 0 or connected() then return nil end
  return source_of(false)
end

-- Whether a further permit would admit a newcomer, who may wait for it (Ledger.borrows).
local function may_borrow()
  if state.permits > 0 or state.queueing or state.waiting > 0 or not s.open then return false end
  return connected() and now >= state.borrow_ms
end

-- Permits to request for a newcomer, also one who must show the ticket: a flood cannot spend them.
local function borrows()
  if not may_borrow() then return 0 end
  return max(1, ceil(0.5 * state.arrivals_per_s))
end

-- Counts a newcomer sent to show the ticket; whether this second has more of them than permits at hand.
local function crowded()
  if s.overdraws then return false end
  local second = floor(now / 1000)
  if state.sent_s ~= second then state.sent_s, state.sent = second, 0 end
  state.sent, dirty = state.sent + 1, true
  return state.sent > paced(state.permits) - state.waiting
end

local OPERATIONS = {}

OPERATIONS[1] = function(id, _, _, low) -- arrive
  sweep_when_due()
  local source = s.open and newcomer_source() or nil
  if source and not newcomers.must_show_ticket() then
    newcomers.admit()
    return admit(id, source, nil, nil, s.watches)
  end
  local flags = NEWCOMER + (borrows() > 0 and BORROWS or 0) + (source and not crowded() and ROOM or 0)
  return outside((now + state.line_ahead_ms) * TIES, state.waiting, low, flags, state.unseen, source)
end

-- Provisional sessions (admission/ledger/provisional.py): `provisional` holds those that are not full ones yet, `passed` those of the
-- last minute; both id -> when it was admitted.
local passes_left = 0 -- how many more may begin, as the newest question about one found; not above 0: none

local function has_room()
  local parts = SHARE * max(1, state.data_centers)
  local active_most, minute_most = max(1, floor(s.total_limit / parts)), max(1, floor(s.minute_limit / parts))
  call('ZREMRANGEBYSCORE', k.provisional, '-inf', now - 2 * PROVISIONAL_MS) -- those that are over are not swept yet
  call('ZREMRANGEBYSCORE', k.passed, '-inf', now - WINDOW_MS)
  passes_left = min(active_most - call('ZCOUNT', k.provisional, '(' .. string.format('%.0f', now - PROVISIONAL_MS), '+inf'), minute_most - call('ZCARD', k.passed))
  return passes_left > 0
end

OPERATIONS[7] = function(id) -- arrive provisionally
  sweep_when_due()
  passes_left = 0
  local source
  local renewed_ms = now + min(PROVISIONAL_MS, s.life_ms) - s.life_ms
  local free = s.open and not s.confirm and state.waiting == 0 and not state.queueing
  if free and renewed_ms > state.ended_to and has_room() then source = source_of(s.overdraws, true) end
  if not source then return held(UNTOLD + (passes_left > 0 and may_borrow() and BORROWS or 0), now, 0, 0, 0, nil) end
  dirty = true
  spend(source, true)
  state.inside_rows = state.inside_rows + write_session(id, renewed_ms, AGE_UNKNOWN)
  state.inside = state.inside + 1
  call('ZADD', k.provisional, now, id)
  call('ZADD', k.passed, now, id)
  return answer(ADMITTED, 0, renewed_ms + s.life_ms, renewed_ms, 0, 0, 0, UNKNOWN)
end

-- GONE, with whether `reenter` has a turn.
function failures.over(id, renewed_ms)
  local told = places.told(id)
  if told then return told end
  if state.failure_rows == 0 then return gone() end
  local kept
  if renewed_ms then
    local ends_ms = renewed_ms + s.life_ms
    kept = failures.keeps(id, ends_ms) and floor(now / 1000) < floor((ends_ms + TURN_KEPT_MS) / 1000)
  else
    kept = failures.is_kept(id) or (failures.is_taken(id) and waiter(id))
  end
  return answer(GONE, 0, 0, 0, 0, kept and 1 or 0, 0, UNKNOWN), kept
end

local function view(id)
  local renewed_ms, age, unshown = session_of(id)
  if not renewed_ms or now >= renewed_ms + s.life_ms then return failures.over(id, renewed_ms) end
  if unshown then newcomers.see(id, renewed_ms) end
  if now - renewed_ms > s.renewal_age_ms then
    if fenced() then
      note_seen(id)
    elseif s.renews then
      call('ZREM', k.provisional, id)
      renew_session(id, renewed_ms, age)
      renewed_ms = now
    else
      local begun_ms = call('ZSCORE', k.provisional, id)
      if begun_ms then
        call('ZREM', k.provisional, id)
        renewed_ms = tonumber(begun_ms)
        write_session(id, renewed_ms, AGE_UNKNOWN)
      end
    end
  end
  return active(renewed_ms)
end

OPERATIONS[2] = function(id, key, _, low) -- poll
  local renewed_ms, spent = session_of(id)
  if renewed_ms then return view(id) end
  if spent then return failures.over(id) end
  local attempted_ms, refresh_ms = waiter(id)
  local first = false
  if floor(now / CELL_MS) ~= state.swept then
    if attempted_ms then expect(id, refresh_ms) end -- present: not a ghost in this very sweep
    sweep(SWEEP)
  end
  if attempted_ms then
    key = key_of(id)
  else
    if s.rejecting then return outside(key, rank_of(key), low, 0, 0) end
    first, dirty = true, true
    attempted_ms = now
    join_line(id, key)
    if now - arrival_ms(key) > SOON_MS then state.lost = state.lost - 1 else state.joined = state.joined + 1 end
    if state.spent_rows > 0 then state.spent_rows = state.spent_rows - call('ZREM', k.spent, id) end
    state.newcomers = state.newcomers + 1
  end
  local rank = place_of(id)
  if s.open then
    if has_turn(rank, key, first) then
      local source = source_of(s.overdraws)
      if source then return admit(id, source, key, attempted_ms) end
    end
  end
  return hold(id, key, rank, low, first)
end

OPERATIONS[3] = function(id, key, _, low) -- peek
  local renewed_ms, spent = session_of(id)
  if renewed_ms and now < renewed_ms + s.life_ms then return active(renewed_ms) end
  if renewed_ms or spent or failures.is_kept(id) then return (failures.over(id, renewed_ms)) end
  local attempted_ms, refresh_ms = waiter(id)
  if not attempted_ms then return outside(key, rank_of(key), low, 0, 0) end
  key = key_of(id)
  local rank = place_of(id)
  return held(IN_LINE, attempted_ms, key, refresh_ms, rank, wait_of(rank + 1))
end

OPERATIONS[11] = function(id, key, high, low) -- reclaim
  if waiter(id) then
    if s.claim_ms > 0 and call('ZCARD', k.absent) < ABSENT_MAX then call('ZADD', k.absent, 'NX', 0, id) end
  else
    local renewed_ms, spent = session_of(id)
    if not (renewed_ms or holds_turn(key)) then return gone() end
    if not (renewed_ms or spent) and state.turns > 0 and key <= state.passed then return outside(key, rank_of(key), low, CALLED, 0) end
  end
  return OPERATIONS[3](id, key, high, low)
end

OPERATIONS[4] = view

-- As `spend_id`, for a visitor who left or changed the id after this ledger began from an older copy: until every ticket from before that has expired.
local function spend_of_copy(id, renewed_ms)
  spend_id(id, doubts() and max(renewed_ms, state.born_ms, state.closing_until_ms - spent_ms()) or renewed_ms)
end

OPERATIONS[5] = function(id) -- leave
  local renewed_ms, age = session_of(id)
  if renewed_ms then
    end_session(id, renewed_ms, age)
    spend_of_copy(id, renewed_ms)
    failures.drop(id)
    free(1)
    dirty = true
    return active(renewed_ms)
  elseif waiter(id) then
    leave_line(id, key_of(id))
    state.lost = state.lost + 1
    spend_place(id)
    dirty = true
    return held(UNTOLD, now, 0, 0, 0, nil)
  end
  return gone()
end

-- The last renewal of a session, as `session_of`; ends it if its time is over.
function places.living(id)
  local renewed_ms, age, unshown = session_of(id)
  if not renewed_ms or now < renewed_ms + s.life_ms then return renewed_ms, age, unshown end
  end_session(id, renewed_ms, age)
  failures.finish(id, renewed_ms + s.life_ms)
  expire(1, is_passing(id) and 1)
  dirty = true
  return session_of(id)
end

function places.move(old, new, absent) -- admission/ledger/moving.py
  local renewed_ms, age, unshown = places.living(old)
  if renewed_ms then
    if call('ZSCORE', k.provisional, old) then return gone() end
    if unshown then newcomers.see(old, renewed_ms) end
    dirty = true
    call('ZREM', k.inside, old)
    call('ZREM', k.unshown, old)
    write_session(new, renewed_ms, age)
    local seen_ms = state.seen_rows > 0 and call('HGET', k.seen, old)
    if seen_ms then
      call('HDEL', k.seen, old)
      call('HSET', k.seen, new, seen_ms)
    end
    spend_of_copy(old, renewed_ms)
    local since_ms = call('ZSCORE', k.extended, old)
    if since_ms then
      call('ZADD', k.extended, since_ms, new)
      call('ZREM', k.extended, old)
    end
    failures.rename(old, new)
    return active(renewed_ms)
  end
  local due = call('ZSCORE', k.due, old)
  if not failures.is_kept(old) and (age or not (due or absent)) then return gone() end -- without a session `age` says whether the id is spent
  dirty = true
  if due then
    call('ZADD', k.line, string.format('%.0f', key_of(old)), new)
    call('ZADD', k.due, due, new)
    call('ZREM', k.line, old)
    call('ZREM', k.due, old)
    if state.kept == old then state.kept = new end
  end
  local absent_key = watches_turns() and call('ZSCORE', k.absent, old)
  if absent_key then
    call('ZADD', k.absent, absent_key, new)
    call('ZREM', k.absent, old)
  end
  spend_place(old)
  failures.rename(old, new)
  return held(UNTOLD, now, 0, 0, 0, nil)
end

-- More time for a session that requests do not renew (Ledger.extend): `extended` is id -> last renewal before the first
-- extension. Rows of sessions that are over go with the next extensions, or are older than the session of the same id.
OPERATIONS[10] = function(id, times)
  local found = view(id)
  local renewed_ms, age = session_of(id)
  if not renewed_ms or now >= renewed_ms + s.life_ms then return found end
  if now - renewed_ms <= s.renewal_age_ms or s.renews or fenced() then return found end
  local since_ms = tonumber(call('ZSCORE', k.extended, id) or renewed_ms)
  if age < AGE_MOST and since_ms < renewed_ms - (age + 1) * AGE_CELL_MS then since_ms = renewed_ms end
  local until_ms = min(now, since_ms + times * s.life_ms)
  if until_ms <= renewed_ms then return found end
  for _, one in ipairs(call('ZRANGE', k.extended, 0, 3)) do
    if not session_of(one) then call('ZREM', k.extended, one) end
  end
  call('ZADD', k.extended, since_ms, id)
  renew_session(id, renewed_ms, age, until_ms)
  dirty = true
  return active(until_ms)
end

OPERATIONS[12] = function(id) -- fail (admission/ledger/failures.py)
  local found = view(id)
  local renewed_ms, age = session_of(id)
  if not renewed_ms or now >= renewed_ms + s.life_ms then return gone() end
  local still_ms = failures.fail(id)
  if not still_ms then return found end
  if still_ms > 0 and not s.renews and not fenced() then
    local until_ms = min(now, renewed_ms + still_ms)
    if until_ms > renewed_ms then
      renew_session(id, renewed_ms, age, until_ms)
      renewed_ms = until_ms
    end
  end
  return active(renewed_ms, failures.keeps(id, renewed_ms + s.life_ms) and TURN_KEPT_MS or 0)
end

OPERATIONS[13] = function(id, key, high, low) -- reenter (admission/ledger/ledger.py)
  if places.living(id) then return view(id) end
  local told = places.told(id)
  if told then return told end
  if not (failures.is_taken(id) and waiter(id) or failures.use(id)) then return gone() end
  return OPERATIONS[2](id, key, high, low)
end

OPERATIONS[8] = function(id, gap_ms) -- keep (admission/ledger/keeping.py)
  if s.open and waiter(id) and state.pace * HELD_MS < 1000 and is_called(place_of(id)) then
    if state.kept == id or state.kept == 0 or state.kept_ms < now then
      state.kept, state.kept_ms, dirty = id, now + floor(min(gap_ms, GAP_MAX_MS) * 115 / 100) + GRACE_MS, true
    end
  end
  return gone()
end
