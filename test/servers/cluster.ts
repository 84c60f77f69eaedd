/** A cluster of six nodes: three primaries with a replica each. */

import { eventually } from '../fixtures/eventually.js'
import { claims, idOf, isUp, ownerInTheEyesOf } from './cluster-view.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { inSync } from './sentinel.js'
import { beginMove, type SlotMove } from './slot-move.js'

export interface ClusterOptions {
  /**
   * The time without a reply after which a node counts as failed, and its replica takes over without what it had not received. Default
   * 60,000: a machine that pauses must not cause this. Tests of failovers set a second.
   */
  readonly nodeTimeoutMs?: number
  readonly binary?: string
}

export interface Cluster {
  readonly nodes: readonly RedisServer[]
  primaryOf(slot: number): Promise<RedisServer>
  /** Kills the primary of a slot. Resolves when its replica has taken over and every running node knows it. */
  failover(slot: number): Promise<{ readonly killed: RedisServer; readonly promoted: RedisServer }>
  /** Moves a slot with its keys to another primary. Resolves when every running node knows it. */
  moveSlot(slot: number, to: RedisServer): Promise<void>
  /** Starts to move a slot: `migrating` on one node, `importing` on the other, and no key moved yet. */
  beginMove(slot: number, to: RedisServer): Promise<SlotMove>
  stop(): Promise<void>
}

const slots = 16_384
const shares: readonly (readonly [first: number, last: number])[] = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, slots - 1],
]

const formingTimeoutMs = 1_000

export async function startCluster({ nodeTimeoutMs = 60_000, binary }: ClusterOptions = {}): Promise<Cluster> {
  const config = [
    'cluster-enabled yes',
    // Nodes exchange what they know more often with a shorter timeout, so the cluster is formed sooner.
    `cluster-node-timeout ${formingTimeoutMs}`,
    'cluster-migration-barrier 100',
    // Nodes do not announce a replica to clients before its primary has pinged it.
    'repl-ping-replica-period 1',
    // A replica that was disconnected for long may still take over: a test has no better one.
    'cluster-replica-validity-factor 0',
  ]
  const start = () => startRedis({ config, ...(binary && { binary }) })
  const nodes = await Promise.all(Array.from({ length: 6 }, start))
  await form(nodes)
  if (nodeTimeoutMs !== formingTimeoutMs)
    for (const node of nodes) await node.call('CONFIG', 'SET', 'cluster-node-timeout', nodeTimeoutMs)

  const primaryOf = (slot: number) =>
    eventually(`a primary of slot ${slot}`, async () =>
      Promise.any(
        nodes.map(async (node) => {
          if (node.isRunning() && (await claims(node, slot))) return node
          throw new Error('not the owner')
        }),
      ),
    )
  const allSee = (slot: number, owner: RedisServer) =>
    eventually(`all nodes agree on the owner of slot ${slot}`, async () => {
      const running = nodes.filter((node) => node.isRunning())
      const owners = await Promise.all(running.map((node) => ownerInTheEyesOf(node, slot)))
      const up = await Promise.all(running.map(isUp))
      return owners.every((port) => port === owner.port) && up.every(Boolean)
    })
  const begin = async (slot: number, to: RedisServer) =>
    beginMove({ slot, from: await primaryOf(slot), to, nodes, settled: () => allSee(slot, to) })
  return {
    nodes,
    primaryOf,
    async failover(slot) {
      const killed = await primaryOf(slot)
      await killed.kill()
      const promoted = await primaryOf(slot)
      await allSee(slot, promoted)
      return { killed, promoted }
    },
    async moveSlot(slot, to) {
      const move = await begin(slot, to)
      await move.finish()
    },
    beginMove: begin,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

async function form(nodes: readonly RedisServer[]): Promise<void> {
  const primaries = nodes.slice(0, 3)
  await Promise.all(nodes.map((node, index) => node.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)))
  await Promise.all(primaries.map((node, index) => node.call('CLUSTER', 'ADDSLOTSRANGE', ...(shares[index] ?? []))))
  // Every node meets every other, instead of waiting for gossip.
  for (const [index, node] of nodes.entries()) {
    await Promise.all(nodes.slice(index + 1).map((other) => node.call('CLUSTER', 'MEET', other.host, other.port)))
  }
  const replicas = nodes.slice(3)
  await Promise.all(
    replicas.map(async (replica, index) => {
      const primary = primaries[index] as RedisServer
      const id = await idOf(primary)
      await eventually('the replica knows its primary', () => replica.call('CLUSTER', 'REPLICATE', id))
      await inSync(replica)
    }),
  )
  await eventually('the cluster is up', async () => {
    const ready = await Promise.all(nodes.map(async (node) => (await isUp(node)) && (await seesAllReplicas(node))))
    return ready.every(Boolean)
  })
}

async function seesAllReplicas(node: RedisServer): Promise<boolean> {
  const ranges = await node.call('CLUSTER', 'SLOTS')
  // For each range: first slot, last slot, primary, replica.
  return (
    Array.isArray(ranges) && ranges.length === 3 && ranges.every((range) => Array.isArray(range) && range.length === 4)
  )
}
