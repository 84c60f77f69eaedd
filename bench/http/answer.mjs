// @ts-check
/** What every application of the bench answers, and its limit. */
export const answer = {
  hello: 'world',
  items: Array.from({ length: 8 }, (_, id) => ({ id, name: `item ${id}` })),
}

/**
 * Nobody reaches it, and it refills more slowly than is asked for, so that buckets are in use: one that is full again
 * whenever somebody asks is what no application has when it is busy.
 */
export const most = 10_000_000
export const windowMs = 3_600_000
