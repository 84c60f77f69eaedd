import type { Buckets } from '../core/algorithm.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { BegunBuckets } from './begun-buckets.js'
import { type CellAlgorithm, Cells } from './cells.js'
import { fixedWindow } from './fixed-window.js'
import { intervalBucket } from './interval-bucket.js'
import { leakyBucket } from './leaky-bucket.js'
import { Rows } from './rows.js'
import { slidingWindowCounter } from './sliding-window-counter.js'
import { Logs } from './sliding-window-log.js'
import { tokenBucket } from './token-bucket.js'

interface Entry {
  /** The place of its twin among those that `stores/bands.lua` names; written with every bucket there. */
  readonly kind: number
  /** Undefined: it keeps a log. */
  readonly cells?: CellAlgorithm
}

const algorithms: Readonly<Record<AlgorithmName, Entry>> = {
  TOKEN_BUCKET: { kind: 1, cells: tokenBucket },
  LEAKY_BUCKET: { kind: 3, cells: leakyBucket },
  FIXED_WINDOW: { kind: 4, cells: fixedWindow },
  SLIDING_WINDOW_LOG: { kind: 5 },
  SLIDING_WINDOW_COUNTER: { kind: 6, cells: slidingWindowCounter },
}

const refilledInIntervals: Entry = { kind: 2, cells: intervalBucket }

const entryOf = (band: Band): Entry => (band.refill === 'INTERVAL' ? refilledInIntervals : algorithms[band.algorithm])

/** Room for the buckets of a band, and the algorithm that counts in them. Bands of one rule share `rows`. */
export function createBuckets(band: Band, rows: Rows): Buckets {
  const { cells } = entryOf(band)
  const create = (among: Rows): Buckets => (cells === undefined ? new Logs() : new Cells(cells, among))
  return band.spent === undefined ? create(rows) : new BegunBuckets(create(rows), create(new Rows()), band, band.spent)
}

/** What the twin in Lua is known by. */
export const kindOf = (band: Band): number => entryOf(band).kind

/** What a band is that has this kind. */
export function bandKind(kind: number): Pick<Band, 'algorithm' | 'refill'> {
  if (kind === refilledInIntervals.kind) return { algorithm: 'TOKEN_BUCKET', refill: 'INTERVAL' }
  const [name] = Object.entries(algorithms).find(([, entry]) => entry.kind === kind) ?? []
  return { algorithm: name as AlgorithmName, refill: 'STEADY' }
}

/** The algorithm as pure functions of a few numbers; undefined if it keeps a log. */
export const cellsOf = (band: Band): CellAlgorithm | undefined => entryOf(band).cells

export type { CellAlgorithm } from './cells.js'
export { Rows }
