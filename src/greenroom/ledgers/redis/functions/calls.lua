-- Visitors who want to be called: one sealed row for each place, and counts of requests.

-- KEYS rows; ARGV row, sealed, what it replaces ('': no row). 0: the row is another one.
local function put(keys, args)
  if (redis.call('HGET', keys[1], args[1]) or '') ~= args[3] then return 0 end
  redis.call('HSET', keys[1], args[1], args[2])
  return 1
end

-- KEYS rows; ARGV old row, new row. Unless the new row exists.
local function move(keys, args)
  local sealed = redis.call('HGET', keys[1], args[1])
  if not sealed then return 0 end
  redis.call('HDEL', keys[1], args[1])
  if not redis.call('HGET', keys[1], args[2]) then redis.call('HSET', keys[1], args[2], sealed) end
  return 1
end

-- KEYS count; ARGV how long it lasts, by how much it grows. Returns the count; its time begins with the first step, and again with a larger one.
local function take(keys, args)
  local step = tonumber(args[2])
  local count = redis.call('HINCRBY', keys[1], 'n', step)
  if count == step or step > 1 then redis.call('PEXPIRE', keys[1], args[1]) end
  return count
end

redis.register_function(LIBRARY .. '_put', put)
redis.register_function(LIBRARY .. '_move', move)
redis.register_function(LIBRARY .. '_take', take)
