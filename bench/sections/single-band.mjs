// @ts-check
/** One band and one key per request: the simplest use, with all requests allowed and with almost all rejected. */
import { startChild } from '../child.mjs'
import { names } from '../contenders.mjs'
import { Broken, inTurns, timesAsFast } from '../measure.mjs'

/** Names in bench/single-band-child.mjs. */
const contenders = ['fluxGateSync', 'fluxGateAsync', 'flexible', 'flexibleBare', 'expressStore', 'bareMap']
const batchesPerTurn = 3

/**
 * Never reached in a run, and refilled so slowly that buckets are not full when they are used again. A limit that refills
 * quickly would measure eviction and creation of keys instead.
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
    tables.push({ title: `${count(keys)}, all allowed`, rows, baseline: names.flexible })
  }
  for (const keys of [1, effort.keys]) {
    const rows = await table(`${title}, ${count(keys)}, rejected`, keys, scarce, effort)
    tables.push({ title: `${count(keys)}, almost all rejected`, rows, baseline: names.flexible })
  }
  const manyKeys = tables[1]?.rows ?? []
  return {
    title,
    note: 'Each contender runs in its own process. Limits, the same for all: 10 million per 10 minutes for one key, 1,000 per day for many keys, 5 per 10 minutes where almost all requests are rejected. All keys exist before the first round.',
    tables,
    ratios: [
      {
        what: `consumeSync vs ${names.flexible}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consumeSync, names.flexible),
        atLeast: 3,
      },
      {
        what: `consumeSync vs ${names.bareMap}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consumeSync, names.bareMap),
        atLeast: 1,
      },
      {
        what: `consume vs ${names.flexible}, ${count(effort.keys)}`,
        measured: timesAsFast(manyKeys, names.consume, names.flexible),
        atLeast: 1.5,
      },
    ],
  }
}

const count = (/** @type {number} */ keys) => (keys === 1 ? '1 key' : `${keys.toLocaleString('en')} keys`)

/**
 * Measures each contender in its own process, as in a program with one limiter: in one process, contenders would share
 * garbage collections, compiled code and caches. They take turns in a different order each round.
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
