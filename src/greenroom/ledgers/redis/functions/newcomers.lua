-- Whether a new visitor must show the ticket before being admitted: admission/ledger/newcomers.py in Lua.
--
-- Unconfirmed sessions are marked in `inside` (UNSHOWN) and are in `unshown`, id -> when it began; the counts of the minute are in the
-- state, by slot.

local newcomers = {}

do
  local SLOT_MS, PART = 2500, 4
  local RING = WINDOW_MS / SLOT_MS + 1

  local function clear()
    state.unshown_slots, dirty = {}, true
    for at = 1, RING do state.unshown_slots[at] = 0 end
  end

  -- Begins the slot of this moment, if it is a new one.
  local function turn()
    local slot = floor(now / SLOT_MS)
    if type(state.unshown_slots) ~= 'table' then clear() end
    for new = max(state.unshown_slot, slot - RING) + 1, slot do state.unshown_slots[new % RING + 1] = 0 end
    state.unshown_slot = max(state.unshown_slot, slot)
  end

  local function count(begun_ms, change)
    turn()
    local slot = floor(begun_ms / SLOT_MS)
    if state.unshown_slot - RING < slot and slot <= state.unshown_slot then
      local at = slot % RING + 1
      state.unshown_slots[at], dirty = state.unshown_slots[at] + change, true
    end
  end

  -- The settings have changed.
  function newcomers.configure()
    if not s.watches then
      call('UNLINK', k.unshown)
      clear()
    end
  end

  function newcomers.confirm()
    if not s.watches then return s.confirm end
    turn()
    local minute, parts = 0, PART * max(1, state.data_centers)
    for at = 1, RING do minute = minute + state.unshown_slots[at] end
    return minute >= max(1, floor(s.minute_limit / parts)) or call('ZCARD', k.unshown) >= max(1, floor(s.total_limit / parts))
  end

  local function takes_the_last()
    local free = state.permits + state.freed + (connected() and state.pool or 0)
    if s.total_limit > 1 and free <= state.waiting + 1 then return true end
    local most = s.minute_limit - 1 - state.waiting
    if s.minute_limit == 1 or state.minute_rows < most then return false end
    trim_minute()
    return state.minute_rows >= most
  end

  -- For a newcomer for whom there is a permit.
  function newcomers.must_show_ticket() return newcomers.confirm() or (s.watches and takes_the_last()) end

  function newcomers.admit()
    if s.watches then count(now, 1) end
  end

  -- The visitor of a session that has just begun was seen for the first time.
  function newcomers.see(id, begun_ms)
    write_session(id, begun_ms, 0)
    if call('ZREM', k.unshown, id) == 1 then count(begun_ms, -1) end
  end
end
