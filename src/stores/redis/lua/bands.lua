-- Bands by number, made when they are asked for; those of the same algorithm share its functions.
local algorithms, known, count = {}, {}, bandCount

local function new(kind, capacity, tokens, window)
  local algorithm = algorithms[kind]
  if not algorithm then
    --@twins kind algorithm
    --@twin ../../../algorithms/exact.lua ../../../algorithms/answer.lua ../../../algorithms/level.lua ../../../algorithms/token-bucket.lua
    --@twin ../../../algorithms/answer.lua ../../../algorithms/interval-bucket.lua
    --@twin ../../../algorithms/exact.lua ../../../algorithms/level.lua ../../../algorithms/leaky-bucket.lua
    --@twin ../../../algorithms/answer.lua ../../../algorithms/window.lua ../../../algorithms/fixed-window.lua
    --@twin ../../../algorithms/answer.lua log-pages.lua ../../../algorithms/sliding-window-log.lua
    --@twin ../../../algorithms/exact.lua ../../../algorithms/answer.lua ../../../algorithms/window.lua ../../../algorithms/sliding-window-counter.lua
    algorithms[kind] = algorithm
  end
  return {
    kind = kind,
    capacity = capacity,
    tokens = tokens,
    window = window,
    algorithm = algorithm,
    step = algorithm.step,
    endsAtReset = algorithm.endsAtReset,
  }
end

return {
  new = new,

  -- The number of one more.
  add = function(band)
    count = count + 1
    known[count] = band
    return count
  end,

  at = function(number)
    local band, place = known[number], 4 * number
    if not band then
      band = new(numbers[place + 1], numbers[place + 2], numbers[place + 3], numbers[place + 4])
      known[number] = band
    end
    return band
  end,
}
