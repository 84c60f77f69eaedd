/** Sends requests with one key until it is stopped, and prints every decision of Redis, and the number of cached rejections. */
import { redisStore } from '../../../dist/redis.js'

const [uri, ban] = process.argv.slice(2)
const store = redisStore(uri, { timeoutMs: 20_000 })
const band = {
  label: 'limit',
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 3,
  refillTokens: 3,
  windowTicks: 50_000,
}
const group = { ruleSetId: 'set', ruleId: 'login', generation: '1', permits: 1, bands: [band], ban: JSON.parse(ban) }
const charge = { group, key: 'attacker', permits: 1, maxWaitTicks: 0, policy: 'REJECT', shadow: false }
let isStopping = false
let cached = 0
const decisions = []
process.on('SIGTERM', () => {
  isStopping = true
})

await store.ready()
console.log('ready')
while (!isStopping) {
  const { granted, now, bands, fromCache } = await store.charge([charge], false)
  if (fromCache) cached += 1
  else decisions.push([now, granted ? 'ALLOWED' : bands[0].banned ? 'BANNED' : 'LIMITED', bands[0].retryAfter])
  if (!granted && !bands[0].banned && bands[0].retryAfter >= group.ban.forTicks) console.log('ban')
  // A busy loop would only measure how the processes share two cores.
  if (cached % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}
console.log(`result ${JSON.stringify({ cached, decisions })}`)
await store.close()
