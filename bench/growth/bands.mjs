// @ts-check
/** Bands of a rule, in Redis. */
import { addresses } from '../access.mjs'
import { askForAll } from '../redis/bytes-per-key.mjs'
import { fluxGate } from '../redis/contenders.mjs'
import { takeTurn } from '../redis/rounds.mjs'
import { startServer } from '../redis/server.mjs'
import { seriesOf, visit } from './dimension.mjs'

const callers = 512
const keys = addresses(10_000)

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function bands(effort) {
  const server = await startServer()
  const askers = effort.bands.map((count) =>
    fluxGate(`${count} bands`, server.uri, {
      bands: Array.from({ length: count }, (_, i) => ({
        label: `band-${i}`,
        capacity: 10_000_000 * (i + 1),
        window: `${40 * (i + 1)}d`,
      })),
    }),
  )
  try {
    for (const asker of askers) await askForAll(asker, keys)
    const turns = await visit('Bands', askers.length, effort, (index) =>
      takeTurn(
        server,
        /** @type {import('../redis/closed-loop.mjs').Asker} */ (askers[index]),
        keys,
        callers,
        effort.seconds,
      ),
    )
    return {
      id: 'bands',
      title: 'Bands',
      axis: 'bands',
      per: 'decision',
      note: `EXACT, all bands of one rule in one script call, ${callers} callers in one process, ${keys.length.toLocaleString('en')} keys.`,
      points: effort.bands,
      series: [seriesOf('process', turns, 'clientUs'), seriesOf('Redis', turns, 'serverUs')],
    }
  } finally {
    for (const { close } of askers) await close()
    await server.stop()
  }
}
