-- Turns that are kept when the origin fails (admission/ledger/failures.py): `failures` is id -> second of the first failure * 2^14 + seconds
-- from it to the newest one, or to the end of the kept turn, * 4 + state.
local failures = {}
local places = {} -- of places.lua

do
  function failures.of(id)
    local row = state.failure_rows > 0 and tonumber(call('ZSCORE', k.failures, id) or 0) or 0
    return floor(row / 16384), floor(row % 16384 / 4), row % 4
  end

  function failures.write(id, since_s, offset_s, what)
    state.failure_rows = state.failure_rows + call('ZADD', k.failures, string.format('%.0f', since_s * 16384 + offset_s * 4 + what), id)
    dirty = true
  end

  function failures.drop(id)
    if state.failure_rows > 0 then state.failure_rows, dirty = state.failure_rows - call('ZREM', k.failures, id), true end
  end

  function failures.keeps(id, ended_ms)
    local since_s, offset_s, what = failures.of(id)
    return what == TURN_FAILING and floor(ended_ms / 1000) - since_s - offset_s <= TURN_KEPT_MS / 1000
  end

  function failures.finish(id, ended_ms)
    if failures.keeps(id, ended_ms) then
      local since_s = failures.of(id)
      failures.write(id, since_s, floor(ended_ms / 1000) - since_s + TURN_KEPT_MS / 1000, TURN_KEPT)
    else
      failures.drop(id)
    end
  end

  function failures.is_kept(id)
    local since_s, offset_s, what = failures.of(id)
    return what == TURN_KEPT and floor(now / 1000) < since_s + offset_s
  end

  function failures.is_taken(id)
    local since_s, offset_s, what = failures.of(id)
    return what == TURN_USED and offset_s > 0 and now < since_s * 1000 + FAILURE_WINDOW_MS
  end

  function failures.take(id)
    if not failures.is_kept(id) then return false end
    local since_s = failures.of(id)
    failures.write(id, since_s, max(1, floor(now / 1000) - since_s), TURN_USED)
    return true
  end

  -- Uses a kept turn: the visitor now waits for a permit by the old key.
  function failures.use(id)
    local taken = failures.take(id)
    if taken then failures.leave(id, '') end
    return taken
  end

  -- For how many ms the session clock has been stopped since the previous failure; nil: this failure does not count.
  function failures.fail(id)
    local second = floor(now / 1000)
    state.failed_s, dirty = second, true
    local since_s, offset_s, what = failures.of(id)
    local passed_s = second - since_s
    if passed_s >= FAILURE_WINDOW_MS / 1000 then
      failures.write(id, second, 0, TURN_FAILING)
      return 0
    end
    if what == TURN_USED and offset_s == 0 then return nil end -- or the turn would look taken
    if what == TURN_KEPT or passed_s > FAILURE_STILL_MS / 1000 then return nil end
    failures.write(id, since_s, passed_s, what)
    local step_ms = (passed_s - offset_s) * 1000
    return step_ms <= FAILURE_GAP_MS and step_ms or 0
  end

  function failures.forget(limit)
    if state.failure_rows == 0 then return end
    local old = (floor((now - FAILURE_WINDOW_MS) / 1000) + 1) * 16384
    local count = min(limit, call('ZCOUNT', k.failures, '-inf', string.format('(%.0f', old)))
    if count > 0 then state.failure_rows = state.failure_rows - call('ZREMRANGEBYRANK', k.failures, 0, count - 1) end
  end
end
