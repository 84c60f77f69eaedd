// @ts-check
/** Measures the build of one checkout and sends the figures. Arguments: root of the checkout, URI of Redis. */
import { quantile } from '../measure.mjs'
import { keepAsking } from '../redis/closed-loop.mjs'

const [root = '', uri = ''] = process.argv.slice(2)
const { createLimiter } = await import(new URL('dist/bundle/index.js', root).href)
const { redisStore } = await import(new URL('dist/bundle/redis.js', root).href)

const keys = Array.from({ length: 10_000 }, (_, index) => `user-${index}`)
const warmUpSeconds = 0.6
const seconds = 1.2
const bands = ['1h', '1d', '7d'].map((window, index) => ({ capacity: 100_000_000 * (index + 1), window }))
/** Long, so that a busy machine causes no degraded decisions. */
const timeoutMs = 10_000

/** @type {Record<string, number>} */
const figures = {}
for (const [name, bandCount, callers] of /** @type {const} */ ([
  ['one band, 512 callers', 1, 512],
  ['three bands, 512 callers', 3, 512],
  ['one band, 64 callers', 1, 64],
])) {
  const store = redisStore(uri, { prefix: `compare-${bandCount}-${callers}`, timeoutMs })
  const limiter = createLimiter({ bands: bands.slice(0, bandCount), store })
  const asker = {
    name,
    ask: (/** @type {string} */ key) => limiter.consume(key),
    isAllowed: (/** @type {any} */ decision) => decision.allowed && !decision.degraded,
    close: () => {},
  }
  await keepAsking(asker, keys, callers, warmUpSeconds)
  const before = process.cpuUsage()
  const { decisions, allowed, waitsMs, elapsedMs } = await keepAsking(asker, keys, callers, seconds)
  const used = process.cpuUsage(before)
  if (allowed !== decisions) throw new Error(`${name}: ${allowed} of ${decisions} decisions were exact`)
  figures[`${name}: decisions/s`] = (decisions * 1_000) / elapsedMs
  figures[`${name}: p99 ms`] = quantile(waitsMs, 0.99)
  figures[`${name}: CPU µs per decision`] = (used.user + used.system) / decisions
  await limiter.close()
  await store.close()
}
process.send?.(figures)
