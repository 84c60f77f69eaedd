// @ts-check
/**
 * One contender of the single band. Arguments: which, how many keys, its limit, how often every key is asked for before the
 * first turn, operations per batch. Tells its name; then a `Turn` for each number of batches that it is told.
 *
 * @typedef {{ cpu: number, clock: number, share: number }} Turn nanoseconds per operation, and how many were let through
 */
import { addresses, everyKey, randomOrder } from './access.mjs'
import { bareMap, expressStore, flexible, flexibleBare, fluxGateAsync, fluxGateSync } from './contenders.mjs'

const create = { fluxGateSync, fluxGateAsync, flexible, flexibleBare, expressStore, bareMap }

const [which = '', count = '', limit = '', times = '', operations = ''] = process.argv.slice(2)
const keys = addresses(Number(count))
const { name, batch } = create[/** @type {keyof typeof create} */ (which)](keys, JSON.parse(limit))
for (let time = Number(times); time > 0; time--) await batch(everyKey(keys.length))
const order = randomOrder(keys.length, Number(operations))

process.on('message', async (/** @type {number} */ batches) => {
  // Does not count: while others had their turn, the caches became theirs, which a program with one limiter never sees.
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
