/** Moves a slot from one primary to another, in the steps that redis-cli uses. */
import { idOf, isPrimary } from './cluster-view.js'
import type { RedisServer } from './redis-server.js'

export interface SlotMove {
  readonly slot: number
  readonly from: RedisServer
  readonly to: RedisServer
  /** Moves up to `count` keys of the slot and returns the number of moved keys. */
  moveKeys(count?: number): Promise<number>
  /** Moves the remaining keys and makes `to` the owner. Resolves when every running node knows it. */
  finish(): Promise<void>
}

export interface MoveOrder {
  readonly slot: number
  readonly from: RedisServer
  readonly to: RedisServer
  readonly nodes: readonly RedisServer[]
  settled(): Promise<unknown>
}

const migrateTimeoutMs = 5_000

export async function beginMove({ slot, from, to, nodes, settled }: MoveOrder): Promise<SlotMove> {
  const [fromId, toId] = await Promise.all([idOf(from), idOf(to)])
  // In this order: a redirected client must not reach a node that does not know about the import.
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)

  async function moveKeys(count = 1_000): Promise<number> {
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[]
    if (keys.length > 0) await from.call('MIGRATE', to.host, to.port, '', 0, migrateTimeoutMs, 'KEYS', ...keys)
    return keys.length
  }

  return {
    slot,
    from,
    to,
    moveKeys,
    async finish() {
      while ((await moveKeys()) > 0);
      // The new owner first: otherwise the slot would have no owner if this process died in between.
      const others = nodes.filter((node) => node !== to && node !== from && node.isRunning())
      for (const node of [to, from, ...others]) {
        if (await isPrimary(node)) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
      }
      await settled()
    },
  }
}
