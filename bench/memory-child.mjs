// @ts-check
/**
 * Fills one limiter with many keys and prints its memory and time per key as JSON. Runs in a separate process, so that the
 * heap contains nothing else. Arguments: contender, number of keys.
 */

import { everyKey } from './access.mjs'
import { bareMap, expressStore, flexible, fluxGateSync } from './contenders.mjs'
import { collectGarbage } from './measure.mjs'

const create = { fluxGate: fluxGateSync, flexible, express: expressStore, bareMap }

const [name = '', count = ''] = process.argv.slice(2)
const keys = Array.from({ length: Number(count) }, (_, i) => flatString(`user:${10_000_000 + i}`))
const order = everyKey(keys.length)
/** Refills so slowly that no bucket is full, and evicted, before all keys exist. */
const limit = { capacity: 10, windowMs: 3_600_000 }

// Compiles the code before the measurement.
const rehearsal = create[/** @type {keyof typeof create} */ (name)](keys, limit)
await rehearsal.batch(order.subarray(0, 1000))
await rehearsal.close?.()

const before = bytes()
const contender = create[/** @type {keyof typeof create} */ (name)](keys, limit)
const startedAt = performance.now()
const { allowed } = await contender.batch(order)
const fillNs = ((performance.now() - startedAt) * 1e6) / keys.length
const perKey = (bytes() - before) / keys.length

// Keeps the keys alive that were counted before.
const again = await contender.batch(order.subarray(0, 1))
process.stdout.write(JSON.stringify({ perKey, fillNs, allowed: allowed + again.allowed }))
await contender.close?.()

/** Returns the size of live objects in the heap and of array buffers. */
function bytes() {
  for (let i = 0; i < 3; i++) collectGarbage('major')
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Returns a flat string. Concatenation creates a rope, which the first lookup would have to flatten. */
function flatString(/** @type {string} */ text) {
  return Buffer.from(text).toString('latin1')
}
