// @ts-check
/** What it costs a decision that others will want to know of it. */
import { addresses, everyKey, randomOrder } from '../access.mjs'
import {
  DecisionRecorder,
  LocalStatistics,
  openGate,
  openRedis,
  SharedStatistics,
  showKey,
  systemClock,
} from '../fluxgate.mjs'
import { sideBySide } from '../measure.mjs'

const plain = 'check, nobody counts'
const counted = 'check, counted for metrics'
const shared = 'check, statistics shared through Redis'
const rules = [{ id: 'api', rules: [{ id: 'all', path: '/**', bands: [{ capacity: 1_000_000_000, window: '1d' }] }] }]
/** About as many as make a second, after which everything is told. */
const passes = 20

/**
 * @param {string} title
 * @param {import('../redis/server.mjs').RedisServer} server
 * @param {import('../measure.mjs').Effort} effort
 */
export async function feedingStatistics(title, server, effort) {
  const ips = addresses(effort.keys)
  const order = randomOrder(ips.length, effort.operations * passes)
  const contenders = [
    await asking(plain, ips),
    await asking(counted, ips, count),
    await asking(shared, ips, share(server)),
  ]
  for (const { batch } of contenders) await batch(everyKey(ips.length))
  const rows = await sideBySide(title, contenders, order, effort, (allowed) => allowed === 1)
  return { rows, plain, shared }
}

/** @typedef {{ recorder: InstanceType<typeof DecisionRecorder>, secondPassed: () => Promise<void>, close: () => Promise<void> }} Watching */

/** @returns {Watching} */
function count() {
  const recorder = new DecisionRecorder(systemClock)
  return { recorder, secondPassed: async () => recorder.secondPassed(), close: async () => {} }
}

/** @returns {() => Watching} */
const share = (/** @type {import('../redis/server.mjs').RedisServer} */ server) => () => {
  const recorder = new DecisionRecorder(systemClock)
  const local = new LocalStatistics({ recorder, clock: systemClock, showKey: showKey(false) })
  const connection = openRedis({ uri: server.uri })
  const statistics = new SharedStatistics({ connection, prefix: 'bench', recorder, revealKeys: false, local })
  return {
    recorder,
    async secondPassed() {
      recorder.secondPassed()
      await statistics.flush()
    },
    close: () => statistics.close(),
  }
}

/**
 * @param {string} name
 * @param {readonly string[]} ips
 * @param {() => Watching} [watch]
 * @returns {Promise<import('../measure.mjs').Contender>}
 */
async function asking(name, ips, watch) {
  const watching = watch?.()
  const gate = await openGate({ rules }, watching?.recorder)
  return {
    name,
    async close() {
      await gate.close()
      await watching?.close()
    },
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const clientIp = /** @type {string} */ (ips[/** @type {number} */ (order[i])])
        last = await gate.check({ clientIp, method: 'GET', path: '/api' })
        if (last.allowed) allowed++
      }
      await watching?.secondPassed()
      return { allowed, last }
    },
  }
}
