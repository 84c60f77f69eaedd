// @ts-check
/** What every application of the bench answers, and the limit that nobody reaches. */
export const answer = {
  hello: 'world',
  items: Array.from({ length: 8 }, (_, id) => ({ id, name: `item ${id}` })),
}

export const most = 1_000_000_000
