// @ts-check
/** Keys in memory: one process for each number of keys. All of them exist at the same time and take turns. */
import { startChild } from '../child.mjs'
import { seriesOf, visit } from './dimension.mjs'

const child = new URL('memory-child.mjs', import.meta.url)
const heap = ['--max-old-space-size=8192']

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function memoryKeys(effort) {
  const measured = async (/** @type {string} */ contender, /** @type {string} */ name) => {
    effort.progress(`Keys in memory: filling ${name}`)
    const children = effort.memoryKeys.map((keys) =>
      startChild(child, [contender, keys, effort.operations].map(String), heap),
    )
    try {
      await Promise.all(children.map(({ heard }) => heard()))
      return await visit(`Keys in memory, ${name}`, children.length, effort, (index) => {
        const { tell, heard } = /** @type {ReturnType<typeof startChild>} */ (children[index])
        tell('go')
        return heard()
      })
    } finally {
      for (const { stop } of children) stop()
    }
  }
  return {
    id: 'keys-memory',
    title: 'Keys in memory',
    axis: 'keys',
    per: 'decision',
    note: '`consumeSync` with keys in random order. A bare `Map` with a hand-written bucket shows how much of the growth is memory latency: with few keys, everything is in the CPU cache; with many, each decision waits for main memory a few times.',
    points: effort.memoryKeys,
    series: [
      seriesOf('FluxGate', await measured('fluxGate', 'FluxGate'), 'clientUs', true),
      seriesOf('bare Map', await measured('bareMap', 'bare Map'), 'clientUs'),
    ],
  }
}
