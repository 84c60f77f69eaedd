import type { HoldId } from './hold-storage.js'

/** Random numbers are drawn for many ids at once, because a call for eight bytes takes longer than the rest of an id. */
const pool = new Uint32Array(512)
let used = pool.length

/** Returns a random id. Ids must not be guessable, because a client that knows an id can release its hold. */
export function newHoldId(): HoldId {
  if (used === pool.length) {
    crypto.getRandomValues(pool)
    used = 0
  }
  const high = pool[used] as number
  const low = pool[used + 1] as number
  used += 2
  return { high, low }
}
