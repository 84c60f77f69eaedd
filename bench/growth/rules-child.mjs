// @ts-check
/**
 * A gate with many rules. Arguments: number of rules, number of rules that are requested, operations per turn. Sends `ready`,
 * and then the CPU time of a check in microseconds for each message.
 */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { createFluxGate } from '../fluxgate.mjs'

const [count = '', asked = '', operations = ''] = process.argv.slice(2)
const rules = Array.from({ length: Number(count) }, (_, i) => ({
  id: `service-${i}`,
  path: `/api/service-${i}/items/*`,
  method: 'GET',
  bands: [{ capacity: 100_000, window: '365d' }],
}))
const gate = await createFluxGate({ rules: [{ id: 'services', rules }] })
/** Independent of the number of rules, so that only the rules differ. */
const ips = addresses(100_000)
const paths = ips.map((_, i) => `/api/service-${i % Number(asked)}/items/${i}`)

async function batch(/** @type {Uint32Array} */ order) {
  let allowed = 0
  for (let i = 0; i < order.length; i++) {
    const client = /** @type {number} */ (order[i])
    const path = /** @type {string} */ (paths[client])
    const decision = await gate.check({ clientIp: /** @type {string} */ (ips[client]), method: 'GET', path })
    if (decision.allowed && decision.bands.length === 1) allowed++
  }
  return allowed
}

await batch(everyKey(ips.length))
let turn = 0
process.on('message', async () => {
  const order = randomOrder(ips.length, Number(operations), ++turn)
  const before = process.cpuUsage()
  const allowed = await batch(order)
  const used = process.cpuUsage(before)
  if (allowed !== order.length) throw new Error(`${order.length - allowed} requests did not match exactly one rule`)
  process.send?.({ clientUs: (used.user + used.system) / order.length })
})
process.send?.('ready')
