// @ts-check
/**
 * Makes decisions without a pause, so that calls are always in flight while another process stops this one with
 * SIGSTOP. Sends `ready` once it has started. On `stop` it reports how many decisions it made and how many were
 * degraded.
 */
import { setImmediate } from 'node:timers/promises'
import { createLimiter } from 'fluxgate-js'
import { HttpHandler } from 'fluxgate-js/handlers'
import { redisStore } from 'fluxgate-js/redis'

/** @type {{ kind: 'redis' | 'http', where: string, callers: number }} */
const { kind, where, callers } = JSON.parse(process.argv[2] ?? '')

/** @typedef {{ ask(): Promise<{ degraded: boolean }>, breaker(): string | undefined, close(): Promise<unknown> }} Asker */

/** @returns {Asker} */
function overRedis() {
  const store = redisStore(where, { prefix: `stall-${process.pid}` })
  const limiter = createLimiter({ capacity: 1_000_000_000, window: '30d', store })
  return { ask: () => limiter.consume('a'), breaker: () => store.availability.breaker, close: () => store.close() }
}

/** @returns {Asker} */
function overHttp() {
  const handler = new HttpHandler({ url: where })
  return { ask: () => handler.check({}), breaker: () => handler.breaker, close: () => handler.close() }
}

const { ask, breaker, close } = kind === 'redis' ? overRedis() : overHttp()
const report = { made: 0, degraded: 0, breaker: '' }
let isOver = false

async function callForever() {
  while (!isOver) {
    const { degraded } = await ask()
    report.made++
    if (!degraded) continue
    report.degraded++
    // A degraded decision needs no I/O, so without this turn the loop would never reach any.
    await setImmediate()
  }
}

await ask()
const calling = Promise.all(Array.from({ length: callers }, callForever))
process.once('disconnect', () => process.exit(1))
process.once('message', async () => {
  isOver = true
  await calling
  report.breaker = breaker() ?? ''
  await close()
  process.removeAllListeners('disconnect')
  process.send?.(report, () => process.disconnect())
})
process.send?.('ready')
