// @ts-check
/**
 * A hand-written token bucket for one process: a Map, floating point, `Date.now()`. It never evicts a key, has no rules, and
 * does not compute a retry time.
 *
 * @param {{ capacity: number, windowMs: number }} limit
 */
export function createBareMap({ capacity, windowMs }) {
  const perMs = capacity / windowMs
  /** @type {Map<string, { tokens: number, at: number }>} */
  const buckets = new Map()
  return {
    consume(/** @type {string} */ key, permits = 1) {
      const now = Date.now()
      let bucket = buckets.get(key)
      if (bucket === undefined) {
        bucket = { tokens: capacity, at: now }
        buckets.set(key, bucket)
      } else {
        bucket.tokens = Math.min(capacity, bucket.tokens + (now - bucket.at) * perMs)
        bucket.at = now
      }
      if (bucket.tokens < permits) return { allowed: false, remaining: Math.floor(bucket.tokens) }
      bucket.tokens -= permits
      return { allowed: true, remaining: Math.floor(bucket.tokens) }
    },
  }
}
