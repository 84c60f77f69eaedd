// @ts-check
/** Servers that take turns under one load generator. The figure is wall-clock time; CPU time is listed in addition. */
import { Broken } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { timesAs, typical } from '../turns.mjs'
import { cpuTimeUs, startLoad } from './processes.mjs'

/**
 * @typedef {import('./load.mjs').Outcome & { serverUs: number }} Turn
 * @typedef {import('../turns.mjs').Row<Turn>} Row
 */

export const connections = 64

/**
 * @param {string} title
 * @param {readonly import('./processes.mjs').Listening[]} servers
 * @param {import('../results/report.mjs').Pace} effort
 * @returns {Promise<Row[]>}
 */
export async function serversInRounds(title, servers, { http: { warmUps, rounds, seconds }, progress }) {
  const load = await startLoad()
  const rows = servers.map(({ name }) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
  try {
    for (let round = -warmUps; round < rounds; round++) {
      progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
      for (let turn = 0; turn < servers.length; turn++) {
        const index = (turn + round + warmUps) % servers.length
        const server = /** @type {import('./processes.mjs').Listening} */ (servers[index])
        const { name, port, pid, request } = server
        const usedBefore = cpuTimeUs(pid)
        const outcome = await load.ask({
          port,
          connections: server.connections ?? connections,
          seconds,
          ...(request && { request }),
        })
        if (outcome.others > 0)
          throw new Broken(`${name} answered ${outcome.others} requests with a status other than 200.`)
        const serverUs = (cpuTimeUs(pid) - usedBefore) / (outcome.perSecond * seconds)
        if (round >= 0) rows[index]?.turns.push({ ...outcome, serverUs })
      }
    }
  } finally {
    load.stop()
  }
  return rows
}

/**
 * @param {string} title
 * @param {readonly Row[]} rows
 * @param {string} baseline
 * @returns {import('../results/report.mjs').FigureTable}
 */
export function requestFigures(title, rows, baseline) {
  const lines = rows.map((row) => [
    row.name,
    figure(typical(row, 'perSecond')),
    ...[typical(row, 'p50Ms'), typical(row, 'p99Ms')].map((ms) => figure(ms, 2)),
    figure(typical(row, 'serverUs'), 1),
    spreadFigure(timesAs(rows, 'perSecond', row.name, baseline)),
  ])
  const head = ['contender', 'requests/s', 'p50 ms', 'p99 ms', 'server µs', `relative to ${baseline}`]
  return { title, head, lines }
}
