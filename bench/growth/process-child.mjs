// @ts-check
/**
 * One of several processes that share limits in Redis. Arguments: URI, EXACT or LEASED, number of keys. Sends `ready`, and then
 * its decisions and CPU time for each message with a duration in seconds.
 */
import { addresses, randomOrder } from '../access.mjs'
import { createLimiter, redisStore } from '../fluxgate.mjs'
import { keepAsking } from '../redis/closed-loop.mjs'
import { inRedis, longTimeout } from '../redis/contenders.mjs'

const [uri = '', consistency = '', count = ''] = process.argv.slice(2)
const callers = 64
const store = redisStore(uri, { prefix: `growth-${consistency}`, ...longTimeout })
const limiter = createLimiter({
  id: 'shared',
  capacity: 1_000_000_000,
  window: '365d',
  consistency: consistency === 'LEASED' ? 'LEASED' : 'EXACT',
  store,
})
/** @type {import('../redis/closed-loop.mjs').Asker} */
const asker = { name: consistency, ask: (key) => limiter.consume(key), isAllowed: inRedis, close() {} }
const all = addresses(Number(count))
const keys = Array.from(randomOrder(all.length, 50_000, process.pid), (i) => /** @type {string} */ (all[i]))
await keepAsking(asker, keys, callers, 0.1)

process.on('message', async (/** @type {number} */ seconds) => {
  const before = process.cpuUsage()
  const { allowed, decisions } = await keepAsking(asker, keys, callers, seconds)
  const used = process.cpuUsage(before)
  if (allowed !== decisions) throw new Error(`${decisions - allowed} requests were rejected`)
  process.send?.({ decisions: allowed, cpuUs: used.user + used.system })
})
process.send?.('ready')
