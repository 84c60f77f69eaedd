// @ts-check
/**
 * One limiter in memory. Arguments: contender, number of keys, limit, how often every key is requested
 * before the first turn, operations per batch. Sends its name, and then a `Turn` for each message with a number of batches.
 *
 * @typedef {{ cpu: number, clock: number, share: number }} Turn nanoseconds per operation, and share of allowed requests
 */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import {
  bareMap,
  expressStore,
  flexible,
  flexibleBare,
  fluxGateAsync,
  fluxGateCheck,
  fluxGateSync,
} from '../contenders.mjs'

const create = { fluxGateSync, fluxGateAsync, fluxGateCheck, flexible, flexibleBare, expressStore, bareMap }

const [which = '', count = '', limit = '', times = '', operations = ''] = process.argv.slice(2)
const keys = addresses(Number(count))
const { name, batch } = await create[/** @type {keyof typeof create} */ (which)](keys, JSON.parse(limit))
for (let time = Number(times); time > 0; time--) await batch(everyKey(keys.length))
const order = randomOrder(keys.length, Number(operations))

process.on('message', async (/** @type {number} */ batches) => {
  // Not measured: refills the CPU caches after the turns of other contenders.
  await batch(order)
  const startedAt = performance.now()
  const usedBefore = process.cpuUsage()
  let allowed = 0
  for (let done = 0; done < batches; done++) allowed += (await batch(order)).allowed
  const used = process.cpuUsage(usedBefore)
  const asked = batches * order.length
  const clock = ((performance.now() - startedAt) * 1e6) / asked
  process.send?.({ cpu: ((used.user + used.system) * 1e3) / asked, clock, share: allowed / asked })
})
process.send?.(name)
