import { type Block, blockMs, type HitCounters, type Hits } from './hit-counters.js'

interface Counter {
  hits: number
  /** Epoch milliseconds; infinity for a window that never ends. */
  endsAt: number
}

/** At this number of keys, a new key replaces the oldest. */
const defaultMaxKeys = 1_000_000
/** A full map is searched for expired keys once per this share of its size, so that a flood of new keys costs little per key. */
const sweepsPerSize = 16

/** Counters in this process, without a timer per key. Time is that of `Date`, so that fake timers of tests move it. */
export class MemoryCounters implements HitCounters {
  readonly #maxKeys: number
  #counters = new Map<string, Counter>()
  #keysUntilSweep = 0

  constructor(maxKeys = defaultMaxKeys) {
    this.#maxKeys = maxKeys
  }

  async add(key: string, hits: number, windowMs: number, block?: Block): Promise<Hits> {
    const now = Date.now()
    const counter = this.#find(key, now) ?? this.#start(key, 0, windowMs, now)
    counter.hits += hits
    const restartMs = block && blockMs(block, counter.hits, hits)
    return leftOf(restartMs === undefined ? counter : this.#start(key, counter.hits, restartMs, now), now)
  }

  async set(key: string, hits: number, windowMs: number): Promise<void> {
    this.#start(key, hits, windowMs, Date.now())
  }

  async get(key: string): Promise<Hits | undefined> {
    const now = Date.now()
    const counter = this.#find(key, now)
    return counter && leftOf(counter, now)
  }

  async delete(key: string): Promise<boolean> {
    const isCounted = this.#find(key, Date.now()) !== undefined
    this.#counters.delete(key)
    return isCounted
  }

  clear(): void {
    this.#counters.clear()
  }

  async close(): Promise<void> {
    this.clear()
  }

  #find(key: string, now: number): Counter | undefined {
    const counter = this.#counters.get(key)
    return counter !== undefined && counter.endsAt > now ? counter : undefined
  }

  #start(key: string, hits: number, windowMs: number, now: number): Counter {
    const counter = { hits, endsAt: windowMs > 0 ? now + windowMs : Number.POSITIVE_INFINITY }
    // Deleted first, so that the map keeps the order of the windows.
    this.#counters.delete(key)
    if (this.#counters.size >= this.#maxKeys) this.#makeRoom(now)
    this.#counters.set(key, counter)
    return counter
  }

  #makeRoom(now: number): void {
    this.#keysUntilSweep--
    if (this.#keysUntilSweep <= 0) {
      this.#keysUntilSweep = this.#maxKeys / sweepsPerSize
      for (const [key, { endsAt }] of this.#counters) if (endsAt <= now) this.#counters.delete(key)
    }
    for (const key of this.#counters.keys()) {
      if (this.#counters.size < this.#maxKeys) return
      this.#counters.delete(key)
    }
  }
}

const leftOf = ({ hits, endsAt }: Counter, now: number): Hits => ({
  hits,
  leftMs: Number.isFinite(endsAt) ? endsAt - now : -1,
})
