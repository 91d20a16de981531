-- Sessions that follow their visitors between data centers: admission/messages/moves.py and ledger/visiting.py in Lua.

local function save_claim(id, claim) call('HSET', k.claims, id, cmsgpack.pack(claim)) end

local function claim_of(id)
  local raw = state.moving and call('HGET', k.claims, id)
  return raw and cmsgpack.unpack(raw)
end

local function admit_mover(id)
  -- a session that is over has a unit that is not free yet
  if s.open and state.permits > 0 and not fenced() and not session_of(id) then return admit(id, 1, nil, nil, nil, true) end
end

local function searching(key) return held(IN_LINE + UNTOLD + SEARCHING, now, key, TRANSFER_HELD_MS, 0) end

-- Seeks the turn, which another data center may keep. A cut ends no search.
local function seek_turn(id, key)
  if (connected() or call('HEXISTS', k.seeks, id) == 1) and failures.seek(id) then return searching(key) end
  return gone()
end

-- The ticket is over, but a page was served on trust since: held until the session comes.
local function search(id, key, served_ms)
  dirty, state.moving = true, true
  local claim = claim_of(id)
  if not claim then
    claim = {home = '', renewed_ms = served_ms, since_ms = now, served_ms = 0, denied = false}
    save_claim(id, claim)
  end
  if claim.denied or not connected() or now - claim.since_ms >= CUT_OFF_MS then
    call('HDEL', k.claims, id)
    return seek_turn(id, key)
  end
  return searching(key)
end

-- Whether the session ended here after that renewal: its visitor left, or has another id.
local function seen_ending(id, renewed_ms)
  local score = call('ZSCORE', k.inside, id)
  local until_ms = score and read_session(tonumber(score)) + spent_ms() or tonumber(call('ZSCORE', k.spent, id) or 0)
  return until_ms > now and renewed_ms <= until_ms - spent_ms() + RENEWAL_SLACK_MS
end

-- An accepted ticket of another data center, or of this one before it lost its state.
OPERATIONS[6] = function(id, key, high, low, renewed_ms, served_ms, here, home)
  local known_ms, spent = session_of(id)
  if known_ms and now < known_ms + s.life_ms then return view(id) end
  local told = places.told(id)
  if told then return told end
  local until_ms = renewed_ms + s.life_ms
  local ended_here = here and (renewed_ms >= state.born_ms or seen_ending(id, renewed_ms)) and not (state.moving and call('ZSCORE', k.elsewhere, id))
  local over = now >= until_ms
  if over then
    local found, kept = failures.over(id, known_ms)
    if kept then return found end
  end
  local open = over and claim_of(id) -- held in time, see below
  if open then served_ms = max(served_ms, open.served_ms) end
  if over and now < served_ms + s.life_ms and renewed_ms > state.all_ended_ms then return search(id, key, served_ms) end
  if over or ended_here or renewed_ms <= state.all_ended_ms then
    if state.moving then call('HDEL', k.claims, id) end
    local late = now >= until_ms + TURN_KEPT_MS + FAILURE_GAP_MS
    local moved = not here or (state.moving and call('ZSCORE', k.elsewhere, id)) or (state.turns_move > 0 and call('ZSCORE', k.turns_left, id))
    if late or not moved or renewed_ms <= state.all_ended_ms then return gone() end
    return seek_turn(id, key)
  end
  local attempted_ms = waiter(id)
  if attempted_ms and attempted_ms < renewed_ms then -- let in elsewhere since the last try here
    local stale = key_of(id)
    leave_line(id, stale)
    lose_place(stale, attempted_ms)
  elseif attempted_ms then -- held here although let in: no ledger has the session
    return OPERATIONS[2](id, key, high, low)
  end
  dirty, state.moving = true, true
  local claim = claim_of(id)
  if not claim then
    claim = {home = home, renewed_ms = renewed_ms, since_ms = now, served_ms = 0, denied = false}
    save_claim(id, claim)
  end
  if claim.denied then
    call('HDEL', k.claims, id)
    call('ZADD', k.denied, max(renewed_ms, tonumber(call('ZSCORE', k.denied, id) or 0)), id) -- asked for again, but not served on trust meanwhile
    local found, kept = failures.over(id, known_ms)
    if kept then return found end
    return OPERATIONS[2](id, key, high, low)
  end
  local hopeful = connected() and now - claim.since_ms < CUT_OFF_MS
  if not hopeful then
    local admitted = admit_mover(id)
    if admitted then return admitted end
  end
  if s.strong or renewed_ms <= tonumber(call('ZSCORE', k.denied, id) or -RENEWAL_SLACK_MS) + RENEWAL_SLACK_MS then
    -- the session was given away, so the line would refuse the spent id
    if hopeful or (spent and connected()) then return held(IN_LINE + UNTOLD, now, key, TRANSFER_HELD_MS, 0) end
    return OPERATIONS[2](id, key, high, low)
  end
  if s.renews then claim.served_ms = now end
  if s.renews and hopeful and until_ms - now < CUT_OFF_MS then -- it may be over before it is asked for: no page that could not be kept to
    claim.renewed_ms = now
    save_claim(id, claim)
    return searching(key)
  end
  save_claim(id, claim)
  state.unconfirmed = state.unconfirmed + 1
  return answer(ACTIVE, 0, until_ms, renewed_ms, s.renews and now - renewed_ms or 0, 0, 0, UNKNOWN)
end

-- Gifts on their way, by number: {number, id, to, last renewal}, without sessions that are over.
local function kept_gifts()
  call('ZREMRANGEBYRANK', k.kept_gifts, 0, -KEPT_MAX - 1)
  local found = {}
  for _, raw in ipairs(call('ZRANGE', k.kept_gifts, 0, -1)) do
    local gift = cmsgpack.unpack(raw)
    if gift[4] + s.life_ms > now then found[#found + 1] = gift else call('ZREM', k.kept_gifts, raw) end
  end
  return found
end

-- The report of moving sessions: {given, gifts, arrived, claims, unknown, kept, left}, ids with source or target and age; nil while no visitor has ever moved.
local function report_moves()
  local turns, moving_places = failures.report(), places.report()
  if not state.moving and not turns and not moving_places then return nil end
  for _, id in ipairs(call('ZRANGEBYSCORE', k.elsewhere, '-inf', now)) do call('HDEL', k.left, id) end
  call('ZREMRANGEBYSCORE', k.elsewhere, '-inf', now)
  call('ZREMRANGEBYSCORE', k.sources, '-inf', now)
  call('ZREMRANGEBYSCORE', k.denied, '-inf', now - s.life_ms)
  local claims, gifts, left, total = {}, {}, {}, 0
  local function follow(id) -- whom it was given to
    local to = call('HGET', k.left, id)
    if to then left[#left + 1], left[#left + 2] = id, to end
  end
  local rows = call('HGETALL', k.claims)
  for place = 1, #rows, 2 do
    local claim = cmsgpack.unpack(rows[place + 1])
    if claim.renewed_ms + s.life_ms <= now then
      call('HDEL', k.claims, rows[place])
    else
      total = total + 1
      if not claim.denied and #claims < 3 * CLAIMS_MAX then
        claims[#claims + 1], claims[#claims + 2], claims[#claims + 3] = rows[place], claim.home, now - claim.renewed_ms
      end
    end
  end
  if total == 0 and state.given == 0 and state.arrived == 0 and call('SCARD', k.unknown) == 0 and not turns and not moving_places then return nil end
  for _, raw in ipairs(call('LRANGE', k.gifts, 0, -1)) do
    local gift = cmsgpack.unpack(raw)
    gifts[#gifts + 1], gifts[#gifts + 2], gifts[#gifts + 3] = gift[1], gift[2], now - gift[3]
  end
  call('SUNIONSTORE', k.unknown_told, k.unknown_told, k.unknown)
  local unknown = call('SMEMBERS', k.unknown_told)
  for _, id in ipairs(unknown) do follow(id) end
  for place = 1, #claims, 3 do follow(claims[place]) end
  local kept = {}
  for _, gift in ipairs(kept_gifts()) do
    kept[#kept + 1], kept[#kept + 2], kept[#kept + 3], kept[#kept + 4] = gift[1], gift[2], gift[3], now - gift[4]
  end
  return {state.given, gifts, state.arrived, claims, unknown, kept, left, turns or false, moving_places or false}
end

-- A session arrives with its unit. Pages served on trust renewed it; a visitor's second unit becomes free.
local function take_over(id, renewed_ms, orphan)
  local claim = claim_of(id)
  if claim then
    call('HDEL', k.claims, id)
    renewed_ms = max(renewed_ms, claim.served_ms, claim.renewed_ms) -- the ticket may know of a renewal that an older copy does not
  end
  local ended = renewed_ms <= state.all_ended_ms -- on the way when an operator ended all sessions
  if orphan then renewed_ms = now end -- nobody knows its last renewal, which the claim may precede
  local known_ms, age = session_of(id)
  if waiter(id) then leave_line(id, key_of(id)) end
  call('ZREM', k.elsewhere, id)
  call('HDEL', k.left, id)
  call('ZREM', k.unshown, id)
  call('SREM', k.unknown, id)
  call('SREM', k.unknown_told, id)
  if known_ms then
    expire(1)
    renewed_ms = max(renewed_ms, known_ms)
    if age ~= AGE_UNKNOWN then age = min(AGE_MOST, floor(renewed_ms / AGE_CELL_MS) - floor(known_ms / AGE_CELL_MS) + age) end
  elseif ended then
    close(1)
    spend_id(id, renewed_ms)
    return
  else
    age, state.inside = AGE_UNKNOWN, state.inside + 1
  end
  if state.spent_rows > 0 then state.spent_rows = state.spent_rows - call('ZREM', k.spent, id) end
  renewed_ms = max(renewed_ms, state.ended_to + 1) -- one that is over ends with the next sweep, like any other
  state.inside_rows = state.inside_rows + write_session(id, renewed_ms, age)
end

-- Ends a session here, because its visitor is at `to`.
function places.give(id, to)
  local renewed_ms = places.living(id)
  if renewed_ms then
    renewed_ms = max(renewed_ms, tonumber(call('ZSCORE', k.provisional, id) or 0)) -- its ticket has come back there
    call('ZREM', k.provisional, id)
    call('ZREM', k.inside, id)
    call('ZREM', k.unshown, id)
    forget_seen(id)
    state.inside, state.inside_rows, state.given = state.inside - 1, state.inside_rows - 1, state.given + 1
    spend_id(id, renewed_ms)
    if doubts() then renewed_ms = max(renewed_ms, state.born_ms) end
    local remembered_ms = s.life_ms + max(s.life_ms, TURN_KEPT_MS + FAILURE_GAP_MS)
    call('ZADD', k.elsewhere, renewed_ms + remembered_ms, id) -- a visitor who comes back has not lost it
    call('HSET', k.left, id, to)
    call('RPUSH', k.gifts, cmsgpack.pack({id, to, renewed_ms}))
    failures.leave(id, to)
    return
  end
  failures.leave(id, to)
  for _, raw in ipairs(call('LRANGE', k.gifts, 0, -1)) do
    if cmsgpack.unpack(raw)[1] == id then return end
  end
  for _, raw in ipairs(call('ZRANGE', k.kept_gifts, 0, -1)) do
    if cmsgpack.unpack(raw)[2] == id then return end
  end
  call('SADD', k.unknown, id)
end

-- Applies the coordinator's message. `newest`: it answers the last report.
local function apply_moves(down, arrivals, wanted, denied, newest)
  state.moving = true
  local unbooked = call('LLEN', k.gifts)
  local booked = unbooked - (state.given - down.given)
  if booked > 0 then
    for place, raw in ipairs(call('LRANGE', k.gifts, 0, booked - 1)) do
      local number, gift = state.given - unbooked + place, cmsgpack.unpack(raw)
      call('ZADD', k.kept_gifts, number, cmsgpack.pack({number, gift[1], gift[2], gift[3]}))
    end
    call('LTRIM', k.gifts, booked, -1)
  end
  for _, number in ipairs(down.taken or {}) do call('ZREMRANGEBYSCORE', k.kept_gifts, number, number) end
  if newest then
    call('SDIFFSTORE', k.unknown, k.unknown, k.unknown_told)
    call('UNLINK', k.unknown_told)
  end
  for at = 1, #denied, 12 do
    local id = string.sub(denied, at, at + 11)
    local claim = claim_of(id)
    if claim then
      claim.denied = true
      save_claim(id, claim)
    end
  end
  if down.turns then failures.hear(down.turns) end
  local count = min(#arrivals / 20, max(0, down.arrived - state.arrived))
  state.arrived = state.arrived + count
  for at = #arrivals - 20 * count + 1, #arrivals, 20 do
    local id, age_ms = struct.unpack('<c12d', arrivals, at)
    local source = down.sources and down.sources[(at + 19) / 20] or ''
    if source ~= '' and call('ZADD', k.sources, now + s.life_ms + SOURCE_SLACK_MS, source) == 0 then
      state.returned_freed = state.returned_freed + 1 -- a lost coordinator has brought it already: there is no such unit
    else
      take_over(id, now - age_ms, source == '')
    end
  end
  local at = 1
  while at <= #wanted do
    local id, length = struct.unpack('<c12B', wanted, at)
    at = at + 13 + length
    places.give(id, string.sub(wanted, at - length, at - 1))
  end
  for from = 1, #arrivals, 20 do places.arrived(string.sub(arrivals, from, from + 11)) end
  for _, row in ipairs(down.turns and down.turns.rows or {}) do places.arrived(id_of(row[1])) end
  if down.places then places.hear(down.places) end
end
