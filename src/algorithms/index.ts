import type { Algorithm } from '../core/algorithm.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { fixedWindow } from './fixed-window.js'
import { intervalBucket } from './interval-bucket.js'
import { leakyBucket } from './leaky-bucket.js'
import { slidingWindowCounter } from './sliding-window-counter.js'
import { slidingWindowLog } from './sliding-window-log.js'
import { tokenBucket } from './token-bucket.js'

/** An algorithm whose state and changes only its own buckets understand. */
export type AnyAlgorithm = Algorithm<unknown, unknown>

const algorithms = {
  TOKEN_BUCKET: tokenBucket,
  LEAKY_BUCKET: leakyBucket,
  FIXED_WINDOW: fixedWindow,
  SLIDING_WINDOW_LOG: slidingWindowLog,
  SLIDING_WINDOW_COUNTER: slidingWindowCounter,
} satisfies Record<AlgorithmName, object>

export function algorithmOf(band: Band): AnyAlgorithm {
  const algorithm = band.refill === 'INTERVAL' ? intervalBucket : algorithms[band.algorithm]
  return algorithm as unknown as AnyAlgorithm
}
