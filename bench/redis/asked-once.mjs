// @ts-check
/** Keys that are requested exactly once, where leases can only cost: each turn uses keys that Redis has never seen. */
import { shuffles } from '../access.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { timesAs, typical } from '../turns.mjs'
import { askForAll } from './bytes-per-key.mjs'
import { fluxGate } from './contenders.mjs'
import { workOf } from './server.mjs'

const band = { capacity: 1_000, window: '1h' }
const exact = 'FluxGate'
const leased = 'FluxGate, LEASED'

/** @typedef {{ serverUs: number, clientUs: number, perSecond: number }} Turn */

/** @type {(server: import('./server.mjs').RedisServer, effort: import('../results/report.mjs').Pace) => Promise<{ figures: import('../results/report.mjs').FigureTable, ratio: import('../results/report.mjs').Ratio }>} */
export async function askedOnce(server, { redis: { onceKeys, warmUps, rounds }, progress }) {
  const askers = [fluxGate(exact, server.uri, band), fluxGate(leased, server.uri, { ...band, consistency: 'LEASED' })]
  const rows = askers.map(({ name }) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
  const nextOrder = shuffles(askers.length)
  for (let round = -warmUps; round < rounds; round++) {
    progress(`Redis, keys requested once: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
    for (const index of nextOrder()) {
      await server.call('FLUSHALL', 'SYNC')
      const keys = Array.from({ length: onceKeys }, (_, i) => `user:${round}:${i}`)
      const took = await timed(server, /** @type {import('./closed-loop.mjs').Asker} */ (askers[index]), keys)
      if (round >= 0) rows[index]?.turns.push(took)
    }
  }
  for (const { close } of askers) await close()
  const title = `${onceKeys.toLocaleString('en')} keys requested once each`
  return {
    figures: {
      title: `${title}, 512 callers`,
      head: ['contender', 'decisions/s', 'client µs', 'server µs', `server µs relative to ${exact}`],
      lines: rows.map((row) => [
        row.name,
        figure(typical(row, 'perSecond')),
        figure(typical(row, 'clientUs'), 1),
        figure(typical(row, 'serverUs'), 1),
        spreadFigure(timesAs(rows, 'serverUs', row.name, exact)),
      ]),
    },
    ratio: {
      what: `CPU time of Redis, LEASED vs EXACT, ${title}`,
      measured: timesAs(rows, 'serverUs', leased, exact),
      atMost: 1,
    },
  }
}

/** @type {(server: import('./server.mjs').RedisServer, asker: import('./closed-loop.mjs').Asker, keys: readonly string[]) => Promise<Turn>} */
async function timed(server, asker, keys) {
  const before = await workOf(server)
  const usedBefore = process.cpuUsage()
  const startedAt = performance.now()
  await askForAll(asker, keys)
  const seconds = (performance.now() - startedAt) / 1000
  const used = process.cpuUsage(usedBefore)
  const after = await workOf(server)
  return {
    serverUs: (after.serverUs - before.serverUs) / keys.length,
    clientUs: (used.user + used.system) / keys.length,
    perSecond: keys.length / seconds,
  }
}
