// @ts-check
/**
 * A process that uses its limiter right after creating it. It makes `calls` decisions at once and reports how many were
 * allowed and how many were degraded. With `blockMs` it blocks its event loop after the creation, and again after the
 * calls.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createFluxGate, createLimiter } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/node'
import { redisStore } from 'fluxgate-js/redis'

/** @type {{ kind: string, uri: string, prefix: string, capacity: number, calls: number, blockMs: number }} */
const { kind, uri, prefix, capacity, calls, blockMs } = JSON.parse(process.argv[2] ?? '')
const limit = /** @type {const} */ ({ capacity, window: '30d' })

function block() {
  const endsAt = performance.now() + blockMs
  while (performance.now() < endsAt);
}

/** @typedef {{ allowed: boolean, degraded: boolean }} Answer */
/** @typedef {{ ask(): Promise<Answer>, close(): Promise<unknown> }} Asker */

/** @type {Record<string, () => Promise<Asker>>} */
const kinds = {
  async limiter() {
    const limiter = createLimiter({ ...limit, store: uri })
    block()
    return { ask: () => limiter.consume(prefix), close: () => limiter.close() }
  },
  async store() {
    const store = redisStore(uri, { prefix })
    const limiter = createLimiter({ ...limit, store })
    block()
    return { ask: () => limiter.consume('a'), close: () => store.close() }
  },
  async 'store and ready'() {
    const store = redisStore(uri, { prefix })
    const limiter = createLimiter({ ...limit, store })
    const connecting = store.ready(10_000)
    block()
    await connecting
    return { ask: () => limiter.consume('a'), close: () => store.close() }
  },
  async gate() {
    const opening = createFluxGate({
      rules: { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [limit] }] },
      store: { uri, prefix },
    })
    block()
    const gate = await opening
    return { ask: () => gate.check({}), close: () => gate.close() }
  },
  async middleware() {
    const limited = rateLimit({ ...limit, store: { uri, prefix } })
    const server = createServer(limited((_, response) => void response.end()))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    block()
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    return {
      async ask() {
        const { status } = await fetch(`http://127.0.0.1:${port}/`)
        return { allowed: status === 200, degraded: false }
      },
      async close() {
        server.close()
        server.closeAllConnections()
        await limited.close()
      },
    }
  },
}

const { ask, close } = await /** @type {() => Promise<Asker>} */ (kinds[kind])()
const asked = Array.from({ length: calls }, ask)
block()
const answers = await Promise.all(asked)
const count = (/** @type {keyof Answer} */ name) => answers.filter((answer) => answer[name]).length
console.log(JSON.stringify({ allowed: count('allowed'), degraded: count('degraded') }))
await close()
