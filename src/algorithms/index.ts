import type { Buckets } from '../core/algorithm.js'
import { algorithmTraits } from '../core/algorithm-traits.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { type CellAlgorithm, Cells, Rows } from './cells.js'
import { HoldLists } from './concurrency.js'
import { calendarWindow, fixedWindow } from './fixed-window.js'
import { intervalBucket } from './interval-bucket.js'
import { leakyBucket } from './leaky-bucket.js'
import { type Scalable, ScaledBuckets } from './scale/scaled-buckets.js'
import { slidingWindowCounter } from './sliding-window-counter.js'
import { Logs } from './sliding-window-log.js'
import { StartingBuckets } from './starting-buckets.js'
import { tokenBucket } from './token-bucket.js'

interface Entry {
  /** The number of the Lua twin in `stores/redis/lua/bands.lua`, which is stored with every bucket in Redis. */
  readonly kind: number
  /** Undefined for algorithms whose state is a list, which have `create` instead. */
  readonly cells?: CellAlgorithm
  readonly create?: () => Buckets
}

const algorithms: Readonly<Record<AlgorithmName, Entry>> = {
  TOKEN_BUCKET: { kind: 1, cells: tokenBucket },
  LEAKY_BUCKET: { kind: 3, cells: leakyBucket },
  FIXED_WINDOW: { kind: 4, cells: fixedWindow },
  SLIDING_WINDOW_LOG: { kind: 5, create: () => new Logs() },
  SLIDING_WINDOW_COUNTER: { kind: 6, cells: slidingWindowCounter },
  CONCURRENCY: { kind: 7, create: () => new HoldLists() },
}

/** Same state as a fixed window, so the same number. */
const calendarEntry: Entry = { kind: 4, cells: calendarWindow }

const intervalRefill: Entry = { kind: 2, cells: intervalBucket }

function entryOf(band: Band): Entry {
  if (band.calendar !== undefined) return calendarEntry
  return band.refill === 'INTERVAL' ? intervalRefill : algorithms[band.algorithm]
}

/**
 * Creates the buckets of a band. All bands of a rule share `rows`. With a `definition`, the buckets keep their used fraction when
 * it changes.
 */
export function createBuckets(band: Band, rows: Rows, definition?: Band): Buckets {
  const { create } = entryOf(band)
  const algorithmOf = (other: Band): CellAlgorithm => entryOf(other).cells as CellAlgorithm
  const newBuckets = (table: Rows): Buckets => create?.() ?? new Cells(algorithmOf, band, table)
  const buckets =
    definition === undefined
      ? newBuckets(rows)
      : new ScaledBuckets(newBuckets(rows) as Scalable, newBuckets(new Rows()) as Scalable, definition)
  return band.spent === undefined ? buckets : new StartingBuckets(buckets, newBuckets(new Rows()), band)
}

/** The definition of a band of a group, if the group keeps the used fraction when it changes. */
export function definitionOf(band: Band, definitions: readonly Band[] | undefined): Band | undefined {
  const definition = definitions?.find(({ label }) => label === band.label)
  const keepsFraction = !algorithmTraits[band.algorithm].takesHolds && definition && kindOf(definition) === kindOf(band)
  return keepsFraction ? definition : undefined
}

/** The number of the Lua twin of the band's algorithm. */
export const kindOf = (band: Band): number => entryOf(band).kind

/** The inverse of `kindOf`. */
export function bandKind(kind: number): Pick<Band, 'algorithm' | 'refill'> {
  if (kind === intervalRefill.kind) return { algorithm: 'TOKEN_BUCKET', refill: 'INTERVAL' }
  const [name] = Object.entries(algorithms).find(([, entry]) => entry.kind === kind) ?? []
  return { algorithm: name as AlgorithmName, refill: 'STEADY' }
}

/** The algorithm of a band as pure functions of a few numbers, or undefined if its state is a list. */
export const cellsOf = (band: Band): CellAlgorithm | undefined => entryOf(band).cells

export type { CellAlgorithm } from './cells.js'
export { ReservedBuckets, type TakenPermits } from './reservations/reserved-buckets.js'
export { Rows }
