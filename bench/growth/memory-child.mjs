// @ts-check
/**
 * A limiter in memory with many keys. Arguments: contender, number of keys, operations per turn. Sends `ready`, and then the
 * CPU time of a decision in microseconds for each message.
 */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { bareMap, fluxGateSync } from '../contenders.mjs'

const [name = '', count = '', operations = ''] = process.argv.slice(2)
const keys = addresses(Number(count))
/** Never reached, and refilled so slowly that no bucket becomes full and is evicted. */
const limit = { capacity: 100_000, windowMs: 365 * 86_400_000 }
const { batch } = name === 'bareMap' ? bareMap(keys, limit) : fluxGateSync(keys, limit, keys.length)
await batch(everyKey(keys.length))

let turn = 0
process.on('message', async () => {
  // A new order for every turn: a repeated one would be in the CPU cache.
  const order = randomOrder(keys.length, Number(operations), ++turn)
  const before = process.cpuUsage()
  const { allowed } = await batch(order)
  const used = process.cpuUsage(before)
  if (allowed !== order.length) throw new Error(`${name} rejected ${order.length - allowed} requests`)
  process.send?.({ clientUs: (used.user + used.system) / order.length })
})
process.send?.('ready')
