import type { RedisNode } from '../../../client/open/address.js'
import type { CommandWriter } from '../../commands/writer.js'
import type { BulkSocket } from '../bulk-socket.js'
import type { Reply } from '../reply-reader.js'

/** Caches which primary owns each slot. */
export class SlotOwners {
  readonly #owners: (RedisNode | undefined)[] = new Array(16_384)
  readonly #first: RedisNode

  /** Commands for slots without a known owner go to `first`, which redirects them or reports that the cluster is down. */
  constructor(first: RedisNode) {
    this.#first = first
  }

  of(slot: number): RedisNode {
    return this.#owners[slot] ?? this.#first
  }

  set(slot: number, node: RedisNode): void {
    this.#owners[slot] = node
  }
}

/** Reads the slot owners from a node. Rejects if the node is not part of a cluster. */
export async function fetchSlotOwners(socket: BulkSocket): Promise<SlotOwners> {
  const owners = new SlotOwners(socket.node)
  const ranges = (await socket.ask(['CLUSTER', 'SLOTS'])) as readonly Reply[]
  for (const range of ranges) {
    const [first, last, primary] = range as readonly Reply[]
    const [host, port] = primary as readonly Reply[]
    const node = { host: typeof host === 'string' && host !== '' ? host : socket.node.host, port: Number(port) }
    for (let slot = Number(first); slot <= Number(last); slot++) owners.set(slot, node)
  }
  return owners
}

/**
 * The key position in commands whose first argument is not a key. A command that is missing here still works, because the
 * node that receives it redirects it.
 */
const keyPlaces: Readonly<Record<string, number>> = {
  EVAL: 3,
  EVALSHA: 3,
  FCALL: 3,
  BITOP: 2,
  OBJECT: 2,
  MEMORY: 2,
  XGROUP: 2,
  XINFO: 2,
}

export function keyOf(out: CommandWriter): Buffer | undefined {
  const name = out.argument(0)?.toString('latin1').toUpperCase() ?? ''
  return out.argument(keyPlaces[name] ?? 1)
}
