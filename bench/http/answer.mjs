// @ts-check
/** Response and limit of every application in the benchmark. */
export const answer = {
  hello: 'world',
  items: Array.from({ length: 8 }, (_, id) => ({ id, name: `item ${id}` })),
}

/**
 * Never reached, and refilled more slowly than it is used, so that buckets are not full: a bucket that is full on every
 * request does not occur under load.
 */
export const most = 10_000_000
export const windowMs = 3_600_000
