-- The leader lease: which process leads, the reports submitted to it, its saved state, and its answers, all on one shard.
--
-- One process at a time is the leader, for a term. A term is a number that only grows and the name of its holder; every step of a leader
-- names both, and is refused once another term has begun. So a leader that was paused or cut off can neither write nor answer afterwards.
-- State is saved in the same step as the answers that rest on it: there is no answer that the next leader does not know of.
--
-- `life` names this life of the server: the id of its history, which Redis chooses again when it starts and when a replica takes
-- over, because either may have forgotten the last writes. Every term ends with the life in which it began.

local ANSWERS_KEPT = 4      -- answers waiting for one data center; counters are absolute, so the newest would do
local ANSWERS_KEPT_MS = 10000
local ARGUMENTS_AT_ONCE = 4000 -- what Lua can put on its stack
local NOT_LEADER = {err = 'NOTLEADER another term has begun'}

local life

local function moment()
  local time = redis.call('TIME')
  life = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function leads(lease, holder, term)
  local held = redis.call('HMGET', lease, 'holder', 'term', 'life')
  return held[1] == holder and held[2] == term and held[3] == life
end

local function acquire(lease, holder, lasts_ms, now)
  local held = redis.call('HMGET', lease, 'until', 'life')
  if held[1] and held[2] == life and tonumber(held[1]) > now then return 0 end
  local term = redis.call('HINCRBY', lease, 'term', 1)
  redis.call('HSET', lease, 'holder', holder, 'life', life, 'until', now + lasts_ms)
  return term
end

-- KEYS lease reports signal; ARGV data center, report ('' = just look), candidate ('' = none), how long a term lasts unless it is renewed.
-- Answers {term that has just begun for the candidate or 0, now, holder or ''}. A newer report takes the place of an older one.
local function submit(keys, args)
  local now = moment()
  if args[2] ~= '' then
    redis.call('HSET', keys[2], args[1], args[2])
    if redis.call('LLEN', keys[3]) == 0 then redis.call('RPUSH', keys[3], '1') end
  end
  local term = 0
  if args[3] ~= '' then term = acquire(keys[1], args[3], tonumber(args[4]), now) end
  return {term, now, redis.call('HGET', keys[1], 'holder') or ''}
end

-- KEYS lease saved; ARGV holder, term. Answers {now, life, field, row, field, row, ...}.
local function load(keys, args)
  local now = moment()
  if not leads(keys[1], args[1], args[2]) then return NOT_LEADER end
  local all = redis.call('HGETALL', keys[2])
  local answer = {now, life}
  for at = 1, #all do answer[at + 2] = all[at] end
  return answer
end

-- KEYS lease reports signal; ARGV holder, term. Answers {data center, report, ...} and takes them away.
local function collect(keys, args)
  moment()
  if not leads(keys[1], args[1], args[2]) then return NOT_LEADER end
  local reports = redis.call('HGETALL', keys[2])
  redis.call('DEL', keys[2], keys[3])
  return reports
end

-- KEYS lease saved [answers of a data center ...]; ARGV holder, term, how long it lasts from now, count of numbers that follow for
-- fields and rows, field, row, ..., count of fields to forget, field, ..., then one answer for each key.
local function commit(keys, args)
  local now = moment()
  if not leads(keys[1], args[1], args[2]) then return NOT_LEADER end
  redis.call('HSET', keys[1], 'until', now + tonumber(args[3]))
  local at, last = 5, 4 + tonumber(args[4])
  while at <= last do
    local stop = math.min(last, at + ARGUMENTS_AT_ONCE - 1)
    redis.call('HSET', keys[2], unpack(args, at, stop))
    at = stop + 1
  end
  local forgotten = tonumber(args[last + 1])
  at, last = last + 2, last + 1 + forgotten
  while at <= last do
    local stop = math.min(last, at + ARGUMENTS_AT_ONCE - 1)
    redis.call('HDEL', keys[2], unpack(args, at, stop))
    at = stop + 1
  end
  for index = 3, #keys do
    redis.call('RPUSH', keys[index], args[last + index - 2])
    redis.call('LTRIM', keys[index], -ANSWERS_KEPT, -1)
    redis.call('PEXPIRE', keys[index], ANSWERS_KEPT_MS)
  end
  return now
end

-- KEYS lease; ARGV holder, term. The next leader need not wait for the end of the term.
local function release(keys, args)
  moment()
  if leads(keys[1], args[1], args[2]) then redis.call('HSET', keys[1], 'until', 0) end
  return 0
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- KEYS lock [present]; ARGV holder, how long. 1 when it is this process that syncs its data center; 0: another one does. 0 ms frees the
-- lock. Every process that asks is noted as present for as long.
local function lock(keys, args)
  if keys[2] then redis.call('ZADD', keys[2], now_ms() + args[2], args[1]) end
  local holder = redis.call('GET', keys[1])
  if holder and holder ~= args[1] then return 0 end
  if args[2] == '0' then return redis.call('DEL', keys[1]) end
  redis.call('SET', keys[1], args[1], 'PX', args[2])
  return 1
end

redis.register_function(LIBRARY .. '_submit', submit)
redis.register_function(LIBRARY .. '_load', load)
redis.register_function(LIBRARY .. '_collect', collect)
redis.register_function(LIBRARY .. '_commit', commit)
redis.register_function(LIBRARY .. '_release', release)
-- KEYS lock present; ARGV holder. This process goes: frees its lock. How many are left.
local function leave(keys, args)
  redis.call('ZREM', keys[2], args[1])
  redis.call('ZREMRANGEBYSCORE', keys[2], '-inf', now_ms())
  if redis.call('GET', keys[1]) == args[1] then redis.call('DEL', keys[1]) end
  return redis.call('ZCARD', keys[2])
end

redis.register_function(LIBRARY .. '_lock', lock)
redis.register_function(LIBRARY .. '_leave', leave)
