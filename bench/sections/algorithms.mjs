// @ts-check
/** All algorithms side by side, so that one that has become slower is seen. Last, because a program that uses all of them pays for it. */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import { key } from '../contenders.mjs'
import { createLimiter, systemClock } from '../fluxgate.mjs'
import { sideBySide } from '../measure.mjs'

export const title = 'Algorithms'

const algorithms = /** @type {const} */ ([
  'TOKEN_BUCKET',
  'LEAKY_BUCKET',
  'FIXED_WINDOW',
  'SLIDING_WINDOW_LOG',
  'SLIDING_WINDOW_COUNTER',
])

/** Stands still while keys are added: buckets that drain this fast would otherwise be forgotten again meanwhile. */
const clock = { now: () => (stopped ? startedAt : systemClock.now()) }
let stopped = false
const startedAt = systemClock.now()

/** @type {import('../report.mjs').Section} */
export async function allAlgorithms(effort) {
  const keys = addresses(effort.keys)
  const contenders = algorithms.map((algorithm) => consumeSync(algorithm, keys))
  stopped = true
  for (const { batch } of contenders) await batch(everyKey(keys.length))
  stopped = false
  const order = randomOrder(keys.length, effort.operations)
  // The leaky bucket refuses the few who come so close together that more are to wait than may.
  const rows = await sideBySide(title, contenders, order, effort, (share) => share > 0.98)
  return {
    title,
    note: 'consumeSync, 100,000 in one second, the most that a sliding log takes. All are in use at once, which costs the compiler its certainty.',
    tables: [
      { title: `${keys.length.toLocaleString('en')} keys, everybody is let through`, rows, baseline: 'TOKEN_BUCKET' },
    ],
    ratios: [],
  }
}

/**
 * @param {typeof algorithms[number]} algorithm
 * @param {readonly string[]} keys
 * @returns {import('../measure.mjs').Contender}
 */
function consumeSync(algorithm, keys) {
  const limiter = createLimiter({ algorithm, capacity: 100_000, window: '1s', clock })
  return {
    name: algorithm,
    close: () => limiter.close(),
    batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        last = limiter.consumeSync(key(keys, order, i))
        if (last.allowed) allowed++
      }
      return { allowed, last }
    },
  }
}
