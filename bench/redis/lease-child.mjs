// @ts-check
/**
 * One of several processes that share buckets. Arguments: URI of Redis, and a JSON object with the prefix, the rule, the number of
 * keys and of callers. Runs until it is killed. The message `start` begins the measurement; `report` ends it.
 */
import { addresses } from '../access.mjs'
import { createLimiter, redisStore } from '../fluxgate.mjs'
import { longTimeout } from './contenders.mjs'

const [uri = '', settings = '{}'] = process.argv.slice(2)
const { prefix, rule, keyCount, callers } = JSON.parse(settings)
const store = redisStore(uri, { prefix, ...longTimeout })
await store.ready()
const limiter = createLimiter({ ...rule, store })
const keys = addresses(keyCount)
let [asked, decisions, allowed, degraded] = [0, 0, 0, 0]

async function caller() {
  for (;;) {
    const decision = await limiter.consume(/** @type {string} */ (keys[asked++ % keys.length]))
    decisions += 1
    if (decision.allowed) allowed += 1
    if (decision.degraded) degraded += 1
    // Decisions from memory would starve timers and sockets.
    if (decisions % callers === 0) await new Promise(setImmediate)
  }
}

process.on('message', async (order) => {
  if (order === 'report') {
    // On a busy machine, the process may not have run yet.
    while (decisions === 0) await new Promise(setImmediate)
    process.send?.({ decisions, allowed, degraded })
  } else [decisions, allowed, degraded] = [0, 0, 0]
})
for (let i = 0; i < callers; i++) void caller()
process.send?.('ready')
