import { algorithmTraits } from '../core/algorithm-traits.js'
import type { BucketGroup, Charge } from '../core/bucket-store.js'
import { type Calendar, calendarUnits, nominalTicks } from '../core/calendar/calendar.js'
import {
  type AlgorithmName,
  algorithmNames,
  type Band,
  maxConcurrency,
  maxFillTicks,
  maxLogCapacity,
} from '../core/rule.js'
import type { Random } from '../core/seeded-random.js'

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
/** A log-uniform integer from 1 to `max`. */
const logUniform = (random: Random, max: number): number => Math.max(1, Math.floor(max ** random()))

const ms = 1_000
const day = 24 * 3600 * 1000 * ms
const windows = [1, 7, 10, 500, 1000, 1001, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000, 366 * 86_400_000]

export interface BandChoice {
  readonly algorithms?: readonly AlgorithmName[]
  /** The maximum capacity. Small capacities make rejections frequent. */
  readonly maxCapacity?: number
  /** True for fixed windows that may be periods of a calendar. */
  readonly calendars?: boolean
}

function maxCapacityOf(algorithm: AlgorithmName): number {
  if (algorithm === 'SLIDING_WINDOW_LOG') return maxLogCapacity
  return algorithmTraits[algorithm].takesHolds ? maxConcurrency : 1e9
}

/** A random legal band, with a window from a millisecond to a year. */
export function randomBand(random: Random, label: string, choice: BandChoice = {}): Band {
  const algorithm = pick(random, choice.algorithms ?? algorithmNames)
  const max = Math.min(choice.maxCapacity ?? 1e9, maxCapacityOf(algorithm))
  const capacity = logUniform(random, max)
  const windowTicks = random() < 0.7 ? pick(random, windows) * ms : Math.max(ms, logUniform(random, 366 * day))
  const isRate = !algorithmTraits[algorithm].takesHolds
  const refillTokens = !isRate || random() < 0.5 ? capacity : logUniform(random, max)
  const refill = algorithm === 'TOKEN_BUCKET' && random() < 0.25 ? 'INTERVAL' : 'STEADY'
  if (choice.calendars && algorithm === 'FIXED_WINDOW' && random() < 0.6) {
    const calendar = randomCalendar(random)
    const windowTicks = nominalTicks(calendar.unit)
    return { label, algorithm, refill, capacity, refillTokens: capacity, windowTicks, calendar }
  }
  const fillTicks = Math.ceil(capacity / refillTokens) * windowTicks
  return {
    label,
    algorithm,
    refill,
    capacity,
    refillTokens: fillTicks < maxFillTicks ? refillTokens : capacity,
    windowTicks,
  }
}

function randomCalendar(random: Random): Calendar {
  const unit = pick(random, calendarUnits)
  const timeZone = pick(random, ['UTC', 'Asia/Seoul', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe'])
  const day = 1 + Math.floor(random() * (unit === 'WEEK' ? 7 : unit === 'DAY' ? 1 : 31))
  return { unit, timeZone, month: unit === 'YEAR' ? 1 + Math.floor(random() * 12) : 1, day }
}

/** The band with another capacity and refill. */
export function editedBand(random: Random, band: Band): Band {
  const capacity = Math.max(1, Math.floor(band.capacity * (0.3 + 2 * random())))
  const max = maxCapacityOf(band.algorithm)
  return { ...band, capacity: Math.min(max, capacity), refillTokens: Math.min(max, capacity) }
}

/** The band with another capacity, refill or window, so that every combination of equal and different numbers occurs. */
export function redefinedBand(random: Random, band: Band): Band {
  const factors = [0.25, 0.5, 1, 2, 3, 10, 0.3 + 2 * random()]
  const max = maxCapacityOf(band.algorithm)
  const capacity = Math.min(max, Math.max(random() < 0.05 ? 0 : 1, Math.floor(band.capacity * pick(random, factors))))
  const refillTokens = Math.max(
    1,
    random() < 0.7 ? capacity : Math.min(max, Math.ceil(capacity * pick(random, factors))),
  )
  const changesWindow = random() < 0.4
  const { calendar, ...others } = band
  const withCalendar =
    calendar === undefined ? {} : { calendar: changesWindow && random() < 0.5 ? randomCalendar(random) : calendar }
  const windowTicks =
    withCalendar.calendar !== undefined
      ? nominalTicks(withCalendar.calendar.unit)
      : changesWindow
        ? pick(random, windows) * ms
        : band.windowTicks
  const isLegal = Math.ceil(capacity / refillTokens) * windowTicks < maxFillTicks
  return {
    ...others,
    ...withCalendar,
    capacity,
    refillTokens: isLegal ? refillTokens : Math.max(1, capacity),
    windowTicks,
  }
}

/** Ticks between two events: often 0, sometimes months, rarely negative. */
export function randomPause(random: Random, band: Band): number {
  const kind = random()
  if (kind < 0.3) return 0
  if (kind < 0.4) return 1
  if (kind < 0.65) return Math.floor(random() * (band.windowTicks / band.refillTokens) * 2)
  if (kind < 0.9) return Math.floor(random() * band.windowTicks)
  if (kind < 0.95) return Math.floor(random() * 4 * band.windowTicks)
  if (kind < 0.97) return Math.floor(random() * 100 * day)
  return -Math.floor(random() * 1.5 * band.windowTicks)
}

/** Charges of random rules and keys, for 1 permit to slightly more than the capacity. */
export function randomCharges(random: Random, groups: readonly BucketGroup[], keys: readonly string[]): Charge[] {
  const chosen = groups.filter(() => random() < 0.7)
  const hold = { high: Math.floor(random() * 2 ** 32), low: Math.floor(random() * 2 ** 32) }
  return (chosen.length > 0 ? chosen : groups.slice(0, 1)).map((group) => {
    const minCapacity = Math.min(...group.bands.map((band) => band.capacity))
    const waits = random() < 0.3
    return {
      group,
      key: pick(random, keys),
      permits: random() < 0.03 ? minCapacity + 1 : logUniform(random, minCapacity),
      maxWaitTicks: waits ? Math.floor(random() * 2 * Math.max(...group.bands.map((band) => band.windowTicks))) : 0,
      policy: waits ? 'WAIT_FOR_REFILL' : 'REJECT',
      shadow: random() < 0.15,
      ...(group.takesHolds && { hold }),
    }
  })
}
