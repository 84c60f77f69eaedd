// @ts-check
/** The cost of metrics and statistics per decision. */
import { addresses, everyKey, randomOrder, shuffles } from '../access.mjs'
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

const plain = 'check, no statistics'
const counted = 'check, metrics'
const shared = 'check, statistics in Redis'
const rules = [{ id: 'api', rules: [{ id: 'all', path: '/**', bands: [{ capacity: 1_000_000_000, window: '1d' }] }] }]
/** About one second of decisions, after which statistics are flushed. */
const passes = 20
/** The memory layout of a gate changes its figures by up to 10 % for its whole life, so gates are recreated in each run. */
const recreations = 2

/**
 * @param {string} title
 * @param {import('../redis/server.mjs').RedisServer} server
 * @param {import('../results/report.mjs').Pace} effort
 */
export async function feedingStatistics(title, server, effort) {
  const ips = addresses(effort.keys)
  const order = randomOrder(ips.length, effort.operations * passes)
  const open = [
    () => gateContender(plain, ips),
    () => gateContender(counted, ips, count),
    () => gateContender(shared, ips, share(server)),
  ]
  const nextOrder = shuffles(open.length)
  const rounds = Math.ceil(effort.rounds / recreations)
  /** @type {import('../measure.mjs').Row[]} */
  let rows = []
  for (let creation = 0; creation < recreations; creation++) {
    /** @type {import('../measure.mjs').Contender[]} */
    const contenders = []
    for (const index of nextOrder()) {
      const contender = await /** @type {typeof open[0]} */ (open[index])()
      await contender.batch(everyKey(ips.length))
      contenders[index] = contender
    }
    const more = await sideBySide(title, contenders, order, { ...effort, warmUps: 1, rounds }, (share) => share === 1)
    rows = more.map(({ name, rounds, clock }, i) => ({
      name,
      rounds: [...(rows[i]?.rounds ?? []), ...rounds],
      clock: [...(rows[i]?.clock ?? []), ...clock],
    }))
  }
  return { rows, plain, shared }
}

/** @typedef {{ recorder: InstanceType<typeof DecisionRecorder>, secondPassed: () => Promise<void>, close: () => Promise<void> }} Recording */

/** @returns {Recording} */
function count() {
  const recorder = new DecisionRecorder(systemClock)
  return { recorder, secondPassed: async () => recorder.secondPassed(), close: async () => {} }
}

/** @returns {() => Recording} */
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
 * @param {() => Recording} [record]
 * @returns {Promise<import('../measure.mjs').Contender>}
 */
async function gateContender(name, ips, record) {
  const recording = record?.()
  const gate = await openGate({ rules }, { observer: recording?.recorder })
  return {
    name,
    async close() {
      await gate.close()
      await recording?.close()
    },
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const clientIp = /** @type {string} */ (ips[/** @type {number} */ (order[i])])
        last = await gate.check({ clientIp, method: 'GET', path: '/api' })
        if (last.allowed) allowed++
      }
      await recording?.secondPassed()
      return { allowed, last }
    },
  }
}
