import {
  type BanEnd,
  BanListeners,
  type BanPage,
  type BanStorage,
  type KeyBan,
  type StartedBan,
} from '../../../core/bans/ban-storage.js'
import type { BucketGroup, Charge } from '../../../core/bucket-store.js'
import type { EntryQuery } from '../../../core/overrides/override-storage.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { wrapRedisError } from '../../../redis/client/errors.js'
import { hashSlot } from '../../../redis/client/hash-slot.js'
import { bytesReply, integerReply, integersReply, unexpectedReply } from '../../../redis/client/replies.js'
import { Script } from '../../../redis/client/script.js'
import { bucketPrefix, type Layouts } from '../bucket-keys.js'
import { BanIndex } from './ban-index.js'
import { liftScript, readScript, setScript } from './lua/scripts.generated.js'

export interface RedisBansOptions {
  readonly connection: RedisConnection
  readonly prefix: string
  readonly layouts: Layouts
  /** The time for scripts in ticks; negative for that of the server. */
  readonly now: () => number
  /** Called before and after a ban is set or lifted, so that this process asks Redis again. */
  readonly onChange: (group: BucketGroup, key: string) => void
}

/** On a cluster, each key of a page is read by its own call. */
const concurrentReads = 64
/** A page reads at most this many times its size from the index, which may contain lifted bans. */
const maxRounds = 4
const closeTimeoutMs = 250

/** Bans in Redis, each in the cluster slot of its buckets. bans.lua starts them and describes the value. */
export class RedisBans implements BanStorage {
  readonly #options: RedisBansOptions
  readonly #index: BanIndex
  readonly #set = new Script(setScript)
  readonly #lift = new Script(liftScript)
  readonly #readBans = new Script(readScript)
  readonly #listeners = new BanListeners()

  constructor(options: RedisBansOptions) {
    this.#options = options
    const { connection, prefix, layouts, now } = options
    const nameOf = (group: BucketGroup): string => `${prefix}:{bans${layouts.banSuffix(group)}}`
    this.#index = new BanIndex(connection, { nameOf, now })
  }

  onStart(listener: (ban: StartedBan) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Called after a decision of Redis. Per charge: the end of its ban, or 0, and true if the decision has started it. */
  decided(charges: readonly Charge[], bannedUntil: readonly number[], started: readonly boolean[] = []): void {
    for (const [i, { group, key }] of charges.entries()) {
      const until = bannedUntil[i] ?? 0
      if (until > 0) this.#index.note(group, key, until)
      if (started[i]) this.#listeners.started({ group, key, until })
    }
  }

  get(group: BucketGroup, key: string): Promise<KeyBan | undefined> {
    return this.#wrapErrors('read a ban', async () => (await this.#read(group, [key]))[0])
  }

  list(group: BucketGroup, { prefix, after, limit }: EntryQuery): Promise<BanPage> {
    return this.#wrapErrors('list bans', async () => {
      // Bans that this process has started are listed at once.
      await this.#index.flush()
      const bans: KeyBan[] = []
      let last = after
      for (let round = 0; round < maxRounds; round++) {
        const wanted = limit - bans.length
        const keys = await this.#index.page(group, prefix, last, wanted + 1)
        const chosen = keys.slice(0, wanted)
        bans.push(...(await this.#read(group, chosen)))
        last = chosen.at(-1) ?? last
        if (keys.length <= wanted) return { bans, next: undefined }
        if (bans.length === limit) break
      }
      return { bans, next: last }
    })
  }

  set(group: BucketGroup, key: string, end: BanEnd) {
    return this.#changing(group, key, 'set a ban', async () => {
      const { maxTicks = 0 } = group.ban ?? {}
      const terms = 'forTicks' in end ? [end.forTicks, 0] : [0, end.until]
      const reply = await this.#run(this.#set, group, key, [...terms, maxTicks])
      if (Array.isArray(reply) && reply.length === 0) return undefined
      const [wasBanned = 0, until = 0, count = 0, now = 0] = integersReply(reply)
      await this.#index.write(group, key, until)
      return { ban: { key, until, count, now }, created: wasBanned === 0 }
    })
  }

  lift(group: BucketGroup, key: string): Promise<boolean> {
    return this.#changing(group, key, 'lift a ban', async () => {
      const wasBanned = integerReply(await this.#run(this.#lift, group, key, [])) === 1
      await this.#index.remove(group, [key])
      return wasBanned
    })
  }

  /** Writes pending entries of the index, if Redis answers soon. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeTimeoutMs)
    })
    await Promise.race([this.#index.close(), timeout])
    clearTimeout(timer)
  }

  /** The active bans of these keys. Removes the others from the index: they have ended, or were lifted or reset. */
  async #read(group: BucketGroup, keys: readonly string[]): Promise<KeyBan[]> {
    const size = this.#options.connection.isCluster ? 1 : Math.max(1, keys.length)
    const found: (KeyBan | undefined)[] = []
    for (let i = 0; i < keys.length; i += size * concurrentReads) {
      const calls: Promise<(KeyBan | undefined)[]>[] = []
      for (let from = i; from < Math.min(keys.length, i + size * concurrentReads); from += size)
        calls.push(this.#readTogether(group, keys.slice(from, from + size)))
      found.push(...(await Promise.all(calls)).flat())
    }
    await this.#index.remove(
      group,
      keys.filter((_, i) => found[i] === undefined),
    )
    return found.filter((ban) => ban !== undefined)
  }

  /** Reads keys of the same slot. */
  async #readTogether(group: BucketGroup, keys: readonly string[]): Promise<(KeyBan | undefined)[]> {
    const { connection, now } = this.#options
    const names = keys.map((key) => this.#nameOf(group, key))
    const reply = await this.#readBans.run(connection, hashSlot(names[0] as string), names, [String(now())])
    if (!Array.isArray(reply) || reply.length !== keys.length + 1) throw unexpectedReply(`${keys.length} bans`, reply)
    const readAt = integerReply(reply[0])
    return keys.map((key, i) => banIn(key, reply[i + 1], readAt, group.ban?.maxTicks ?? 0))
  }

  #run(script: Script, group: BucketGroup, key: string, args: readonly number[]): Promise<unknown> {
    const { connection, now } = this.#options
    const name = this.#nameOf(group, key)
    return script.run(connection, hashSlot(name), [name], [now(), ...args].map(String))
  }

  #nameOf(group: BucketGroup, key: string): string {
    const { prefix, layouts } = this.#options
    return bucketPrefix(prefix, key) + layouts.banSuffix(group)
  }

  async #changing<T>(group: BucketGroup, key: string, what: string, change: () => Promise<T>): Promise<T> {
    const { onChange } = this.#options
    onChange(group, key)
    try {
      return await this.#wrapErrors(what, change)
    } finally {
      onChange(group, key)
    }
  }

  async #wrapErrors<T>(what: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw wrapRedisError(error, what)
    }
  }
}

/** Reads the value of a ban. Undefined without an active ban. */
function banIn(key: string, value: unknown, now: number, maxTicks: number): KeyBan | undefined {
  if (value === 0) return undefined
  const bytes = bytesReply(value)
  if (bytes.length < 16) return undefined
  const until = Math.min(bytes.readDoubleLE(0), now + maxTicks)
  return until > now ? { key, until, count: bytes.readDoubleLE(8), now } : undefined
}
