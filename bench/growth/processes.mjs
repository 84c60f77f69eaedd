// @ts-check
/** Processes that share limits in one Redis. All of them exist at the same time; the first ones take part in a turn. */
import { startChild } from '../child.mjs'
import { median } from '../measure.mjs'
import { startServer, workOf } from '../redis/server.mjs'
import { seriesOf, visit } from './dimension.mjs'

const child = new URL('process-child.mjs', import.meta.url)
const exactKeys = 10_000
const hotKeys = 100

/** @typedef {{ clientUs: number, serverUs: number, perSecond: number, leastShare: number }} Turn */

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function processes(effort) {
  const exact = await measured('EXACT', exactKeys, effort)
  const leased = await measured('LEASED', hotKeys, effort)
  /** @type {(turns: readonly (readonly Turn[])[], figure: keyof Turn) => number[]} */
  const medians = (turns, figure) => turns.map((of) => median(of.map((turn) => turn[figure])))
  return {
    id: 'processes',
    title: 'Processes',
    axis: 'processes',
    per: 'decision',
    note: `64 callers in each process, limits shared in one Redis. EXACT with ${exactKeys.toLocaleString('en')} keys, LEASED with ${hotKeys} busy keys. The smallest share is the number of decisions of the slowest process relative to an equal share; all processes compete for the cores of the machine.`,
    points: effort.processes,
    series: [
      seriesOf('EXACT, processes', exact, 'clientUs', true),
      seriesOf('EXACT, Redis', exact, 'serverUs', true),
      seriesOf('LEASED, processes', leased, 'clientUs', true),
      seriesOf('LEASED, Redis', leased, 'serverUs'),
    ],
    columns: [
      { name: 'EXACT decisions/s', digits: 0, values: medians(exact, 'perSecond') },
      { name: 'LEASED decisions/s', digits: 0, values: medians(leased, 'perSecond') },
      { name: 'EXACT smallest share', digits: 2, values: medians(exact, 'leastShare') },
      { name: 'LEASED smallest share', digits: 2, values: medians(leased, 'leastShare') },
    ],
  }
}

/** @type {(consistency: string, keys: number, effort: import('./dimension.mjs').GrowthEffort) => Promise<Turn[][]>} */
async function measured(consistency, keys, effort) {
  const server = await startServer()
  const most = Math.max(...effort.processes)
  const children = Array.from({ length: most }, () => startChild(child, [server.uri, consistency, String(keys)]))
  try {
    await Promise.all(children.map(({ heard }) => heard()))
    // Compiles the code of each process: some of them take part in few turns.
    for (const { tell, heard } of children) {
      tell(2 * effort.seconds)
      await heard()
    }
    return await visit(`Processes, ${consistency}`, effort.processes.length, effort, async (index) => {
      const active = children.slice(0, effort.processes[index])
      const before = await workOf(server)
      const outcomes = await Promise.all(
        active.map(({ tell, heard }) => {
          tell(effort.seconds)
          return /** @type {Promise<{ decisions: number, cpuUs: number }>} */ (heard())
        }),
      )
      const after = await workOf(server)
      const decisions = outcomes.reduce((sum, outcome) => sum + outcome.decisions, 0)
      const least = Math.min(...outcomes.map((outcome) => outcome.decisions))
      return {
        clientUs: outcomes.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / decisions,
        serverUs: (after.serverUs - before.serverUs) / decisions,
        perSecond: decisions / effort.seconds,
        leastShare: (least * active.length) / decisions,
      }
    })
  } finally {
    for (const { stop } of children) stop()
    await server.stop()
  }
}
