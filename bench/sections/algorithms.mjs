// @ts-check
/** All algorithms side by side, to detect regressions. Runs late, because using all algorithms makes every call site polymorphic. */
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

/** Stopped while keys are added: buckets that refill this fast would otherwise be evicted at once. */
const clock = { now: () => (stopped ? startedAt : systemClock.now()) }
let stopped = false
const startedAt = systemClock.now()

/** @type {import('../results/report.mjs').Section} */
export async function allAlgorithms(effort) {
  const keys = addresses(effort.keys)
  const contenders = algorithms.map((algorithm) => consumeSync(algorithm, keys))
  stopped = true
  for (const { batch } of contenders) await batch(everyKey(keys.length))
  stopped = false
  const order = randomOrder(keys.length, effort.operations)
  // The leaky bucket rejects the few requests that arrive while its queue is full.
  const rows = await sideBySide(title, contenders, order, effort, (share) => share > 0.98)
  return {
    title,
    note: '`consumeSync`, 100,000 per second, the largest capacity of a sliding log. All algorithms are used in one process, so call sites are polymorphic.',
    tables: [{ title: `${keys.length.toLocaleString('en')} keys, all allowed`, rows, baseline: 'TOKEN_BUCKET' }],
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
