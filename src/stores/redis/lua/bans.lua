-- Bans of keys after repeated rejections. Twin of core/bans/ban.ts.
--
-- The last item of the numbers is a list, per charge whose rule has a ban: the number of its decision, of its item there, of the
-- key of its ban, and after, within, for, factor, max.
-- The value of the key is a list of doubles: the end of the last ban, the number of bans, and the ticks of the rejections.
local fields = 8

local byDecision = {}
for at = 1, #banTerms, fields do
  local number, item, key, after, within, duration, factor, longest = unpack(banTerms, at, at + fields - 1)
  byDecision[number] = byDecision[number] or {}
  byDecision[number][item] =
    { name = KEYS[key], after = after, within = within, duration = duration, factor = factor, longest = longest }
end

-- States by key, because several decisions of a batch may concern the same key.
local states = {}
local function stateOf(ban)
  local state = states[ban.name]
  if state then return state end
  state = { till = 0, level = 0 }
  local value = redis.pcall('GET', ban.name)
  if type(value) == 'string' and #value >= 16 and #value % 8 == 0 then
    state.till, state.level = unpackNumbers('<dd', value)
    for at = 17, #value, 8 do state[#state + 1] = unpackNumbers('<d', value, at) end
  end
  states[ban.name] = state
  return state
end

local function untilOf(ban)
  local till = stateOf(ban).till
  if till <= now then return 0 end
  return math.min(till, now + ban.longest)
end

local function write(ban, state)
  local value = pack('<dd', state.till, state.level)
  for _, tick in ipairs(state) do value = value .. pack('<d', tick) end
  local expiresAt = max(state.till == 0 and 0 or state.till + ban.longest, (state[#state] or 0) + ban.within)
  setValue(ban.name, value, expiryMs(expiresAt))
end

return {
  ofDecision = function(number) return byDecision[number] end,

  untilOf = untilOf,

  -- Counts a rejection. Returns the end of the ban that it starts, or 0.
  reject = function(ban)
    local before = stateOf(ban)
    local state = { till = before.till, level = before.level }
    for _, tick in ipairs(before) do
      if tick > now - ban.within then state[#state + 1] = tick end
    end
    state[#state + 1] = now
    if #state >= ban.after then
      local level, ticks = now >= before.till + ban.longest and 0 or before.level, ban.duration
      for _ = 1, level do
        if ticks < ban.longest then ticks = ticks * ban.factor end
      end
      state = { till = now + floor(math.min(ticks, ban.longest)), level = level + 1 }
    end
    states[ban.name] = state
    write(ban, state)
    return untilOf(ban)
  end,

  reset = function(ban)
    states[ban.name] = { till = 0, level = 0 }
    call('DEL', ban.name)
  end,
}
