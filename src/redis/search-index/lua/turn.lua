--@include header.lua
-- From one generation of the index to the next; the records stay.
--
-- ARGV   2 what: BEGIN a new one; END, it is complete; CLEAR, records too; SWEPT, there is nothing left of older ones
--        3 of END and SWEPT: the generation that is meant  4 of END: how many recent ones are kept
-- result the generation, or 0 if another one has begun meanwhile
local function next_generation()
  generation = string.format('%.0f', tonumber(generation) + 1)
  call('HSET', KEYS[1], 'definition', ARGV[1], 'generation', generation)
  -- From this one on, older ones have names that are still to be removed.
  call('HSETNX', KEYS[1], 'oldest', tonumber(generation) - 1)
end

if ARGV[2] == 'BEGIN' then
  -- What somebody else has begun, and perhaps not finished, is carried on.
  if state[1] ~= ARGV[1] or not state[3] then
    next_generation()
    call('HSET', KEYS[1], 'rebuilding', 1)
  end
  return generation
end
if ARGV[2] == 'CLEAR' then
  next_generation()
  call('UNLINK', KEYS[2])
  call('HDEL', KEYS[1], 'rebuilding')
  return generation
end
if ARGV[2] == 'SWEPT' then
  if generation == ARGV[3] then call('HDEL', KEYS[1], 'oldest') else call('HSET', KEYS[1], 'oldest', ARGV[3]) end
  return generation
end
if generation ~= ARGV[3] then return 0 end
call('DEL', name('recent'))
local recent = tonumber(ARGV[4])
if recent > 0 then
  for _, id in ipairs(call('ZREVRANGE', name('order'), 0, recent - 1)) do call('RPUSH', name('recent'), id) end
end
call('HDEL', KEYS[1], 'rebuilding')
return generation
