// @ts-check
/**
 * Contenders take turns in rounds, as in measure.mjs. The server does part of the work, so the figure is wall-clock time; the
 * CPU time of both sides is listed in addition.
 *
 * @typedef {import('./closed-loop.mjs').Asker} Asker
 *
 * @typedef {object} Turn
 * @property {number} perSecond decisions per second
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} clientUs CPU time of this process per decision
 * @property {number} scriptUs time that the server spent in scripts, per decision
 * @property {number} serverUs total CPU time of the server, per decision
 *
 * @typedef {import('../turns.mjs').Row<Turn>} Row
 */
import { Broken, collectGarbage, quantile } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { timesAs, typical } from '../turns.mjs'
import { keepAsking } from './closed-loop.mjs'
import { workOf } from './server.mjs'

/**
 * @param {string} title
 * @param {import('./server.mjs').RedisServer} server
 * @param {readonly Asker[]} askers
 * @param {readonly string[]} keys in the order of the requests
 * @param {number} concurrency
 * @param {import('../results/report.mjs').Pace} effort
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
export async function takeTurn(server, asker, keys, concurrency, seconds) {
  collectGarbage('minor')
  const before = await workOf(server)
  const usedBefore = process.cpuUsage()
  const { decisions, allowed, waitsMs, elapsedMs } = await keepAsking(asker, keys, concurrency, seconds)
  const used = process.cpuUsage(usedBefore)
  const after = await workOf(server)
  if (allowed !== decisions) throw new Broken(`${asker.name} allowed ${allowed} of ${decisions} requests.`)
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
 * @returns {import('../results/report.mjs').FigureTable}
 */
export function speedFigures(title, rows, baseline) {
  const head = ['decisions/s', 'p50 ms', 'p99 ms', 'client µs', 'script µs', 'server µs', `relative to ${baseline}`]
  const lines = rows.map((row) => [
    row.name,
    figure(typical(row, 'perSecond')),
    ...[typical(row, 'p50Ms'), typical(row, 'p99Ms')].map((ms) => figure(ms, 2)),
    ...[typical(row, 'clientUs'), typical(row, 'scriptUs'), typical(row, 'serverUs')].map((us) => figure(us, 1)),
    spreadFigure(timesAs(rows, 'perSecond', row.name, baseline)),
  ])
  return { title, head: ['contender', ...head], lines }
}
