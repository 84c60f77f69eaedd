// @ts-check
/** One band, asked by key: the plainest use, once where everybody is let through and once where hardly anybody is. */
import { startChild } from '../child.mjs'
import { names } from '../contenders.mjs'
import { Broken, inTurns, timesAsFast } from '../measure.mjs'

/** As bench/single-band-child.mjs calls them. */
const contenders = ['fluxGateSync', 'fluxGateAsync', 'flexible', 'flexibleBare', 'expressStore', 'bareMap']
const batchesPerTurn = 3

/**
 * Never reached, whatever one key is asked for in a run; and so slow to refill that the buckets of many keys are in use, not
 * full again, when their turn comes. A limit that refills at once would measure how keys are forgotten and added.
 */
const plenty = {
  one: { capacity: 10_000_000, windowMs: 600_000 },
  many: { capacity: 1000, windowMs: 86_400_000 },
}
const scarce = { capacity: 5, windowMs: 600_000 }

export const title = 'Single band'

/** @type {import('../report.mjs').Section} */
export async function singleBand(effort) {
  const tables = []
  for (const keys of [1, effort.keys]) {
    const rows = await table(`${title}, ${count(keys)}`, keys, keys === 1 ? plenty.one : plenty.many, effort)
    tables.push({ title: `${count(keys)}, everybody is let through`, rows, baseline: names.flexible })
  }
  for (const keys of [1, effort.keys]) {
    const rows = await table(`${title}, ${count(keys)}, refused`, keys, scarce, effort)
    tables.push({ title: `${count(keys)}, hardly anybody is let through`, rows, baseline: names.flexible })
  }
  const manyKeys = tables[1]?.rows ?? []
  return {
    title,
    note: 'Each contender in a process of its own, in turns. Limits, the same for all contenders: 10 million in 10 minutes for one key, 1,000 a day for many, 5 in 10 minutes where hardly anybody is let through. All keys exist before the first round.',
    tables,
    ratios: [
      {
        what: `consumeSync : ${names.flexible}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consumeSync, names.flexible),
        atLeast: 3,
      },
      {
        what: `consumeSync : ${names.bareMap}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consumeSync, names.bareMap),
        atLeast: 1,
      },
      {
        what: `consume : ${names.flexible}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consume, names.flexible),
        atLeast: 1.5,
      },
    ],
  }
}

const count = (/** @type {number} */ keys) => (keys === 1 ? '1 key' : `${keys.toLocaleString('en')} keys`)

/**
 * Each contender in a process of its own, as in a program that uses one limiter: in one heap, everybody's collections,
 * compiled code and caches would be shared with everybody else. They take turns, in another order each round.
 *
 * @param {string} title
 * @param {number} count
 * @param {import('../contenders.mjs').Limit} limit
 * @param {import('../measure.mjs').Effort} effort
 * @returns {Promise<import('../measure.mjs').Row[]>}
 */
async function table(title, count, limit, effort) {
  const isScarce = limit === scarce
  const times = isScarce ? limit.capacity : 1
  const file = new URL('../single-band-child.mjs', import.meta.url)
  const args = [count, JSON.stringify(limit), times, effort.operations].map(String)
  const children = contenders.map((contender) => startChild(file, [contender, ...args]))
  /** @type {(index: number) => Promise<import('../single-band-child.mjs').Turn>} */
  const turn = async (index) => {
    const { tell, heard } = /** @type {ReturnType<typeof startChild>} */ (children[index])
    tell(batchesPerTurn)
    const took = await heard()
    const isMeant = isScarce ? took.share < 0.05 : took.share === 1
    const part = (took.share * 100).toFixed(1)
    if (!isMeant) throw new Broken(`${contenders[index]} let ${part} % through, which is not what is measured here.`)
    return took
  }
  try {
    const told = await Promise.all(children.map(({ heard }) => heard()))
    return await inTurns(title, told, effort, { turn })
  } finally {
    for (const { stop } of children) stop()
  }
}
