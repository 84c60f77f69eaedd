import type { AlgorithmName, Band } from './rule.js'

/** Properties of an algorithm that other components depend on, so that none of them compares algorithm names. */
export interface AlgorithmTraits {
  /** The level changes continuously by `refillTokens` per window. Other algorithms count the grants of a window. */
  readonly isRefilled: boolean
  /** A granted request is delayed until the requests ahead of it have drained, as in a leaky bucket. */
  readonly isQueue: boolean
  /** A slot granted for a later time can be refunded only while no later slot is taken. */
  readonly shrinksFromEnd: boolean
  /** A grant occupies a slot until it is released or expires. Such a band has no window and never delays a request. */
  readonly takesHolds?: true
  /** A bucket keeps an entry per request, so its capacity is limited to `maxLogCapacity`. */
  readonly keepsLog?: true
}

export const algorithmTraits: Readonly<Record<AlgorithmName, AlgorithmTraits>> = {
  TOKEN_BUCKET: { isRefilled: true, isQueue: false, shrinksFromEnd: true },
  LEAKY_BUCKET: { isRefilled: true, isQueue: true, shrinksFromEnd: true },
  FIXED_WINDOW: { isRefilled: false, isQueue: false, shrinksFromEnd: true },
  SLIDING_WINDOW_LOG: { isRefilled: false, isQueue: false, shrinksFromEnd: false, keepsLog: true },
  SLIDING_WINDOW_COUNTER: { isRefilled: false, isQueue: false, shrinksFromEnd: false },
  CONCURRENCY: { isRefilled: false, isQueue: false, shrinksFromEnd: false, takesHolds: true },
}

/** True if a grant of one of these bands occupies a slot until it is released. */
export const takeHolds = (bands: readonly Band[]): boolean =>
  bands.some(({ algorithm }) => algorithmTraits[algorithm].takesHolds)

/** True if the windows of all bands have a fixed length. Those of a calendar have not, and holds have none. */
export const haveFixedWindows = (bands: readonly Band[]): boolean =>
  bands.every(({ algorithm, calendar }) => calendar === undefined && !algorithmTraits[algorithm].takesHolds)
