import { messageOf } from '../../../core/errors.js'
import { wrapRedisError } from '../../client/errors.js'
import type { RedisNode } from '../../client/open/address.js'
import type { RedisTarget } from '../../client/open/target.js'
import type { CommandWriter } from '../commands/writer.js'
import type { Tally } from '../tally.js'
import { type BulkAccess, BulkSocket } from './bulk-socket.js'
import { ClusterSink } from './cluster/sink.js'
import { fetchSlotOwners, type SlotOwners } from './cluster/slots.js'
import { ServerSink } from './server-sink.js'
import type { BulkSink } from './sink.js'

/** The maximum number of outstanding replies on a server with other load, small enough not to slow down a limiter there. */
const gentle = 128
/** The maximum numbers of outstanding replies for a server without other load. They only bound the memory. */
const fast = 100_000
const fastPerNode = 4_096

export interface OpenSinkOptions {
  readonly fast: boolean
  readonly silenceMs: number
}

/** Connects to the target. A server that is a cluster node is treated as the whole cluster. Rejects with `FLUXGATE_STORE_FAILED` or `FLUXGATE_STORE_MISCONFIGURED`. */
export async function openSink(
  target: RedisTarget,
  out: CommandWriter,
  tally: Tally,
  options: OpenSinkOptions,
): Promise<BulkSink> {
  const { username, password, tls } = target
  const access = { username, password, tls, silenceMs: options.silenceMs }
  const toCluster = (owners: SlotOwners): BulkSink =>
    new ClusterSink(out, tally, options.fast ? fastPerNode : gentle, owners, access)
  const toServer = (socket: BulkSocket): BulkSink => new ServerSink(socket, out, tally, options.fast ? fast : gentle)
  try {
    if (target.kind === 'cluster') return toCluster(await ownersBy(target.nodes, access))
    if (target.kind === 'sentinels') return toServer(await BulkSocket.open(await primaryBy(target, access), access))
    const socket = await BulkSocket.open(target.node, { ...access, database: target.database })
    const owners = target.database === 0 ? await fetchSlotOwners(socket).catch(() => undefined) : undefined
    if (owners === undefined) return toServer(socket)
    socket.close()
    return toCluster(owners)
  } catch (error) {
    throw wrapRedisError(error, 'accept a connection', `Redis at ${target.where}`)
  }
}

/** Returns the result of the first node that replies. Throws the last error if none does. */
async function firstOf<T>(
  nodes: readonly RedisNode[],
  access: BulkAccess,
  ask: (socket: BulkSocket) => Promise<T>,
): Promise<T> {
  let last: unknown = new Error('the list of nodes is empty')
  for (const node of nodes) {
    let socket: BulkSocket | undefined
    try {
      socket = await BulkSocket.open(node, access)
      return await ask(socket)
    } catch (error) {
      last = error
    } finally {
      socket?.close()
    }
  }
  throw last instanceof Error ? last : new Error(messageOf(last))
}

const ownersBy = (nodes: readonly RedisNode[], access: BulkAccess): Promise<SlotOwners> =>
  firstOf(nodes, access, fetchSlotOwners)

function primaryBy(target: RedisTarget & { kind: 'sentinels' }, access: BulkAccess): Promise<RedisNode> {
  const { nodes, name, sentinelUsername: username, sentinelPassword: password } = target
  return firstOf(nodes, { ...access, username, password }, async (socket) => {
    const reply = await socket.ask(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name])
    if (!Array.isArray(reply)) throw new Error('ERR No such master with that name')
    const [host, port] = reply as readonly string[]
    return { host: String(host), port: Number(port) }
  })
}
