import type { BucketGroup, Demand } from '../core/bucket-store.js'
import { type AlgorithmName, algorithmNames, type Band, maxFillTicks, maxLogCapacity } from '../core/rule.js'

/** A repeatable source of numbers in [0, 1). */
export type Random = () => number

/** mulberry32: small, quick and the same everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
/** Whole numbers from 1 to `most`, small ones as likely as large ones. */
const spread = (random: Random, most: number): number => Math.max(1, Math.floor(most ** random()))

const ms = 1_000
const day = 24 * 3600 * 1000 * ms
const windows = [1, 7, 10, 500, 1000, 1001, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000, 366 * 86_400_000]

export interface BandChoice {
  readonly algorithms?: readonly AlgorithmName[]
  /** Capacities up to this; small ones make refusals frequent. */
  readonly maxCapacity?: number
}

/** Any legal band: odd and even rates, windows from a millisecond to a year. */
export function randomBand(random: Random, label: string, choice: BandChoice = {}): Band {
  const algorithm = pick(random, choice.algorithms ?? algorithmNames)
  const most = Math.min(choice.maxCapacity ?? 1e9, algorithm === 'SLIDING_WINDOW_LOG' ? maxLogCapacity : 1e9)
  const capacity = spread(random, most)
  const windowTicks = random() < 0.7 ? pick(random, windows) * ms : Math.max(ms, spread(random, 366 * day))
  const refillTokens = random() < 0.5 ? capacity : spread(random, most)
  const refill = algorithm === 'TOKEN_BUCKET' && random() < 0.25 ? 'INTERVAL' : 'STEADY'
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

/** The same band after an edit of its capacity, and perhaps of its refill. */
export function editedBand(random: Random, band: Band): Band {
  const capacity = Math.max(1, Math.floor(band.capacity * (0.3 + 2 * random())))
  const most = band.algorithm === 'SLIDING_WINDOW_LOG' ? maxLogCapacity : 1e9
  return { ...band, capacity: Math.min(most, capacity), refillTokens: Math.min(most, capacity) }
}

/** How far time moves between two events: often not at all, sometimes by months, seldom backwards. */
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

/** A claim on random rules for random identities; permits from 1 to a little more than capacity. */
export function randomDemands(random: Random, groups: readonly BucketGroup[], keys: readonly string[]): Demand[] {
  const chosen = groups.filter(() => random() < 0.7)
  return (chosen.length > 0 ? chosen : groups.slice(0, 1)).map((group) => {
    const least = Math.min(...group.bands.map((band) => band.capacity))
    const waits = random() < 0.3
    return {
      group,
      key: pick(random, keys),
      permits: random() < 0.03 ? least + 1 : spread(random, least),
      patience: waits ? Math.floor(random() * 2 * Math.max(...group.bands.map((band) => band.windowTicks))) : 0,
      policy: waits ? 'WAIT_FOR_REFILL' : 'REJECT',
      shadow: random() < 0.15,
    }
  })
}
