import type { Buckets } from '../core/algorithm.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { Cells } from './cells.js'
import { fixedWindow } from './fixed-window.js'
import { intervalBucket } from './interval-bucket.js'
import { leakyBucket } from './leaky-bucket.js'
import type { Rows } from './rows.js'
import { slidingWindowCounter } from './sliding-window-counter.js'
import { Logs } from './sliding-window-log.js'
import { tokenBucket } from './token-bucket.js'

const algorithms: Readonly<Record<AlgorithmName, (rows: Rows) => Buckets>> = {
  TOKEN_BUCKET: (rows) => new Cells(tokenBucket, rows),
  LEAKY_BUCKET: (rows) => new Cells(leakyBucket, rows),
  FIXED_WINDOW: (rows) => new Cells(fixedWindow, rows),
  SLIDING_WINDOW_LOG: () => new Logs(),
  SLIDING_WINDOW_COUNTER: (rows) => new Cells(slidingWindowCounter, rows),
}

/** Room for the buckets of a band, and the algorithm that counts in them. Bands of one rule share `rows`. */
export function createBuckets(band: Band, rows: Rows): Buckets {
  return band.refill === 'INTERVAL' ? new Cells(intervalBucket, rows) : algorithms[band.algorithm](rows)
}

export { Rows } from './rows.js'
