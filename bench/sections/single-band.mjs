// @ts-check
/** One band and one key per request: the simplest use, with all requests allowed and with almost all rejected. */

import { names } from '../contenders.mjs'
import { contest } from '../contest/contest.mjs'
import { timesAsFast } from '../measure.mjs'

const contenders = ['fluxGateSync', 'fluxGateAsync', 'flexible', 'flexibleBare', 'expressStore', 'bareMap']

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

/** @type {import('../results/report.mjs').Section} */
export async function singleBand(effort) {
  const tables = []
  for (const keys of [1, effort.keys]) {
    const rows = await contest(
      `${title}, ${count(keys)}`,
      contenders,
      keys,
      keys === 1 ? plenty.one : plenty.many,
      effort,
    )
    tables.push({ title: `${count(keys)}, all allowed`, rows, baseline: names.flexible })
  }
  for (const keys of [1, effort.keys]) {
    const rows = await contest(`${title}, ${count(keys)}, rejected`, contenders, keys, scarce, effort, true)
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
