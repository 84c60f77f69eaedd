// @ts-check
/**
 * Keys in Redis. One server is filled step by step. After each step, its turns alternate with turns on a second server that
 * has only the keys of the first step, so that both sides of a ratio are measured under the same conditions.
 */
import { seededRandom } from '../../dist/core/seeded-random.js'
import { Broken, median } from '../measure.mjs'
import { fluxGate } from '../redis/contenders.mjs'
import { takeTurn } from '../redis/rounds.mjs'
import { startServer, usedMemory } from '../redis/server.mjs'
import { visit } from './dimension.mjs'

const callers = 512
/** Different keys in a turn. */
const sample = 200_000
const band = { capacity: 100_000, window: '365d' }
const keyOf = (/** @type {number} */ i) => `user:${100_000_000 + i}`

/** @typedef {import('../redis/rounds.mjs').Turn} Turn */

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension & { bytesPerKey: number }>} */
export async function redisKeys(effort) {
  const [server, smallServer] = [await startServer(), await startServer()]
  const [asker, smallAsker] = [server, smallServer].map(({ uri }) => fluxGate('FluxGate', uri, band))
  if (asker === undefined || smallAsker === undefined) throw new Broken('A limiter is missing.')
  const random = seededRandom(20_240_229)
  try {
    // The first decision loads the script and opens the connection, which no key causes.
    await asker.ask(keyOf(0))
    await server.call('FLUSHALL', 'SYNC')
    const emptyBytes = await usedMemory(server)
    const asked = (/** @type {number} */ keys) =>
      Array.from({ length: sample }, () => keyOf(Math.floor(random() * keys)))
    const few = effort.redisKeys[0] ?? 0
    await fill(smallAsker, 0, few, effort.progress)
    let filled = 0
    /** @type {{ first: Turn[], all: Turn[], bytesPerKey: number }[]} */
    const points = []
    for (const keys of effort.redisKeys) {
      await fill(asker, filled, keys, effort.progress)
      filled = keys
      const bytesPerKey = ((await usedMemory(server)) - emptyBytes) / keys
      const [first = [], all = []] = await visit(`${keys.toLocaleString('en')} keys in Redis`, 2, effort, (index) =>
        index === 0
          ? takeTurn(smallServer, smallAsker, asked(few), callers, effort.seconds)
          : takeTurn(server, asker, asked(keys), callers, effort.seconds),
      )
      points.push({ first, all, bytesPerKey })
    }
    /** @type {(name: string, figure: 'clientUs' | 'serverUs') => import('./dimension.mjs').Series} */
    const series = (name, figure) => ({
      name,
      mustBeFlat: true,
      costs: points.map(({ all }) => all.map((turn) => turn[figure])),
      ratios: points.map(({ first, all }) => all.map((turn, i) => turn[figure] / (first[i]?.[figure] ?? Number.NaN))),
    })
    const bytesPerKey = points.map((point) => point.bytesPerKey)
    return {
      id: 'keys-redis',
      title: 'Keys in Redis',
      axis: 'keys',
      per: 'decision',
      note: `EXACT, one band, ${callers} callers in one process, keys in random order. The growth compares alternating turns on this server and on another one with ${few.toLocaleString('en')} keys.`,
      points: effort.redisKeys,
      series: [series('process', 'clientUs'), series('Redis', 'serverUs')],
      columns: [
        { name: 'decisions/s', digits: 0, values: points.map(({ all }) => median(all.map((turn) => turn.perSecond))) },
        { name: 'used_memory per key, bytes', digits: 0, values: bytesPerKey },
      ],
      bytesPerKey: bytesPerKey.at(-1) ?? Number.NaN,
    }
  } finally {
    for (const each of [asker, smallAsker]) await each.close()
    for (const each of [server, smallServer]) await each.stop()
  }
}

/** Requests each of the keys `from` to `to` once. @type {(asker: import('../redis/closed-loop.mjs').Asker, from: number, to: number, progress: (text: string) => void) => Promise<void>} */
async function fill({ ask, isAllowed }, from, to, progress) {
  let next = from
  const caller = async () => {
    while (next < to) {
      if (next % 100_000 === 0) progress(`Keys in Redis: ${next.toLocaleString('en')} of ${to.toLocaleString('en')}`)
      if (!isAllowed(await ask(keyOf(next++)))) throw new Broken('A new key was rejected.')
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
}
