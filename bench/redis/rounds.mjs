// @ts-check
/**
 * Askers take turns in rounds, as in measure.mjs. A part of the work is done by the server, so that what counts here is
 * the clock; what it cost both sides in CPU time is told beside it.
 *
 * @typedef {import('./closed-loop.mjs').Asker} Asker
 *
 * @typedef {object} Turn
 * @property {number} perSecond decisions
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} clientUs CPU time of this process per decision
 * @property {number} scriptUs time that the server spent in scripts, per decision
 * @property {number} serverUs CPU time of the server per decision, with what is not in scripts
 *
 * @typedef {import('../turns.mjs').Row<Turn>} Row
 */
import { Broken, collectGarbage, quantile } from '../measure.mjs'
import { timesAs, typical } from '../turns.mjs'
import { keepAsking } from './closed-loop.mjs'
import { workOf } from './server.mjs'

/**
 * @param {string} title
 * @param {import('./server.mjs').RedisServer} server
 * @param {readonly Asker[]} askers
 * @param {readonly string[]} keys in the order in which they are asked for
 * @param {number} concurrency
 * @param {import('../measure.mjs').Effort} effort
 * @returns {Promise<Row[]>}
 */
export async function inRounds(title, server, askers, keys, concurrency, { redis, progress }) {
  const { warmUps, rounds, seconds } = redis
  const rows = askers.map(({ name }) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
  for (let round = -warmUps; round < rounds; round++) {
    progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
    for (let turn = 0; turn < askers.length; turn++) {
      const index = (turn + round + warmUps) % askers.length
      const took = await takeTurn(server, /** @type {Asker} */ (askers[index]), keys, concurrency, seconds)
      if (round >= 0) rows[index]?.turns.push(took)
    }
  }
  return rows
}

/**
 * @param {import('./server.mjs').RedisServer} server
 * @param {Asker} asker
 * @param {readonly string[]} keys
 * @param {number} concurrency
 * @param {number} seconds
 * @returns {Promise<Turn>}
 */
async function takeTurn(server, asker, keys, concurrency, seconds) {
  collectGarbage('minor')
  const before = await workOf(server)
  const usedBefore = process.cpuUsage()
  const { allowed, waitsMs, elapsedMs } = await keepAsking(asker, keys, concurrency, seconds)
  const used = process.cpuUsage(usedBefore)
  const after = await workOf(server)
  const decisions = waitsMs.length
  if (allowed !== decisions) throw new Broken(`${asker.name} let ${allowed} of ${decisions} requests through.`)
  return {
    perSecond: (decisions * 1000) / elapsedMs,
    p50Ms: quantile(waitsMs, 0.5),
    p99Ms: quantile(waitsMs, 0.99),
    clientUs: (used.user + used.system) / decisions,
    scriptUs: (after.scriptUs - before.scriptUs) / decisions,
    serverUs: (after.serverUs - before.serverUs) / decisions,
  }
}

/**
 * @param {string} title
 * @param {readonly Row[]} rows
 * @param {string} baseline
 * @returns {import('../report.mjs').FigureTable}
 */
export function speedFigures(title, rows, baseline) {
  const head = [
    'decisions/s',
    'p50 ms',
    'p99 ms',
    'client µs',
    'script µs',
    'server µs',
    `times as fast as ${baseline}`,
  ]
  const lines = rows.map((row) => [
    row.name,
    Math.round(typical(row, 'perSecond')).toLocaleString('en'),
    ...[typical(row, 'p50Ms'), typical(row, 'p99Ms')].map((ms) => ms.toFixed(2)),
    ...[typical(row, 'clientUs'), typical(row, 'scriptUs'), typical(row, 'serverUs')].map((us) => us.toFixed(1)),
    timesAs(rows, 'perSecond', row.name, baseline).toFixed(2),
  ])
  return { title, head: ['contender', ...head], lines }
}
