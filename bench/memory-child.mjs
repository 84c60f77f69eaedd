// @ts-check
/**
 * Fills one limiter with many keys and says what that took. A process of its own: nothing else is in the heap, and the heap
 * of the bench stays small. Arguments: contender, number of keys. Prints JSON.
 */

import { everyKey } from './access.mjs'
import { bareMap, expressStore, flexible, fluxGateSync } from './contenders.mjs'
import { collectGarbage } from './measure.mjs'

const create = { fluxGate: fluxGateSync, flexible, express: expressStore, bareMap }

const [name = '', count = ''] = process.argv.slice(2)
const keys = Array.from({ length: Number(count) }, (_, i) => flatString(`user:${10_000_000 + i}`))
const order = everyKey(keys.length)
/** No bucket is full again, and so forgotten, before all are there. */
const limit = { capacity: 10, windowMs: 3_600_000 }

// The code is there and compiled before the measurement starts.
const rehearsal = create[/** @type {keyof typeof create} */ (name)](keys, limit)
await rehearsal.batch(order.subarray(0, 1000))
await rehearsal.close?.()

const before = bytes()
const contender = create[/** @type {keyof typeof create} */ (name)](keys, limit)
const startedAt = performance.now()
const { allowed } = await contender.batch(order)
const fillNs = ((performance.now() - startedAt) * 1e6) / keys.length
const perKey = (bytes() - before) / keys.length

// A key is held by the list of keys as well, so that what was counted before is alive until here.
const again = await contender.batch(order.subarray(0, 1))
process.stdout.write(JSON.stringify({ perKey, fillNs, allowed: allowed + again.allowed }))
await contender.close?.()

/** What is alive: objects in the heap, and array buffers beside it. */
function bytes() {
  for (let i = 0; i < 3; i++) collectGarbage('major')
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Not the tree of pieces that concatenation makes, which a lookup would flatten, at the expense of whoever does the first. */
function flatString(/** @type {string} */ text) {
  return Buffer.from(text).toString('latin1')
}
