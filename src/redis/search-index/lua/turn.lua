--@include header.lua
-- Changes the generation of the index.
--
-- ARGV   2 operation: BEGIN starts a generation, END completes it, CLEAR also removes all records, SWEPT records that the
--        keys of older generations are removed
--        3 END and SWEPT: the generation  4 END: length of the recent list
-- result the generation, or 0 if another generation has started in the meantime
local function next_generation()
  generation = string.format('%.0f', tonumber(generation) + 1)
  call('HSET', KEYS[1], 'definition', ARGV[1], 'generation', generation)
  -- The oldest generation whose keys are still to be removed.
  call('HSETNX', KEYS[1], 'oldest', tonumber(generation) - 1)
end

if ARGV[2] == 'BEGIN' then
  -- Continues a rebuild that another process has started, and may not have finished.
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
