// @ts-check
/** Orders in which keys are requested. */
import { seededRandom } from '../../dist/core/seeded-random.js'
import { addresses, randomOrder } from '../access.mjs'

/** @typedef {{ name: string, keys: readonly string[] }} Distribution */

const length = 200_000

/** Returns keys with a Zipf distribution with exponent 1: the second is requested half as often as the first. */
function zipf(/** @type {readonly string[]} */ keys, seed = 20_240_229) {
  const random = seededRandom(seed)
  const totals = new Float64Array(keys.length)
  let total = 0
  for (let rank = 0; rank < keys.length; rank++) totals[rank] = total += 1 / (rank + 1)
  return Array.from({ length }, () => {
    const point = random() * total
    let [low, high] = [0, keys.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (/** @type {number} */ (totals[middle]) < point) low = middle + 1
      else high = middle
    }
    return /** @type {string} */ (keys[low])
  })
}

/** @type {(keyCount: number) => readonly Distribution[]} */
export function keyDistributions(keyCount) {
  const keys = addresses(keyCount)
  const few = addresses(Math.ceil(keyCount / 10))
  const count = (/** @type {readonly string[]} */ { length }) => length.toLocaleString('en')
  const uniform = Array.from(randomOrder(keyCount, length), (index) => /** @type {string} */ (keys[index]))
  return [
    { name: `${count(keys)} keys, uniform`, keys: uniform },
    { name: `${count(few)} keys, Zipf 1.0`, keys: zipf(few) },
    { name: '100 keys', keys: addresses(100) },
    { name: 'one key', keys: addresses(1) },
  ]
}
