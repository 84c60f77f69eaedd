// @ts-check
/** Web frameworks: each as it is, with FluxGate, and with the limiter that people usually take for it. */
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { timesAs } from '../turns.mjs'

const sectionTitle = 'Frameworks'
const bare = 'without limits'
const ours = 'FluxGate'

/** The least part of the bare throughput that is demanded of some. */
const kept = 0.85
/** `alike` is FluxGate with the headers that the peer sends, where these are not as many. */
const frameworks = [
  { name: 'Express', file: 'express', peer: 'express-rate-limit', atLeast: kept },
  {
    name: 'Fastify',
    file: 'fastify',
    peer: '@fastify/rate-limit',
    atLeast: kept,
    alike: "FluxGate, headers: 'legacy'",
  },
  { name: 'Hono', file: 'hono', peer: 'hono-rate-limiter' },
  { name: 'Koa', file: 'koa' },
  { name: 'node:http', file: 'node' },
]

/** @type {import('../report.mjs').Section} */
export async function overFrameworks(effort) {
  const figures = []
  /** @type {import('../report.mjs').Ratio[]} */
  const ratios = []
  for (const { name, file, peer, atLeast, alike } of frameworks) {
    const contenders = [[bare], [ours, 'fluxgate']]
    if (alike !== undefined) contenders.push([alike, 'alike'])
    if (peer !== undefined) contenders.push([peer, 'peer'])
    const rows = await startedAnew(name, `apps/${file}.mjs`, contenders, effort)
    figures.push(requestFigures(name, rows, bare))
    const demand = (/** @type {string} */ which, /** @type {string} */ than, /** @type {number} */ atLeast) =>
      ratios.push({
        what: `${which.replace(ours, name)} : ${than}`,
        measured: timesAs(rows, 'perSecond', which, than),
        atLeast,
      })
    if (atLeast !== undefined) demand(ours, bare, atLeast)
    if (peer !== undefined) demand(ours, peer, 1)
    if (peer !== undefined && alike !== undefined) demand(alike, peer, 1)
  }
  return {
    title: sectionTitle,
    note: `A small JSON document, ${connections} connections, a server of one process, and another process that asks; all started anew for each of ${effort.http.rounds} rounds; buckets in memory, one limit per address that nobody reaches, and whatever headers a limiter sends unless told otherwise (express-rate-limit: those of the draft).`,
    tables: [],
    figures,
    ratios,
  }
}

/**
 * All are started anew for every round, another one first each time. Of two processes that run the same program, one may need
 * 3 µs more for every request for as long as it runs: where garbage is collected before the engine has compiled Node's own
 * `nextTick`, it never compiles it well. Nobody's figure should depend on that luck. It is the worse the more has been loaded,
 * so each program loads only what it measures.
 *
 * @param {string} name
 * @param {string} program
 * @param {readonly string[][]} contenders each with what its program is told
 * @param {import('../measure.mjs').Effort} effort
 * @returns {Promise<import('../http/rounds.mjs').Row[]>}
 */
async function startedAnew(name, program, contenders, effort) {
  const rows = contenders.map(([name = '']) => ({
    name,
    turns: /** @type {import('../http/rounds.mjs').Turn[]} */ ([]),
  }))
  const http = { ...effort.http, rounds: 1 }
  for (let start = 0; start < effort.http.rounds; start++) {
    const servers = []
    try {
      for (let turn = 0; turn < contenders.length; turn++) {
        const [name = '', ...args] = contenders[(start + turn) % contenders.length] ?? []
        servers.push(await startProgram(name, program, ...args))
      }
      const title = `${sectionTitle}, ${name}, start ${start + 1} of ${effort.http.rounds}`
      for (const { name, turns } of await serversInRounds(title, servers, { ...effort, http }))
        rows.find((row) => row.name === name)?.turns.push(...turns)
    } finally {
      for (const { stop } of servers) stop()
    }
  }
  return rows
}
