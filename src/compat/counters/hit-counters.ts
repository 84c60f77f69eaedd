/** The hits of a key in its window. */
export interface Hits {
  readonly hits: number
  /** Milliseconds until the window ends; -1 if it never ends. */
  readonly leftMs: number
}

/** Hits above `limit` start a window of `ms`. */
export interface Block {
  readonly limit: number
  readonly ms: number
  /** `FIRST`: only the hits that exceed the limit first. `EACH`: all hits above it. `DOUBLE`: each, twice as long as the one before. */
  readonly on: 'FIRST' | 'EACH' | 'DOUBLE'
}

const longestMs = Number.MAX_SAFE_INTEGER

/** Returns the length of the window that the last `added` of `hits` start, or undefined. */
export function blockMs({ limit, ms, on }: Block, hits: number, added: number): number | undefined {
  if (hits <= limit || (on === 'FIRST' && hits - added > limit)) return undefined
  return on === 'DOUBLE' ? Math.min(ms * 2 ** (hits - limit - 1), longestMs) : ms
}

/**
 * Counters of hits per key, in windows that start with the first hit. Unlike a bucket, a counter also counts rejected hits, can be
 * set, and can get a window of another length, which the limiters that are replaced here allow.
 */
export interface HitCounters {
  /** Adds hits, which may be negative. A key without a window starts one of `windowMs`; 0 means that it never ends. */
  add(key: string, hits: number, windowMs: number, block?: Block): Promise<Hits>
  /** Replaces the hits and starts a window of `windowMs`; 0 means that it never ends. */
  set(key: string, hits: number, windowMs: number): Promise<void>
  get(key: string): Promise<Hits | undefined>
  /** Resolves with true if the key had hits. */
  delete(key: string): Promise<boolean>
  close(): Promise<void>
}
