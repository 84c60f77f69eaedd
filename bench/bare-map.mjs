// @ts-check
/**
 * The token bucket that a competent person writes by hand when one process is enough: a Map, floating point, Date.now().
 * It never forgets a key, knows no rules, and cannot say when to come back.
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
