import { MemoryCounters } from '../counters/memory-counters.js'
import { RateLimiterAbstract } from './limiter-base.js'

/** A limiter that counts in this process. */
export class RateLimiterMemory extends RateLimiterAbstract {
  readonly #counters = new MemoryCounters()

  protected get counters(): MemoryCounters {
    return this.#counters
  }
}
