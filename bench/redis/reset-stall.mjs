// @ts-check
/**
 * Measures how long a reset of a rule with a million live buckets blocks other clients of Redis: `node
 * bench/redis/reset-stall.mjs`. A reset increments one counter, so it should take no longer than any other command.
 */
import { createFluxGate } from 'fluxgate-js'
import { Redis } from 'ioredis'
import { startServer } from './server.mjs'

const keys = 1_000_000
const atOnce = 1_000

const server = await startServer()
const gate = await createFluxGate({
  rules: { id: 'api', rules: [{ id: 'all', bands: [{ capacity: 10, window: '1h' }] }] },
  store: server.uri,
  resilience: { timeoutMs: 10_000 },
})
const other = new Redis(server.uri)

for (let i = 0; i < keys; i += atOnce)
  await Promise.all(
    Array.from({ length: atOnce }, (_, n) =>
      gate.check({ clientIp: `10.${(i + n) >> 16}.${((i + n) >> 8) & 255}.${(i + n) & 255}` }),
    ),
  )
console.log(`${await server.call('DBSIZE')} keys`)

/** Returns the longest PING of a client that sends them continuously while `work` runs. */
async function longestWait(/** @type {() => Promise<unknown>} */ work) {
  let isDone = false
  let longestMs = 0
  const asking = (async () => {
    while (!isDone) {
      const startedAt = performance.now()
      await other.ping()
      longestMs = Math.max(longestMs, performance.now() - startedAt)
    }
  })()
  await work()
  isDone = true
  await asking
  return longestMs.toFixed(2)
}

const idle = () => new Promise((resolve) => setTimeout(resolve, 100))
console.log(`longest PING in 100 idle ms: ${await longestWait(idle)} ms`)
for (let i = 0; i < 5; i++)
  console.log(
    `longest PING during a reset: ${await longestWait(() => gate.reset({ ruleSetId: 'api', ruleId: 'all' }))} ms`,
  )
await server.call('SLOWLOG', 'RESET')
await server.call('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
await gate.reset({ ruleSetId: 'api' })
const slow = /** @type {unknown[][]} */ (await server.call('SLOWLOG', 'GET', '10'))
const scripts = slow.filter(([, , , command]) => /** @type {string[]} */ (command)[0] === 'EVAL')
console.log(`duration of the reset, as measured by Redis: ${scripts.map(([, , us]) => us).join(', ')} µs`)
await gate.close()
other.disconnect()
await server.stop()
