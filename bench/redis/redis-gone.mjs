// @ts-check
/** Duration of decisions after Redis was killed. */
import { Broken, quantile } from '../measure.mjs'
import { figure } from '../results/report.mjs'
import { keepAsking } from './closed-loop.mjs'
import { flexibleInsured, fluxGateAlone } from './contenders.mjs'

const limit = { capacity: 10_000_000, windowMs: 3_600_000 }

/**
 * @param {import('./server.mjs').RedisServer} server
 * @param {readonly string[]} keys
 * @param {import('../results/report.mjs').Pace} effort
 */
export async function redisGone(server, keys, { redis: { watchSeconds }, progress }) {
  const askers = [
    fluxGateAlone('FluxGate', server.uri, { capacity: limit.capacity, window: `${limit.windowMs}ms` }),
    flexibleInsured('rate-limiter-flexible, insuranceLimiter', server.uri, limit),
  ]
  for (const { ask } of askers) await ask('before the outage')
  await server.kill()
  const lines = []
  const p99s = []
  for (const asker of askers) {
    // The first calls wait for their deadline. The breaker is open afterwards.
    await keepAsking(asker, ['warm-up'], 64, 0.2)
    for (const concurrency of [1, 64]) {
      progress(`Redis unavailable: ${asker.name}, ${concurrency}`)
      const { decisions, allowed, waitsMs, elapsedMs } = await keepAsking(asker, keys, concurrency, watchSeconds)
      if (allowed < decisions)
        throw new Broken(`${asker.name} did not allow every request locally while Redis was unavailable.`)
      const p99 = quantile(waitsMs, 0.99)
      if (asker === askers[0]) p99s.push({ concurrency, p99 })
      const rate = figure((decisions * 1000) / elapsedMs)
      const waits = [quantile(waitsMs, 0.5), p99, quantile(waitsMs, 1)].map((ms) => figure(ms, 3))
      lines.push([asker.name, String(concurrency), rate, ...waits])
    }
    await asker.close()
  }
  const head = ['contender', 'callers', 'decisions/s', 'p50 ms', 'p99 ms', 'max ms']
  return { table: { title: 'Redis unavailable, decisions in this process', head, lines }, p99s }
}
