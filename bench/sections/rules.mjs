// @ts-check
/** A decision by rules: matching, key and two bands, against a peer that is asked for one counter by key. */
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
    note: 'Ten rules, told apart by path and method, of which one applies; it counts by IP in two bands. The peer counts by IP once.',
    tables: [
      {
        title: `${ips.length.toLocaleString('en')} addresses, everybody is let through`,
        rows,
        baseline: names.flexible,
      },
    ],
    ratios: [{ what: `check : ${names.flexible}`, measured: timesAsFast(rows, check, names.flexible), atLeast: 1 }],
  }
}

/**
 * Each address asks for one of the ten, so that there are as many identities as the peer has keys. The request is put
 * together inside the loop, as a server does.
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
        const who = /** @type {number} */ (order[i])
        last = await gate.check({
          clientIp: /** @type {string} */ (ips[who]),
          method: who & 1 ? 'POST' : 'GET',
          path: /** @type {string} */ (paths[who % paths.length]),
        })
        if (last.allowed) allowed++
      }
      if (last?.bands.length !== 2) throw new Broken('A request did not meet its rule and both its bands.')
      return { allowed, last }
    },
  }
}
