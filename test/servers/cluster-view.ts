/** Cluster state as one node reports it. */
import type { RedisServer } from './redis-server.js'

export const idOf = async (node: RedisServer): Promise<string> => String(await node.call('CLUSTER', 'MYID'))

export const isUp = async (node: RedisServer): Promise<boolean> =>
  String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok')

/** The port of the primary to which this node would redirect a client. */
export async function ownerInTheEyesOf(node: RedisServer, slot: number): Promise<number | undefined> {
  const ranges = await node.call('CLUSTER', 'SLOTS')
  if (!Array.isArray(ranges)) return undefined
  for (const range of ranges) {
    if (!Array.isArray(range)) continue
    const [first, last, primary] = range
    if (slot >= Number(first) && slot <= Number(last) && Array.isArray(primary)) return Number(primary[1])
  }
  return undefined
}

/** True if the node reports that it owns the slot itself. */
export const claims = async (node: RedisServer, slot: number): Promise<boolean> =>
  (await ownerInTheEyesOf(node, slot)) === node.port

export const isPrimary = async (node: RedisServer): Promise<boolean> =>
  String(await node.call('INFO', 'replication')).includes('role:master')
