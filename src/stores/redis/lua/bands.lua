-- Bands by number, created on first use. Bands of the same algorithm share its functions.
--@include ../../../algorithms/exact.lua
--@include ../../../algorithms/answer.lua
--@include ../../../algorithms/level.lua
--@include ../../../algorithms/window.lua
local algorithms, bands = {}, {}

-- The low byte of a tag is the number of the algorithm and flags; the others identify the band within its key. The window of a
-- calendar band is a list of the ticks at which its periods start. If the rule keeps the used fraction when it changes, the
-- capacity is a list: that of the band, and the capacity, tokens and window of its definition.
local function newBand(tag, capacity, tokens, window)
  local kind, isCalendar = tag % 8, type(window) == 'table'
  local definition, suffix, definitionTerms
  if type(capacity) == 'table' then
    definitionTerms = capacity
    definition = { capacity = capacity[2], tokens = capacity[3], window = capacity[4] }
    suffix = pack(definitionFormat, capacity[2], capacity[3], capacity[4], capacity[2])
    capacity = capacity[1]
  end
  local algorithm = algorithms[isCalendar and 'calendar' or kind]
  if not algorithm then
    --@twins kind algorithm
    --@twin ../../../algorithms/token-bucket.lua
    --@twin ../../../algorithms/interval-bucket.lua
    --@twin ../../../algorithms/leaky-bucket.lua
    --@twin ../../../algorithms/fixed-window.lua
    --@twin log-pages.lua ../../../algorithms/sliding-window-log.lua
    --@twin ../../../algorithms/sliding-window-counter.lua
    --@twin hold-records.lua ../../../algorithms/concurrency.lua
    if isCalendar then
      --@make algorithm ../../../algorithms/calendar-window.lua ../../../algorithms/fixed-window.lua
    end
    algorithms[isCalendar and 'calendar' or kind] = algorithm
  end
  return {
    tag = tag,
    kind = kind,
    id = floor(tag / 256),
    capacity = capacity,
    definition = definition,
    definitionTerms = definitionTerms,
    suffix = suffix,
    tokens = tokens,
    window = window,
    isCalendar = isCalendar,
    algorithm = algorithm,
    format = algorithm.format,
  }
end

local function bandAt(number)
  local band, terms = bands[number], 4 * number
  if not band then
    band = newBand(numbers[terms + 1], numbers[terms + 2], numbers[terms + 3], numbers[terms + 4])
    bands[number] = band
  end
  return band
end
