// @ts-check
/**
 * Measures limiters in memory, each in its own process, as in a program with one limiter: in one process, contenders would
 * share garbage collections, compiled code and caches. They take turns in a different order each round.
 */
import { startChild } from '../child.mjs'
import { Broken, inTurns } from '../measure.mjs'

const batchesPerTurn = 3

/**
 * @param {string} title
 * @param {readonly string[]} contenders names in bench/contest/contender-child.mjs
 * @param {number} keys
 * @param {import('../contenders.mjs').Limit} limit
 * @param {import('../results/report.mjs').Pace} effort
 * @param {boolean} [isScarce] whether the limit is exhausted first, so that almost all requests are rejected
 * @returns {Promise<import('../measure.mjs').Row[]>}
 */
export async function contest(title, contenders, keys, limit, effort, isScarce = false) {
  const times = isScarce ? limit.capacity : 1
  const file = new URL('contender-child.mjs', import.meta.url)
  const args = [keys, JSON.stringify(limit), times, effort.operations].map(String)
  const children = contenders.map((contender) => startChild(file, [contender, ...args]))
  /** @type {(index: number) => Promise<import('./contender-child.mjs').Turn>} */
  const turn = async (index) => {
    const { tell, heard } = /** @type {ReturnType<typeof startChild>} */ (children[index])
    tell(batchesPerTurn)
    const took = await heard()
    const isExpected = isScarce ? took.share < 0.05 : took.share === 1
    const part = (took.share * 100).toFixed(1)
    if (!isExpected)
      throw new Broken(`${contenders[index]} allowed ${part} % of the requests, which is not what this table measures.`)
    return took
  }
  try {
    const names = await Promise.all(children.map(({ heard }) => heard()))
    return await inTurns(title, names, effort, { turn })
  } finally {
    for (const { stop } of children) stop()
  }
}
