import type { RedisConnection } from '../client/connection.js'
import { integerReply, integersReply } from '../client/replies.js'
import { Script } from '../client/script.js'
import { type Denied, fenceMs, type Granted, type LockBackend, type LockRequest, queueSlotMs } from './backend.js'
import { type LockKeys, lockKeys } from './keys.js'
import { acquireScript, extendScript, releaseScript, unlockScript } from './lua/scripts.generated.js'

/** The state of a held lock. */
export interface LockState {
  /** The id of the owner. */
  readonly owner: string
  /** The fencing token. */
  readonly fence: number
  /** The remaining lease in milliseconds. */
  readonly expiresInMs: number
  /** The number of holds that share the lock. */
  readonly holds: number
}

/** Locks on one Redis deployment: a server, a primary with replicas, or a cluster. */
export class RedisLockBackend implements LockBackend {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #acquire = new Script(acquireScript)
  readonly #extend = new Script(extendScript)
  readonly #release = new Script(releaseScript)
  readonly #unlock = new Script(unlockScript)

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
  }

  keysOf(name: string): LockKeys {
    return lockKeys(this.#prefix, name, 'lock')
  }

  async grant(request: LockRequest): Promise<Granted | Denied> {
    const locks = this.#locksOf(request)
    const keys = locks.flatMap(({ held, fence, holds, queue, queueExpiry }) => [held, fence, holds, queue, queueExpiry])
    const args = [request.owner, request.id, request.ttlMs, fenceMs, request.fair ? queueSlotMs : 0]
    return parseOutcome(await this.#run(this.#acquire, locks, keys, args), locks)
  }

  /** `floor` is the minimum of all later fencing tokens. */
  async extend(request: LockRequest, floor = 0): Promise<boolean> {
    const locks = this.#locksOf(request)
    const keys = locks.flatMap(({ held, fence, holds }) => [held, fence, holds])
    const args = [request.owner, request.id, request.ttlMs, fenceMs, floor]
    return integerReply(await this.#run(this.#extend, locks, keys, args)) === 1
  }

  async release(request: LockRequest): Promise<boolean> {
    const locks = this.#locksOf(request)
    const keys = locks.flatMap(({ held, holds, queue, queueExpiry }) => [held, holds, queue, queueExpiry])
    const args = [request.owner, request.id, ...locks.map(({ channel }) => channel)]
    return integerReply(await this.#run(this.#release, locks, keys, args)) === locks.length
  }

  async unlock(name: string): Promise<boolean> {
    const keys = this.keysOf(name)
    const { held, holds, queue, queueExpiry, channel } = keys
    return integerReply(await this.#run(this.#unlock, [keys], [held, holds, queue, queueExpiry], [channel])) === 1
  }

  async inspect(name: string): Promise<LockState | undefined> {
    const { held, holds } = this.keysOf(name)
    const [value, ttl, count] = await Promise.all([
      this.#connection.call(held, ['GET', held]),
      this.#connection.call(held, ['PTTL', held]),
      this.#connection.call(holds, ['HLEN', holds]),
    ])
    const [, fence, owner = ''] = /^(\d+):(.*)$/s.exec(String(value)) ?? []
    if (fence === undefined) return undefined
    return { owner, fence: Number(fence), expiresInMs: Math.max(0, Number(ttl)), holds: Number(count) }
  }

  /** Groups names by cluster slot. The order of groups is the same for all callers. */
  groupsOf(names: readonly string[]): readonly (readonly string[])[] {
    if (!this.#connection.isCluster) return [names]
    const bySlot = new Map<number, string[]>()
    for (const name of names) {
      const { slot } = this.keysOf(name)
      bySlot.set(slot, [...(bySlot.get(slot) ?? []), name])
    }
    return [...bySlot].sort(([a], [b]) => a - b).map(([, group]) => group)
  }

  #locksOf({ names }: LockRequest): readonly LockKeys[] {
    return names.map((name) => this.keysOf(name))
  }

  #run(script: Script, [first]: readonly LockKeys[], keys: readonly string[], args: readonly (string | number)[]) {
    return script.run(this.#connection, this.#connection.isCluster ? (first?.slot ?? 0) : 0, keys, args.map(String))
  }
}

/** Parses the reply of a script that grants locks or permits. */
export function parseOutcome(reply: unknown, locks: readonly LockKeys[]): Granted | Denied {
  const [isGranted, ...numbers] = integersReply(reply)
  if (isGranted === 1) return { granted: true, fences: numbers }
  const [number = 1, retryInMs = -1] = numbers
  // FluxGate did not create a lock without an expiry. It may be deleted at any time, so it is polled.
  return { granted: false, channel: locks[number - 1]?.channel, retryInMs: retryInMs < 0 ? queueSlotMs : retryInMs + 1 }
}
