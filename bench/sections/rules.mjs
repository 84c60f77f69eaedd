// @ts-check
/** Decisions by rules (matching, key, two bands), compared with a limiter that increments one counter by key. */

import { names } from '../contenders.mjs'
import { contest } from '../contest/contest.mjs'
import { timesAsFast } from '../measure.mjs'

export const title = 'Rules'

/** The request of a rule is compared with one counter per key, so both have the same number of buckets. */
const limit = { capacity: 1000, windowMs: 3_600_000 }

/** @type {import('../results/report.mjs').Section} */
export async function byRules(effort) {
  const rows = await contest(title, ['fluxGateCheck', 'flexible'], effort.keys, limit, effort)
  return {
    title,
    note: 'Ten rules with different paths and methods; one of them applies, with two bands per IP. rate-limiter-flexible counts once per IP. Each contender runs in its own process.',
    tables: [{ title: `${effort.keys.toLocaleString('en')} addresses, all allowed`, rows, baseline: names.flexible }],
    ratios: [
      { what: `check vs ${names.flexible}`, measured: timesAsFast(rows, names.check, names.flexible), atLeast: 1.3 },
    ],
  }
}
