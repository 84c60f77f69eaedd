import type { Buckets } from '../core/algorithm.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { Cells } from './cells.js'
import { fixedWindow } from './fixed-window.js'
import { intervalBucket } from './interval-bucket.js'
import { leakyBucket } from './leaky-bucket.js'
import { slidingWindowCounter } from './sliding-window-counter.js'
import { Logs } from './sliding-window-log.js'
import { tokenBucket } from './token-bucket.js'

const algorithms: Readonly<Record<AlgorithmName, () => Buckets>> = {
  TOKEN_BUCKET: () => new Cells(tokenBucket),
  LEAKY_BUCKET: () => new Cells(leakyBucket),
  FIXED_WINDOW: () => new Cells(fixedWindow),
  SLIDING_WINDOW_LOG: () => new Logs(),
  SLIDING_WINDOW_COUNTER: () => new Cells(slidingWindowCounter),
}

/** Room for the buckets of a band, and the algorithm that counts in them. */
export function createBuckets(band: Band): Buckets {
  return band.refill === 'INTERVAL' ? new Cells(intervalBucket) : algorithms[band.algorithm]()
}
