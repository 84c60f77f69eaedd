// @ts-check
/** Decisions by rules (matching, key, two bands), compared with a limiter that increments one counter by key. */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { flexible, names } from '../contenders.mjs'
import { createFluxGate } from '../fluxgate.mjs'
import { Broken, sideBySide, timesAsFast } from '../measure.mjs'

const resources = ['users', 'orders', 'invoices', 'search', 'reports']
const check = 'FluxGate check, 10 rules, two bands'

export const title = 'Rules'

/** One rule per resource and method: ten. */
const rules = resources.flatMap((resource) =>
  ['GET', 'POST'].map((method) => ({
    id: `${resource}-${method.toLowerCase()}`,
    path: `/api/v1/${resource}/**`,
    method,
    limitScope: /** @type {const} */ ('IP'),
    bands: [
      { label: 'burst', capacity: 1000, window: '1h' },
      { label: 'steady', capacity: 10_000, window: '1d' },
    ],
  })),
)

/** @type {import('../report.mjs').Section} */
export async function byRules(effort) {
  const ips = addresses(effort.keys)
  const contenders = [await fluxGateCheck(ips), flexible(ips, { capacity: 1000, windowMs: 3_600_000 })]
  for (const { batch } of contenders) await batch(everyKey(ips.length))
  const order = randomOrder(ips.length, effort.operations)
  const rows = await sideBySide(title, contenders, order, effort, (share) => share === 1)
  return {
    title,
    note: 'Ten rules with different paths and methods; one of them applies, with two bands per IP. rate-limiter-flexible counts once per IP.',
    tables: [
      {
        title: `${ips.length.toLocaleString('en')} addresses, all allowed`,
        rows,
        baseline: names.flexible,
      },
    ],
    ratios: [{ what: `check vs ${names.flexible}`, measured: timesAsFast(rows, check, names.flexible), atLeast: 1 }],
  }
}

/**
 * Each address always requests the same rule, so that the number of buckets equals the number of keys of the other
 * contender. The request context is created inside the loop, as in a server.
 *
 * @param {readonly string[]} ips
 * @returns {Promise<import('../measure.mjs').Contender>}
 */
async function fluxGateCheck(ips) {
  const gate = await createFluxGate({ rules: [{ id: 'api', rules }] })
  const paths = Array.from({ length: 1000 }, (_, i) => `/api/v1/${resources[(i >> 1) % resources.length]}/${7919 * i}`)
  return {
    name: check,
    close: () => gate.close(),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const client = /** @type {number} */ (order[i])
        last = await gate.check({
          clientIp: /** @type {string} */ (ips[client]),
          method: client & 1 ? 'POST' : 'GET',
          path: /** @type {string} */ (paths[client % paths.length]),
        })
        if (last.allowed) allowed++
      }
      if (last?.bands.length !== 2) throw new Broken('A request was not charged to both bands of its rule.')
      return { allowed, last }
    },
  }
}
