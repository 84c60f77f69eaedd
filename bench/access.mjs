// @ts-check
/** Keys and access orders, the same for every contender of a table and in every run. */
import { seededRandom } from '../dist/core/seeded-random.js'

/** Returns addresses as separate flat strings, as a server reads them from a socket. */
export function addresses(/** @type {number} */ count) {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(`10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`).toString('latin1'),
  )
}

/** Every key once. */
export const everyKey = (/** @type {number} */ keys) => Uint32Array.from({ length: keys }, (_, i) => i)

/** Returns uniformly distributed random keys. */
export function randomOrder(/** @type {number} */ keys, /** @type {number} */ length, seed = 20_240_229) {
  const random = seededRandom(seed)
  return Uint32Array.from({ length }, () => Math.floor(random() * keys))
}

/** Returns a function that returns the first `count` integers, shuffled differently on each call. */
export function shuffles(/** @type {number} */ count, seed = 20_240_229) {
  const random = seededRandom(seed)
  return () =>
    Array.from({ length: count }, (_, index) => ({ index, place: random() }))
      .sort((a, b) => a.place - b.place)
      .map(({ index }) => index)
}
