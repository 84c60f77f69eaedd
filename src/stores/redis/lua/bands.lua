-- Bands by number, created on first use. Bands of the same algorithm share its functions.
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

  -- Returns the number of the added band.
  add = function(band)
    count = count + 1
    known[count] = band
    return count
  end,

  at = function(number)
    local band, offset = known[number], 4 * number
    if not band then
      band = new(numbers[offset + 1], numbers[offset + 2], numbers[offset + 3], numbers[offset + 4])
      known[number] = band
    end
    return band
  end,
}
