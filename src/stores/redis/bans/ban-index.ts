import { isListed } from '../../../core/bans/ban-storage.js'
import type { BucketGroup } from '../../../core/bucket-store.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { hashSlot } from '../../../redis/client/hash-slot.js'
import { bytesReply, unexpectedReply } from '../../../redis/client/replies.js'
import { Script } from '../../../redis/client/script.js'
import { RecentKeys } from '../overrides/recent-keys.js'
import { addScript } from './lua/scripts.generated.js'

/** The maximum number of bans in the index of a rule. Those that end first are removed; they stay in effect. */
export const maxBans = 100_000
const perCall = 200
/** The maximum number of bans that wait to be written. */
const maxPending = 10_000
const firstRetryMs = 250
const maxRetryMs = 10_000

interface Pending {
  readonly group: BucketGroup
  readonly ends: Map<string, number>
}

export interface BanIndexOptions {
  /** Prefix and hash tag of the two keys of a rule. */
  readonly nameOf: (group: BucketGroup) => string
  /** The time for scripts in ticks; negative for that of the server. */
  readonly now: () => number
}

/**
 * The banned keys of each rule, so that they can be listed without a scan: a sorted set of the keys and one of their ends. A ban is
 * started by the call of a decision, which on a cluster reaches the slot of the key only. The process that learns of it
 * writes it here, in the background. If that process dies first, the next process that rejects the key writes it.
 */
export class BanIndex {
  readonly #connection: RedisConnection
  readonly #options: BanIndexOptions
  readonly #add = new Script(addScript)
  /** The end of the bans that this process has written. */
  readonly #written = new RecentKeys<number>(10_000)
  readonly #pending = new Map<string, Pending>()
  #pendingCount = 0
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #retryMs = firstRetryMs

  constructor(connection: RedisConnection, options: BanIndexOptions) {
    this.#connection = connection
    this.#options = options
  }

  /** Writes a ban in the background, unless this process has written it already. */
  note(group: BucketGroup, key: string, until: number): void {
    if (this.#written.get(group, key) === until) return
    this.#written.set(group, key, until)
    this.#enqueue(group, key, until)
    this.#flushLater(0)
  }

  /** Writes a ban and waits for it. */
  async write(group: BucketGroup, key: string, until: number): Promise<void> {
    this.#written.set(group, key, until)
    if (!isListed(key)) return
    await this.#send(group, [[key, until]])
  }

  async remove(group: BucketGroup, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    const name = this.#options.nameOf(group)
    for (const key of keys) this.#written.delete(group, key)
    await Promise.all(keysOf(name).map((set) => this.#connection.call(name, ['ZREM', set, ...keys])))
  }

  /** The keys after `after` that have the prefix, in the order of their bytes. */
  async page(group: BucketGroup, prefix: string, after: string, limit: number): Promise<string[]> {
    const name = this.#options.nameOf(group)
    // No UTF-8 text contains the byte 0xff.
    const last = prefix === '' ? '+' : Buffer.concat([Buffer.from(`[${prefix}`), Buffer.of(0xff)])
    const first = after !== '' ? `(${after}` : prefix === '' ? '-' : `[${prefix}`
    const [keys = ''] = keysOf(name)
    const reply = await this.#connection.call(
      name,
      ['ZRANGEBYLEX', keys, first, last, 'LIMIT', '0', String(limit)],
      true,
    )
    if (!Array.isArray(reply)) throw unexpectedReply('a page of bans', reply)
    return reply.map((key) => bytesReply(key).toString())
  }

  /** Writes what is pending. */
  async flush(): Promise<void> {
    while (this.#pendingCount > 0) await this.#write()
  }

  async close(): Promise<void> {
    await this.flush().catch(() => {})
    clearTimeout(this.#timer)
  }

  #enqueue(group: BucketGroup, key: string, until: number): void {
    if (!isListed(key) || this.#pendingCount >= maxPending) return
    const name = this.#options.nameOf(group)
    const pending = this.#pending.get(name) ?? { group, ends: new Map<string, number>() }
    this.#pending.set(name, pending)
    if (!pending.ends.has(key)) this.#pendingCount += 1
    pending.ends.set(key, until)
  }

  #flushLater(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.flush().then(
        () => {
          this.#retryMs = firstRetryMs
        },
        () => {
          this.#flushLater(this.#retryMs)
          this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs)
        },
      )
    }, delayMs).unref()
  }

  /** One call at a time writes what is pending, and what is added in the meantime. */
  #write(): Promise<void> {
    this.#writing ??= this.#writePending().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  /** Bans that could not be written stay pending. */
  async #writePending(): Promise<void> {
    for (const [name, { group, ends }] of this.#pending) {
      while (ends.size > 0) {
        const part = [...ends].slice(0, perCall)
        await this.#send(group, part)
        for (const [key, until] of part)
          if (ends.get(key) === until) {
            ends.delete(key)
            this.#pendingCount -= 1
          }
      }
      this.#pending.delete(name)
    }
  }

  async #send(group: BucketGroup, bans: readonly (readonly [key: string, until: number])[]): Promise<void> {
    const name = this.#options.nameOf(group)
    const now = this.#options.now()
    const nowMs = now < 0 ? now : Math.floor(now / ticksPerMs)
    const args = bans.flatMap(([key, until]) => [key, String(Math.ceil(until / ticksPerMs))])
    await this.#add.run(this.#connection, hashSlot(name), keysOf(name), [String(nowMs), String(maxBans), ...args])
  }
}

const keysOf = (name: string): readonly string[] => [`${name}:keys`, `${name}:ends`]
