// @ts-check
/**
 * A process that uses its limiter right after creation, and again during a stall of its event loop. Sends the number of
 * initial calls that were allowed, and the numbers of degraded decisions.
 */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createFluxGate, createLimiter } from 'fluxgate-js'
import { redisStore } from 'fluxgate-js/redis'

/** @type {{ kind: string, uri: string, prefix: string, capacity: number, calls: number, stallMs: number, inFlight: number }} */
const { kind, uri, prefix, capacity, calls, stallMs, inFlight } = JSON.parse(process.argv[2] ?? '')
const limit = /** @type {const} */ ({ capacity, window: '30d' })
const plenty = /** @type {const} */ ({ algorithm: 'FIXED_WINDOW', capacity: 1_000_000_000, window: '30d' })

/**
 * @typedef {import('fluxgate-js').Decision} Decision
 *
 * @typedef {object} Asker
 * @property {() => Promise<Decision>} ask uses the limit that all processes share
 * @property {() => Promise<Decision>} askPlenty uses a limit that is never reached
 * @property {() => Promise<unknown>} close
 */

/** @type {Record<string, () => Promise<Asker>>} */
const kinds = {
  async createLimiter() {
    const limiter = createLimiter({ ...limit, store: uri })
    const other = createLimiter({ ...plenty, store: uri })
    return {
      ask: () => limiter.consume(prefix),
      askPlenty: () => other.consume(`${prefix}-plenty`),
      close: () => Promise.all([limiter.close(), other.close()]),
    }
  },
  async redisStore() {
    const store = redisStore(uri, { prefix })
    await store.ready(2_000)
    const limiter = createLimiter({ ...limit, store })
    const other = createLimiter({ ...plenty, store })
    return { ask: () => limiter.consume('a'), askPlenty: () => other.consume('b'), close: () => store.close() }
  },
  async createFluxGate() {
    const gate = await createFluxGate({
      rules: [
        { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [limit] }] },
        { id: 'plenty', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [plenty] }] },
      ],
      store: { uri, prefix },
    })
    return {
      ask: () => gate.check({}, { ruleSetId: 'api' }),
      askPlenty: () => gate.check({}, { ruleSetId: 'plenty' }),
      close: () => gate.close(),
    }
  },
}

const { ask, askPlenty, close } = await /** @type {() => Promise<Asker>} */ (kinds[kind])()
const first = await Promise.all(Array.from({ length: calls }, ask))
// Waits until decisions are exact, so that effects of the cold start are not attributed to the stall.
while ((await askPlenty()).degraded) await sleep(20)
const asked = Array.from({ length: inFlight }, askPlenty)
await turn()
const endsAt = performance.now() + stallMs
while (performance.now() < endsAt);
const stalled = await Promise.all(asked)
const degradedOf = (/** @type {readonly Decision[]} */ decisions) => decisions.filter(({ degraded }) => degraded).length
process.send?.({
  allowed: first.filter(({ allowed }) => allowed).length,
  degraded: degradedOf(first),
  stalled: degradedOf(stalled),
})
await close()
process.disconnect()
