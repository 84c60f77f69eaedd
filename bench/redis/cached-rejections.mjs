// @ts-check
/** Calls to Redis for a rejected key that keeps being requested. */
import { Broken } from '../measure.mjs'
import { figure } from '../results/report.mjs'
import { keepAsking } from './closed-loop.mjs'
import { flexible, fluxGate } from './contenders.mjs'
import { workOf } from './server.mjs'

const concurrency = 64
const limit = { capacity: 10, windowMs: 3_600_000 }

/**
 * @param {import('./server.mjs').RedisServer} server
 * @param {import('../results/report.mjs').Pace} effort
 * @returns {Promise<import('../results/report.mjs').FigureTable>}
 */
export async function cachedRejections(server, { redis: { watchSeconds }, progress }) {
  const askers = [
    fluxGate('FluxGate', server.uri, { capacity: limit.capacity, window: `${limit.windowMs}ms` }),
    flexible('rate-limiter-flexible', server.uri, limit),
    flexible('rate-limiter-flexible, inMemoryBlockOnConsumed', server.uri, limit, {
      inMemoryBlockOnConsumed: limit.capacity,
    }),
  ]
  const lines = []
  for (const asker of askers) {
    progress(`Redis, cached rejections: ${asker.name}`)
    let isExhausted = false
    while (!isExhausted) isExhausted = (await keepAsking(asker, ['rejected'], 1, 0.05)).allowed === 0
    const before = await workOf(server)
    const { allowed, decisions, elapsedMs } = await keepAsking(asker, ['rejected'], concurrency, watchSeconds)
    const { calls } = await workOf(server)
    if (allowed > 0) throw new Broken(`${asker.name} allowed a request beyond the limit.`)
    const perSecond = (/** @type {number} */ count) => (count * 1000) / elapsedMs
    lines.push([asker.name, figure(perSecond(decisions)), figure(perSecond(calls - before.calls), 1)])
    await asker.close()
  }
  return {
    title: `Requests for a rejected key, ${concurrency} callers`,
    head: ['contender', 'decisions/s', 'Redis calls/s'],
    lines,
  }
}
