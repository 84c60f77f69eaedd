// @ts-check
/** Primaries of a Redis Cluster. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster } from 'ioredis'
import { addresses } from '../access.mjs'
import { Broken, median } from '../measure.mjs'
import { askForAll } from '../redis/bytes-per-key.mjs'
import { keepAsking } from '../redis/closed-loop.mjs'
import { fluxGateOver } from '../redis/contenders.mjs'
import { startServer, workOf } from '../redis/server.mjs'
import { seriesOf, visit } from './dimension.mjs'

const callers = 512
const keys = addresses(10_000)
const slots = 16_384

/** @type {(effort: import('./dimension.mjs').GrowthEffort) => Promise<import('./dimension.mjs').Dimension>} */
export async function cluster(effort) {
  /** @type {import('../redis/server.mjs').RedisServer[][]} */
  const clusters = []
  try {
    for (const count of effort.primaries) {
      effort.progress(`Cluster: starting ${count} primaries`)
      clusters.push(await startPrimaries(count))
    }
    const askers = clusters.map((nodes) => {
      const client = new Cluster(nodes.map(({ host, port }) => ({ host, port })))
      client.on('error', () => {})
      const close = () => client.disconnect()
      return fluxGateOver('FluxGate', { capacity: 100_000_000, window: '365d' }, { client, close })
    })
    for (const asker of askers) await askForAll(asker, keys)
    const turns = await visit('Cluster', askers.length, effort, async (index) => {
      const [asker, nodes = []] = [askers[index], clusters[index]]
      if (asker === undefined) throw new Broken('A cluster is missing.')
      const before = await Promise.all(nodes.map(workOf))
      const usedBefore = process.cpuUsage()
      const { decisions, elapsedMs } = await keepAsking(asker, keys, callers, effort.seconds)
      const used = process.cpuUsage(usedBefore)
      const after = await Promise.all(nodes.map(workOf))
      const serverUs = after.map((work, i) => work.serverUs - (before[i]?.serverUs ?? 0))
      const total = serverUs.reduce((sum, us) => sum + us, 0)
      return {
        clientUs: (used.user + used.system) / decisions,
        serverUs: total / decisions,
        busiest: (Math.max(...serverUs) * nodes.length) / total,
        perSecond: (decisions * 1000) / elapsedMs,
      }
    })
    for (const { close } of askers) await close()
    const medians = (/** @type {'busiest' | 'perSecond'} */ figure) =>
      turns.map((of) => median(of.map((turn) => turn[figure])))
    return {
      id: 'cluster',
      title: 'Cluster',
      axis: 'primaries',
      per: 'decision',
      note: `EXACT, one band, ${callers} callers in one process, ${keys.length.toLocaleString('en')} keys. The cost of Redis is the sum over all primaries. The load of the busiest primary is relative to an equal share. Decisions per second grow only with more cores than this machine has.`,
      points: effort.primaries,
      series: [seriesOf('process', turns, 'clientUs'), seriesOf('Redis', turns, 'serverUs')],
      columns: [
        { name: 'decisions/s', digits: 0, values: medians('perSecond') },
        { name: 'load of the busiest primary', digits: 2, values: medians('busiest') },
      ],
    }
  } finally {
    for (const nodes of clusters) await Promise.all(nodes.map((node) => node.stop()))
  }
}

/** Starts a cluster without replicas. */
async function startPrimaries(/** @type {number} */ count) {
  // A node without peers does not know its own address.
  const config = ['cluster-enabled yes', 'cluster-node-timeout 5000', 'cluster-announce-ip 127.0.0.1']
  const nodes = await Promise.all(Array.from({ length: count }, () => startServer({ config })))
  for (const [i, node] of nodes.entries()) {
    const [first, last] = [i, i + 1].map((part) => Math.floor((part * slots) / count))
    await node.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    await node.call('CLUSTER', 'ADDSLOTSRANGE', first ?? 0, (last ?? slots) - 1)
    for (const other of nodes.slice(i + 1)) await node.call('CLUSTER', 'MEET', other.host, other.port)
  }
  for (let look = 0; look < 300; look++) {
    const infos = await Promise.all(nodes.map((node) => node.call('CLUSTER', 'INFO')))
    if (
      infos.every(
        (info) => String(info).includes('cluster_state:ok') && String(info).includes(`cluster_size:${count}\r`),
      )
    )
      return nodes
    await sleep(100)
  }
  await Promise.all(nodes.map((node) => node.stop()))
  throw new Broken(`A cluster of ${count} primaries did not become ready within 30 s.`)
}
