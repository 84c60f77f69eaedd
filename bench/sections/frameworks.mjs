// @ts-check
/** Web frameworks without a limiter, with FluxGate, and with the usual limiter for that framework. */
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { timesAs } from '../turns.mjs'

const sectionTitle = 'Frameworks'
const bare = 'no limiter'
const ours = 'FluxGate'

/** Minimum throughput relative to the framework without a limiter. */
const leastShare = 0.85
/** `alike` is FluxGate with the same headers as the other limiter, if that sends fewer. */
const frameworks = [
  { name: 'Express', file: 'express', peer: 'express-rate-limit', atLeast: leastShare },
  {
    name: 'Fastify',
    file: 'fastify',
    peer: '@fastify/rate-limit',
    atLeast: leastShare,
    alike: "FluxGate, headers: 'legacy'",
  },
  { name: 'Hono', file: 'hono', peer: 'hono-rate-limiter' },
  { name: 'Koa', file: 'koa' },
  { name: 'node:http', file: 'node' },
]

/** @type {import('../results/report.mjs').Section} */
export async function overFrameworks(effort) {
  const figures = []
  /** @type {import('../results/report.mjs').Ratio[]} */
  const ratios = []
  for (const { name, file, peer, atLeast, alike } of frameworks) {
    const contenders = [[bare], [ours, 'fluxgate']]
    if (alike !== undefined) contenders.push([alike, 'alike'])
    if (peer !== undefined) contenders.push([peer, 'peer'])
    const rows = await measured(name, `apps/${file}.mjs`, contenders, effort)
    figures.push(requestFigures(name, rows, bare))
    const addTarget = (/** @type {string} */ which, /** @type {string} */ than, /** @type {number} */ atLeast) =>
      ratios.push({
        what: `${which.replace(ours, name)} vs ${than}`,
        measured: timesAs(rows, 'perSecond', which, than),
        atLeast,
      })
    if (atLeast !== undefined) addTarget(ours, bare, atLeast)
    if (peer !== undefined) addTarget(ours, peer, 1)
    if (peer !== undefined && alike !== undefined) addTarget(alike, peer, 1)
  }
  return {
    title: sectionTitle,
    note: `A small JSON response, ${connections} connections from a load generator to one server process, started for each run; buckets in memory, one limit per address that is never reached, and the default headers of each limiter (express-rate-limit: draft-8).`,
    tables: [],
    figures,
    ratios,
  }
}

/**
 * Starts the servers of a framework and measures them. Of two processes with the same program, one may need 3 µs more for
 * every request throughout its life: if garbage is collected before V8 has compiled Node's own `nextTick`, it is never
 * optimised well. Every run starts new servers, which averages this out. The effect grows with the amount of loaded code, so
 * each program loads only what it measures.
 *
 * @param {string} name
 * @param {string} program
 * @param {readonly string[][]} contenders name, and arguments of its program
 * @param {import('../results/report.mjs').Pace} effort
 */
async function measured(name, program, contenders, effort) {
  const servers = []
  try {
    for (const [name = '', ...args] of contenders) servers.push(await startProgram(name, program, ...args))
    return await serversInRounds(`${sectionTitle}, ${name}`, servers, effort)
  } finally {
    for (const { stop } of servers) stop()
  }
}
