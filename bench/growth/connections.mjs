// @ts-check
/** Connections of clients at the gateway. */
import { cpuTimeUs, startLoad, startProgram } from '../http/processes.mjs'
import { Broken, median } from '../measure.mjs'
import { seriesOf, visit } from './dimension.mjs'

/** Opening thousands of connections takes part of a turn, so turns are longer than elsewhere. */
const longer = 3

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function connections(effort) {
  const upstream = await startProgram('upstream', '../http/upstream.mjs')
  const gateway = await startProgram('gateway', '../http/proxies/fluxgate.mjs', String(upstream.port))
  const load = await startLoad()
  try {
    const turns = await visit('Connections', effort.connections.length, effort, async (index) => {
      const before = cpuTimeUs(gateway.pid)
      const count = effort.connections[index] ?? 1
      const seconds = effort.seconds * longer
      const outcome = await load.ask({ port: gateway.port, connections: count, seconds })
      if (outcome.others > 0) throw new Broken(`The gateway answered ${outcome.others} requests with another status.`)
      const requests = outcome.answered
      return { ...outcome, serverUs: (cpuTimeUs(gateway.pid) - before) / requests }
    })
    const medians = (/** @type {'perSecond' | 'p50Ms' | 'p99Ms'} */ figure) =>
      turns.map((of) => median(of.map((turn) => turn[figure])))
    return {
      id: 'connections',
      title: 'Connections at the gateway',
      axis: 'connections',
      per: 'request',
      note: 'One gateway process with one limit in memory, one upstream, one request at a time on each connection. The figures include opening the connections.',
      points: effort.connections,
      series: [seriesOf('gateway', turns, 'serverUs')],
      columns: [
        { name: 'requests/s', digits: 0, values: medians('perSecond') },
        { name: 'p50 ms', digits: 2, values: medians('p50Ms') },
        { name: 'p99 ms', digits: 2, values: medians('p99Ms') },
      ],
    }
  } finally {
    for (const { stop } of [load, gateway, upstream]) stop()
  }
}
