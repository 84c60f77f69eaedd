import type { AlgorithmName } from './rule.js'

/** What has to be known of an algorithm outside of it, so that nobody needs to know one by name. */
export interface AlgorithmTraits {
  /** Its level moves steadily, by `refillTokens` per window; the others count what a window has seen. */
  readonly isRefilled: boolean
  /** Who fits still waits until nobody is ahead, which is when the bucket, without it, would be full. */
  readonly isQueue: boolean
}

export const algorithmTraits: Readonly<Record<AlgorithmName, AlgorithmTraits>> = {
  TOKEN_BUCKET: { isRefilled: true, isQueue: false },
  LEAKY_BUCKET: { isRefilled: true, isQueue: true },
  FIXED_WINDOW: { isRefilled: false, isQueue: false },
  SLIDING_WINDOW_LOG: { isRefilled: false, isQueue: false },
  SLIDING_WINDOW_COUNTER: { isRefilled: false, isQueue: false },
}
