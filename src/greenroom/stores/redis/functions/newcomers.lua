-- Whether new visitors must show their ticket before they are let in: admission/ledger/newcomers.py once more.
--
-- Those that were let in at once and have not been seen since are marked in `inside` (UNSHOWN); the counts are in the state, by slot.

local newcomers = {}

do
  local SLOT_MS, PATIENCE_MS, QUIET_MS, SOON_MS, TRUST_MS = 2500, 5000, 20000, 10000, 600000
  local MOST_PERCENT, FEW_PERCENT, PART, FEWEST = 60, 40, 4, 20
  local PATIENT, QUIET, SLOTS = PATIENCE_MS / SLOT_MS, QUIET_MS / SLOT_MS, WINDOW_MS / SLOT_MS
  local RING = SLOTS + PATIENT + 1

  local function clear()
    local issued, shown = {}, {}
    for at = 1, RING do issued[at], shown[at] = 0, 0 end
    state.issued, state.shown, dirty = issued, shown, true
  end

  -- Slots begin.
  local function turn()
    local slot = floor(now / SLOT_MS)
    if type(state.issued) ~= 'table' then clear() end
    for new = max(state.slot, slot - RING) + 1, slot do
      state.issued[new % RING + 1], state.shown[new % RING + 1] = 0, 0
    end
    state.slot = max(state.slot, slot)
  end

  local function switch(before)
    state.confirms = 1 - state.confirms
    state.switched_ms, state.before = now, before
    clear()
  end

  local function show(issued_ms)
    turn()
    local slot = floor(issued_ms / SLOT_MS)
    local at = slot % RING + 1
    if state.slot - RING < slot and slot <= state.slot and state.shown[at] < state.issued[at] then
      state.shown[at], dirty = state.shown[at] + 1, true
    end
  end

  function newcomers.confirm() return s.confirm or (s.watches and state.confirms == 1) end

  -- The settings have changed: `before` are those that were in force.
  function newcomers.configure(before)
    if not s.watches then
      state.confirms = 0
    elseif not before.watches then
      state.confirms, state.trusted_ms = 0, 0
      clear()
    end
  end

  function newcomers.hold()
    if not s.watches then return end
    turn()
    local at = state.slot % RING + 1
    state.issued[at], dirty = state.issued[at] + 1, true
  end

  -- The visitor of a session that has just begun was seen for the first time.
  function newcomers.see(id, begun_ms)
    write_session(id, begun_ms, 0)
    if s.watches and begun_ms > now - WINDOW_MS - PATIENCE_MS then show(begun_ms) end
  end

  function newcomers.join(issued_ms)
    if s.watches and now - issued_ms <= SOON_MS then show(issued_ms) end
  end

  -- Time has passed.
  function newcomers.look()
    if not s.watches then return end
    turn()
    call('ZREMRANGEBYSCORE', k.unshown, '-inf', now - WINDOW_MS - PATIENCE_MS) -- of an older greenroom; to be removed after one release
    local issued, shown, busiest, lately = 0, 0, 0, 0
    for slot = state.slot - RING + 1, state.slot - PATIENT - 1 do
      local at = slot % RING + 1
      issued, shown, busiest = issued + state.issued[at], shown + state.shown[at], max(busiest, state.issued[at])
      if slot >= state.slot - PATIENT - QUIET then lately = lately + state.issued[at] - state.shown[at] end
    end
    local absent = issued - shown
    local most = min(floor(s.total_limit * WINDOW_MS / s.life_ms), s.minute_limit)
    local least = max(FEWEST, floor(most / (PART * max(1, state.data_centers))))
    if state.confirms == 0 then
      if absent >= least and 100 * absent >= MOST_PERCENT * issued and now >= state.trusted_ms then switch(busiest) end
      return
    end
    local lasted = now - state.switched_ms >= max(s.life_ms, WINDOW_MS + PATIENCE_MS)
    if issued >= FEWEST and 100 * absent <= FEW_PERCENT * issued then
      if 2 * busiest >= state.before then
        state.trusted_ms = now + TRUST_MS
        switch(0)
      elseif lasted then
        switch(0)
      end
    elseif lasted and 2 * SLOTS * lately < QUIET * least then
      switch(0)
    end
  end
end
