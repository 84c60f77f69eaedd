/** A cluster of three primaries with a replica each. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { isPrimary, isUp } from '../../servers/cluster-view.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { inSync } from '../../servers/sentinel.js'
import { nowUs } from '../history.js'
import type { Random } from '../schedule.js'
import { PrimaryWatch } from './primary-watch.js'
import { type MakeFault, moment, serverFaults, until } from './server-faults.js'
import type { Scene, Topology } from './topology.js'

export async function startClusterTopology(): Promise<Topology> {
  const cluster = await startCluster({ nodeTimeoutMs: 1_000 })
  const watch = new PrimaryWatch(cluster.nodes)
  await watch.answered()
  const faults: readonly MakeFault[] = [
    ...serverFaults({ all: cluster.nodes, primaries: () => primariesOf(cluster), usable: () => agreed(cluster) }),
    failover(cluster, watch, false),
    failover(cluster, watch, true),
    killPrimary(cluster),
    moveSlot(cluster),
    moveSlot(cluster),
  ]
  return {
    name: 'cluster',
    where: { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) },
    fault: (random) => random.pick(faults)(random),
    observations: () => watch.observations(),
    async settle() {
      await replicasInSync(cluster)
      await watch.answered()
    },
    async stop() {
      await watch.stop()
      await cluster.stop()
    },
  }
}

const primariesOf = async ({ nodes }: Cluster): Promise<readonly RedisServer[]> => {
  const running = nodes.filter((node) => node.isRunning())
  const flags = await Promise.all(running.map(isPrimary))
  return running.filter((_, index) => flags[index])
}

/** All running nodes are up and send clients to the same primaries. */
const agreed = (cluster: Cluster): Promise<boolean> =>
  until('the nodes agree on the primaries', async () => {
    const running = cluster.nodes.filter((node) => node.isRunning())
    const views = await Promise.all(running.map(async (node) => ((await isUp(node)) ? ownersSeenBy(node) : 'down')))
    return views.every((view) => view === views[0]) && views[0] !== 'down' && (await primariesOf(cluster)).length === 3
  })

async function ownersSeenBy(node: RedisServer): Promise<string> {
  const ranges = (await node.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
  return ranges
    .map(([first, last, [, port]]) => `${first}-${last} ${port}`)
    .sort()
    .join(', ')
}

async function replicasInSync(cluster: Cluster): Promise<void> {
  await agreed(cluster)
  const primaries = await primariesOf(cluster)
  await Promise.all(cluster.nodes.filter((node) => !primaries.includes(node)).map(inSync))
}

/** A replica takes over, with the agreement of its primary or without. */
const failover = (cluster: Cluster, watch: PrimaryWatch, isForced: boolean) => (random: Random) => {
  const chosen = random.whole(0, 2)
  return {
    text: `CLUSTER FAILOVER${isForced ? ' FORCE' : ''} on a replica`,
    takesMs: 800,
    async apply() {
      await replicasInSync(cluster)
      const primaries = await primariesOf(cluster)
      const replica = cluster.nodes.filter((node) => !primaries.includes(node))[chosen] as RedisServer
      const change = async () => {
        await replica.call('CLUSTER', 'FAILOVER', ...(isForced ? ['FORCE'] : []))
        await until('the replica is a primary', () => isPrimary(replica))
        await agreed(cluster)
      }
      await (isForced ? change() : watch.agreed(change))
      return moment('outage')
    },
  }
}

const killPrimary = (cluster: Cluster) => (random: Random) => {
  const slot = random.whole(0, 16_383)
  return {
    text: `SIGKILL the primary of slot ${slot}, start it again after the failover`,
    takesMs: 4_000,
    async apply() {
      await replicasInSync(cluster)
      const { killed } = await cluster.failover(slot)
      const to = nowUs()
      await killed.restart()
      await replicasInSync(cluster)
      return { to, explains: 'outage' as const }
    },
  }
}

/** The slot of one of the identities that are asked for, with a pause in the middle. */
const moveSlot = (cluster: Cluster) => (random: Random) => {
  const chosen = random.whole(0, 2)
  const target = random.whole(0, 1)
  const ms = random.whole(0, 300)
  return {
    text: `move the slot of user ${chosen} to another primary, with a pause of ${ms} ms`,
    takesMs: 500 + ms,
    async apply({ users }: Scene) {
      await agreed(cluster)
      const user = users[chosen] as string
      const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', `{${user}}`))
      const from = await cluster.primaryOf(slot)
      const others = (await primariesOf(cluster)).filter((node) => node !== from)
      const move = await cluster.beginMove(slot, others[target] as RedisServer)
      await pause(ms / 2)
      await move.moveKeys(2)
      await pause(ms / 2)
      await move.finish()
      return { ...moment('outage'), users: [user] }
    },
  }
}
