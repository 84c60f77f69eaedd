// @ts-check
/** One band, asked by key: the plainest use, once where everybody is let through and once where hardly anybody is. */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { bareMap, expressStore, flexible, flexibleBare, fluxGateAsync, fluxGateSync, names } from '../contenders.mjs'
import { sideBySide, timesAsFast } from '../measure.mjs'

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
    note: 'Limits, the same for all contenders: 10 million in 10 minutes for one key, 1,000 a day for many, 5 in 10 minutes where hardly anybody is let through. All keys exist before the first round.',
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
 * @param {string} title
 * @param {number} count
 * @param {import('../contenders.mjs').Limit} limit
 * @param {import('../measure.mjs').Effort} effort
 */
async function table(title, count, limit, effort) {
  const keys = addresses(count)
  const contenders = [fluxGateSync, fluxGateAsync, flexible, flexibleBare, expressStore, bareMap].map((create) =>
    create(keys, limit),
  )
  const isScarce = limit === scarce
  for (const { batch } of contenders)
    for (let times = isScarce ? limit.capacity : 1; times > 0; times--) await batch(everyKey(count))
  const order = randomOrder(count, effort.operations)
  return sideBySide(title, contenders, order, effort, (share) => (isScarce ? share < 0.05 : share === 1))
}
