// @ts-check
/** Web frameworks: each as it is, with FluxGate, and with the limiter that people usually take for it. */
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { timesAs } from '../turns.mjs'

const title = 'Frameworks'
const bare = 'without limits'
const ours = 'FluxGate'

/**
 * How often all are started anew. Of two processes that run the same program, one may need 3 µs more for every request for as
 * long as it runs: whether the engine ever compiles Node's own `nextTick` well is a matter of luck, which nobody's figure
 * should depend on.
 */
const starts = 5

/** The least part of the bare throughput that is demanded of some. */
const kept = 0.85
const frameworks = [
  { name: 'Express', file: 'express', peer: 'express-rate-limit', atLeast: kept },
  { name: 'Fastify', file: 'fastify', peer: '@fastify/rate-limit', atLeast: kept },
  { name: 'Hono', file: 'hono', peer: 'hono-rate-limiter' },
  { name: 'Koa', file: 'koa' },
  { name: 'node:http', file: 'node' },
]

/** @type {import('../report.mjs').Section} */
export async function overFrameworks(effort) {
  const figures = []
  /** @type {import('../report.mjs').Ratio[]} */
  const ratios = []
  for (const { name, file, peer, atLeast } of frameworks) {
    const rows = await startedAnew(name, `apps/${file}.mjs`, peer, effort)
    figures.push(requestFigures(name, rows, bare))
    const timesAsFast = (/** @type {string} */ than) => timesAs(rows, 'perSecond', ours, than)
    if (atLeast !== undefined) ratios.push({ what: `${name} : ${bare}`, measured: timesAsFast(bare), atLeast })
    if (peer !== undefined) ratios.push({ what: `${name} : ${peer}`, measured: timesAsFast(peer), atLeast: 1 })
  }
  return {
    title,
    note: `A small JSON document, ${connections} connections, a server of one process, and another process that asks; all started ${starts} times; buckets in memory, one limit per address that nobody reaches, and whatever headers a limiter sends unless told otherwise (express-rate-limit: those of the draft).`,
    tables: [],
    figures,
    ratios,
  }
}

/**
 * @param {string} name
 * @param {string} program
 * @param {string | undefined} peer
 * @param {import('../measure.mjs').Effort} effort
 * @returns {Promise<import('../http/rounds.mjs').Row[]>}
 */
async function startedAnew(name, program, peer, effort) {
  const http = { ...effort.http, rounds: Math.ceil(effort.http.rounds / starts) }
  /** @type {import('../http/rounds.mjs').Row[]} */
  let all = []
  for (let start = 1; start <= starts; start++) {
    const servers = [await startProgram(bare, program), await startProgram(ours, program, 'fluxgate')]
    if (peer !== undefined) servers.push(await startProgram(peer, program, 'peer'))
    try {
      const rows = await serversInRounds(`${title}, ${name}, start ${start}`, servers, { ...effort, http })
      all = rows.map(({ name, turns }, index) => ({ name, turns: [...(all[index]?.turns ?? []), ...turns] }))
    } finally {
      for (const { stop } of servers) stop()
    }
  }
  return all
}
