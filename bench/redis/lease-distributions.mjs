// @ts-check
/** CPU time of Redis under LEASED and EXACT, for several distributions of keys, from one calling process. */
import { Broken } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { timesAs, typical } from '../turns.mjs'
import { keepAsking } from './closed-loop.mjs'
import { fluxGate } from './contenders.mjs'
import { keyDistributions } from './key-distributions.mjs'
import { workOf } from './server.mjs'

/**
 * @typedef {{ perSecond: number, serverUs: number }} Turn
 * @typedef {import('../turns.mjs').Row<Turn>} Row
 * @typedef {import('./closed-loop.mjs').Asker} Asker
 */

export const modes = /** @type {const} */ (['EXACT', 'LEASED'])
/** Never reached. */
export const highLimit = { capacity: 100_000_000, window: '1d' }
const callers = 512

/** @type {(server: import('./server.mjs').RedisServer, effort: import('../results/report.mjs').Pace) => Promise<{ table: import('../results/report.mjs').FigureTable, ratios: readonly { name: string, measured: number }[] }>} */
export async function leaseDistributions(server, effort) {
  const { memoryKeys, seconds, warmUps, rounds } = effort.redis
  const lines = []
  const ratios = []
  for (const distribution of keyDistributions(memoryKeys)) {
    const rows = modes.map((name) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
    const askers = modes.map((mode) => fluxGate(mode, server.uri, { ...highLimit, consistency: mode }))
    for (let round = -warmUps; round < rounds; round++) {
      effort.progress(`Leases, ${distribution.name}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
      for (let turn = 0; turn < askers.length; turn++) {
        const index = (turn + round + warmUps) % askers.length
        const took = await takeTurn(server, /** @type {Asker} */ (askers[index]), distribution, seconds * 2)
        if (round >= 0) rows[index]?.turns.push(took)
      }
    }
    for (const { close } of askers) await close()
    const measured = timesAs(rows, 'serverUs', 'LEASED', 'EXACT')
    ratios.push({ name: distribution.name, measured })
    lines.push([distribution.name, ...rows.flatMap(figuresOf), spreadFigure(measured)])
  }
  const head = modes.flatMap((mode) => [`${mode}: decisions/s`, `${mode}: Redis CPU µs`])
  return {
    table: { title: `Distributions of keys, ${callers} callers`, head: ['keys', ...head, 'ratio'], lines },
    ratios,
  }
}

const figuresOf = (/** @type {Row} */ row) => [figure(typical(row, 'perSecond')), figure(typical(row, 'serverUs'), 2)]

/** @type {(server: import('./server.mjs').RedisServer, asker: Asker, distribution: import('./key-distributions.mjs').Distribution, seconds: number) => Promise<Turn>} */
async function takeTurn(server, asker, { keys }, seconds) {
  const before = await workOf(server)
  const took = await keepAsking(asker, keys, callers, seconds)
  const after = await workOf(server)
  const { decisions } = took
  if (took.allowed !== decisions) throw new Broken(`${asker.name} allowed ${took.allowed} of ${decisions} requests.`)
  return {
    perSecond: (decisions * 1000) / took.elapsedMs,
    serverUs: (after.serverUs - before.serverUs) / decisions,
  }
}
