-- Moves to another device among several data centers: admission/messages/places.py, ledger/barred_places.py and ledger/moving_places.py
-- in Lua. `barred` is id -> {source ('': this one), serial, new id, when, until when, whether it has moved, whether it was spent for that};
-- `place_asks` old id -> a move that was begun here; `place_olds` new id -> old id of these; `place_seen` id and source -> {serial, phase, answer}.
-- Fields of one table, because Lua knows no more than 200 locals.

function places.outcome_of(name)
  if name == 'failed' then return answer(GONE, 0, 0, 0, 0, 3, 0, UNKNOWN) end
  if name == 'gone' then return gone() end
  return answer(name == 'ACTIVE' and ACTIVE or WAITING, 0, 0, 0, 0, 0, 0, UNKNOWN)
end

function places.pending() return searching(0) end

function places.bar_of(id)
  local raw = state.places > 0 and call('HGET', k.barred, id)
  return raw and cmsgpack.unpack(raw)
end

function places.unbar(id)
  call('HDEL', k.barred, id)
  call('ZREM', k.barred_until, id)
end

places.most = MOVE_BARRED_MAX

-- Drops bars that are so old that the spent id alone refuses all that may still come.
function places.thin()
  if call('HLEN', k.barred) < places.most - MOVE_ASKED_MAX then return end
  local old_ms = now - max(FAILURE_WINDOW_MS, s.life_ms) - SOURCE_SLACK_MS
  for _, id in ipairs(call('ZRANGE', k.barred_until, 0, MOVE_ASKED_MAX - 1)) do
    local bar = places.bar_of(id)
    if bar and bar[6] and bar[4] <= old_ms then places.unbar(id) end
  end
end

function places.save_bar(id, bar)
  call('HSET', k.barred, id, cmsgpack.pack(bar))
  call('ZADD', k.barred_until, bar[5], id)
  state.places, dirty = 1, true
end

-- The answer to a ticket of this id, and whether it is not known yet if it moves; nil: it is not barred.
function places.told(id)
  local bar = places.bar_of(id)
  if not bar or now >= bar[5] then return nil end
  if bar[6] or now - bar[4] >= MOVE_TOLD_MS then return answer(GONE, 0, 0, 0, 0, 2, 0, UNKNOWN), false end
  return places.pending(), true
end

function places.known_of(old)
  local renewed_ms, spent = places.living(old)
  if renewed_ms then return call('ZSCORE', k.provisional, old) and ID_SPENT or ID_SESSION end
  if failures.is_kept(old) then return ID_SESSION end
  if spent then return ID_SPENT end
  return waiter(old) and ID_PLACE or ID_FREE
end

function places.bar(old, new, source, serial, moved)
  local until_ms = max(spend_place(old), now + s.life_ms + SOURCE_SLACK_MS)
  places.save_bar(old, {source, serial, new, now, until_ms, moved, true})
end

function places.drop(old)
  if state.moving then call('HDEL', k.claims, old) end -- or it takes an orphan that is another visitor's
  local attempted_ms = waiter(old)
  if attempted_ms then -- it is taken again by its key
    local key = key_of(old)
    leave_line(old, key)
    lose_place(key, attempted_ms)
  end
end

function places.hold_id(old, new, source, serial, known)
  places.drop(old)
  if known == ID_FREE or known == ID_PLACE then
    places.bar(old, new, source, serial, false)
  else
    places.save_bar(old, {source, serial, new, now, now + s.life_ms, false, false})
  end
end

function places.lift(old, source, serial)
  local found = places.bar_of(old)
  if not found or found[1] ~= source or found[2] ~= serial or found[6] then return end
  places.unbar(old)
  if found[7] then
    failures.rename(found[3], old)
    failures.revive(old)
  end
  dirty = true
end

function places.session_moves(old, new, source)
  local moved = string.byte(places.move(old, new, false), 1)
  local late = failures.rename(old, new)
  if source == '' then return end
  if moved == ACTIVE then
    places.give(new, source)
  elseif late or moved == WAITING then
    failures.leave(new, source)
  end
end

function places.commit(old, new, source, serial)
  places.drop(old) -- a ledger that lost its state, or is new, was not asked
  if places.known_of(old) == ID_SESSION then places.session_moves(old, new, source) end
  places.bar(old, new, source, serial, true)
end

-- A session or failure row came, whose visitor has moved on.
function places.arrived(id)
  local found = places.bar_of(id)
  if found and found[6] then places.session_moves(id, found[3], found[1]) end
end

function places.ask_of(old)
  local raw = state.places > 0 and call('HGET', k.place_asks, old)
  return raw and cmsgpack.unpack(raw)
end

function places.save_ask(old, ask)
  call('HSET', k.place_asks, old, cmsgpack.pack(ask))
  state.places, dirty = 1, true
end

function places.arrives(id)
  local old = state.places > 0 and call('HGET', k.place_olds, id)
  local ask = old and places.ask_of(old)
  return ask and not ask.done
end

function places.cancel(old, ask, outcome)
  ask.phase, ask.outcome = MOVE_CANCEL, outcome
  places.lift(old, '', ask.serial)
end

function places.look(ask, old)
  if ask.outcome ~= '' then return end
  local late = now - ask.since_ms >= MOVE_PENDING_MS
  if ask.phase == MOVE_ASK then
    if late then places.cancel(old, ask, 'failed') end
  elseif places.living(ask.new) then
    if ask.done or late or not ask.doubled then ask.outcome = 'ACTIVE' end
  elseif failures.use(ask.new) then
    ask.outcome = 'WAITING'
  elseif late then
    ask.outcome = 'gone'
  end
end

function places.decide(old, ask, known)
  if known == ID_BUSY then return places.cancel(old, ask, 'failed') end
  if known == ID_SPENT or (known == ID_FREE and not ask.absent) then return places.cancel(old, ask, 'gone') end
  ask.phase, ask.since_ms = MOVE_COMMIT, now
  if known ~= ID_SESSION then
    ask.outcome = 'WAITING'
    failures.rename(old, ask.new)
  end
  places.commit(old, ask.new, '', ask.serial)
end

function places.answer_to(old, new, source, serial, phase)
  if phase == MOVE_CANCEL then
    places.lift(old, source, serial)
    return MOVE_DONE
  end
  if phase == MOVE_ASK and places.arrives(old) then return ID_BUSY end
  local own = places.ask_of(old)
  if own and own.phase == MOVE_ASK and phase == MOVE_ASK then
    if serial >= own.serial then return ID_BUSY end
    places.cancel(old, own, 'failed') -- of two presses the earlier one
    places.save_ask(old, own)
  end
  if phase == MOVE_COMMIT then
    places.commit(old, new, source, serial)
    return MOVE_DONE
  end
  local told, undecided = places.told(old)
  if told then return undecided and ID_BUSY or ID_SPENT end
  local known = places.known_of(old)
  if known == ID_FREE or known == ID_PLACE then failures.rename(old, new) end
  places.hold_id(old, new, source, serial, known)
  return known
end

OPERATIONS[9] = function(old, new, absent, nonce) -- move
  local ask = places.ask_of(old)
  if ask and ask.nonce == nonce then
    places.look(ask, old)
    places.save_ask(old, ask)
    return ask.outcome ~= '' and places.outcome_of(ask.outcome) or places.pending()
  end
  if ask and not ask.done then return places.outcome_of(ask.phase == MOVE_CANCEL and 'failed' or 'gone') end
  if state.answered_ms and state.data_centers <= 1 then
    local moved = places.move(old, new, absent)
    failures.use(new)
    return moved
  end
  local told, undecided = places.told(old)
  if told then return places.outcome_of(undecided and 'failed' or 'gone') end
  local full = state.places > 0 and (not ask and call('HLEN', k.place_asks) >= MOVE_ASKED_MAX or call('HLEN', k.barred) >= places.most)
  if full or places.arrives(old) or not connected() then return places.outcome_of('failed') end
  local here = places.known_of(old)
  if here == ID_SPENT and not call('ZSCORE', k.elsewhere, old) then return gone() end
  local serial = now * 1000 + nonce % 1000 -- two presses at one moment differ
  places.save_ask(old, {new = new, serial = serial, nonce = nonce, absent = absent, here = here, since_ms = now, phase = MOVE_ASK, outcome = '', done = false})
  call('HSET', k.place_olds, new, old)
  places.hold_id(old, new, '', serial, here)
  return places.pending()
end

-- {asks, said}, flat; nil while there is nothing to say, and never was.
function places.report()
  if state.places == 0 then return nil end
  for _, id in ipairs(call('ZRANGEBYSCORE', k.barred_until, '-inf', now)) do call('HDEL', k.barred, id) end
  call('ZREMRANGEBYSCORE', k.barred_until, '-inf', now)
  places.thin()
  for _, field in ipairs(call('ZRANGEBYSCORE', k.place_seen_until, '-inf', now)) do call('HDEL', k.place_seen, field) end
  call('ZREMRANGEBYSCORE', k.place_seen_until, '-inf', now)
  local asks, rows = {}, call('HGETALL', k.place_asks)
  for at = 1, #rows, 2 do
    local old, ask = rows[at], cmsgpack.unpack(rows[at + 1])
    local outcome = ask.outcome
    places.look(ask, old)
    if ask.done and now - ask.since_ms >= 2 * MOVE_PENDING_MS then
      call('HDEL', k.place_asks, old)
      call('HDEL', k.place_olds, ask.new)
    elseif ask.outcome ~= outcome then
      places.save_ask(old, ask)
    end
    -- all of them: whoever learns that a move is over learns what was asked before too
    if not ask.done then
      for _, part in ipairs({old, ask.new, ask.serial, ask.phase}) do asks[#asks + 1] = part end
    end
  end
  local raw, tell = call('GET', k.place_said), call('GET', k.place_tell)
  tell = tell and cmsgpack.unpack(tell)
  return {asks, raw and cmsgpack.unpack(raw) or {}, tell and tell[1] or 0, tell and places.moved(tell[2]) or {}}
end

-- The newest, flat.
function places.moved(learners)
  local named, found, count = {}, {}, 0
  for _, name in ipairs(learners) do named[name] = true end
  for _, old in ipairs(call('ZREVRANGE', k.barred_until, 0, -1)) do
    local bar = places.bar_of(old)
    if bar and (bar[6] or named[bar[1]]) and count < MOVE_ASKED_MAX then
      count = count + 1
      for _, part in ipairs({old, bar[3], bar[1], bar[2]}) do found[#found + 1] = part end
    end
  end
  return found
end

function places.hear(down)
  if down.tell > 0 then call('SET', k.place_tell, cmsgpack.pack({down.tell, down.learners})) else call('UNLINK', k.place_tell) end
  for _, row in ipairs(down.moved) do
    local old, new, source, serial = id_of(row[1]), id_of(row[2]), unpack(row, 3)
    local bar, own = places.bar_of(old), places.ask_of(old)
    if not (bar and bar[6]) and not (own and own.serial == serial) then
      if own and own.phase == MOVE_ASK then
        places.cancel(old, own, 'failed')
        places.save_ask(old, own)
      end
      places.commit(old, new, source, serial)
    end
  end
  local said = {}
  for _, row in ipairs(down.asks) do
    local old, new, source, serial, phase = id_of(row[1]), id_of(row[2]), unpack(row, 3)
    local field = old .. source
    local raw = call('HGET', k.place_seen, field)
    local known = raw and cmsgpack.unpack(raw) or {0, 0, 0}
    if serial > known[1] or (serial == known[1] and phase > known[2]) then
      known = {serial, phase, places.answer_to(old, new, source, serial, phase)}
      call('HSET', k.place_seen, field, cmsgpack.pack(known))
    end
    call('ZADD', k.place_seen_until, now + MOVE_SEEN_MS, field)
    local found
    if phase ~= MOVE_ASK then -- also where a source that lost its state cancels what it had committed
      found = MOVE_DONE
    elseif known[1] == serial and known[2] == phase then
      found = known[3]
    end
    if found then
      for _, part in ipairs({old, source, serial, phase, found}) do said[#said + 1] = part end
    end
    state.places = 1
  end
  local surplus = call('ZCARD', k.place_seen_until) - #down.asks - MOVE_SEEN_MAX
  if surplus > 0 then
    for _, field in ipairs(call('ZRANGE', k.place_seen_until, 0, surplus - 1)) do call('HDEL', k.place_seen, field) end
    call('ZREMRANGEBYRANK', k.place_seen_until, 0, surplus - 1)
  end
  if #said > 0 then call('SET', k.place_said, cmsgpack.pack(said)) else call('UNLINK', k.place_said) end
  for _, row in ipairs(down.said) do
    local old, serial, phase, highest = id_of(row[1]), unpack(row, 2)
    local ask = places.ask_of(old)
    if ask and ask.serial == serial and ask.phase == phase then
      if phase == MOVE_ASK then
        ask.doubled = ask.here == ID_SESSION and highest >= ID_SPENT -- another data center had one as well, or one is on its way
        places.decide(old, ask, max(highest, ask.here))
      else
        ask.done = true
      end
      places.save_ask(old, ask)
    end
  end
  dirty = true
end
