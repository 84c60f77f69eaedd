// @ts-check
/** Who asks, and in which order: the same for every contender of a table, and the same in every run. */

/** Addresses, each a flat string of its own, as a server would have read it from a socket. */
export function addresses(/** @type {number} */ count) {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(`10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`).toString('latin1'),
  )
}

/** Every key once. */
export const everyKey = (/** @type {number} */ keys) => Uint32Array.from({ length: keys }, (_, i) => i)

/** Keys at random, all equally likely. */
export function randomOrder(/** @type {number} */ keys, /** @type {number} */ length, seed = 20_240_229) {
  const random = mulberry32(seed)
  return Uint32Array.from({ length }, () => Math.floor(random() * keys))
}

/** The first `count` whole numbers, shuffled anew with each call. */
export function shuffles(/** @type {number} */ count, seed = 20_240_229) {
  const random = mulberry32(seed)
  return () =>
    Array.from({ length: count }, (_, index) => ({ index, place: random() }))
      .sort((a, b) => a.place - b.place)
      .map(({ index }) => index)
}

/** A small seeded generator; its quality is far beyond what an access order needs. */
function mulberry32(/** @type {number} */ seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
