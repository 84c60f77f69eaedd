-- All decisions except token buckets of one rule that are charged without waiting, which consume.lua handles itself.
local CHARGE, PEEK, REFUND, LEASE, SETTLE, RESET, BACKDATE = 1, 2, 3, 4, 5, 6, 8
local DENIED, GRANTED = 0, 1
local never, max = math.huge, math.max
local notABucket = 'holds something that is not a bucket'

-- Used by logs, and defined by values.lua.
local LONG, smallLogBytes, longLogs = 32, 12, nil

--@include bands.lua
--@include values.lua

-- Messages of failed operations, in order.
local problems = {}

-- The overrides that apply; and by number of the decision and of the item, the key and the bands that replace those of the rule.
local applied, replacements
if found then
  --@make applied overrides.lua
end

--@include operations.lua

return {
  chargeRun = chargeRun,
  decide = decide,
  finish = writeChanged,

  extra = function()
    problems[#problems + 1] = applied
    return problems
  end,
}
