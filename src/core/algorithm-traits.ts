import type { AlgorithmName } from './rule.js'

/** What has to be known of an algorithm outside of it, so that nobody needs to know one by name. */
export interface AlgorithmTraits {
  /** Its level moves steadily, by `refillTokens` per window; the others count what a window has seen. */
  readonly isRefilled: boolean
  /** Who fits still waits until nobody is ahead, which is when the bucket, without it, would be full. */
  readonly isQueue: boolean
  /** A slot that was granted for later can be given back only while no later slot is taken. */
  readonly shrinksFromEnd: boolean
}

export const algorithmTraits: Readonly<Record<AlgorithmName, AlgorithmTraits>> = {
  TOKEN_BUCKET: { isRefilled: true, isQueue: false, shrinksFromEnd: true },
  LEAKY_BUCKET: { isRefilled: true, isQueue: true, shrinksFromEnd: true },
  FIXED_WINDOW: { isRefilled: false, isQueue: false, shrinksFromEnd: true },
  SLIDING_WINDOW_LOG: { isRefilled: false, isQueue: false, shrinksFromEnd: false },
  SLIDING_WINDOW_COUNTER: { isRefilled: false, isQueue: false, shrinksFromEnd: false },
}
