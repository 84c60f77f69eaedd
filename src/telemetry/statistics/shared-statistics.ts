import type { Clock } from '../../core/clock.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { hashSlot } from '../../redis/client/hash-slot.js'
import { isByteReply, unexpectedReply } from '../../redis/client/replies.js'
import { Script } from '../../redis/client/script.js'
import { withTimeout } from '../../redis/client/with-timeout.js'
import { endOfPrefix, textBytes } from '../../redis/search-index/ordered-bytes.js'
import type { DecisionRecorder } from '../decision-recorder.js'
import { keyDigest, showKey } from '../key-digest.js'
import { isWanted, maxRecent } from './local-statistics.js'
import { flushScript, readScript } from './lua/scripts.generated.js'
import { type CountBatch, PendingCounts, parseName } from './pending-counts.js'
import { parseSummary } from './shared-summary.js'
import type { KeyCount, RecentDecision, RecentQuery, Statistics, StatisticsSummary } from './statistics.js'

export interface SharedStatisticsOptions {
  readonly connection: RedisConnection
  /** Prefix of all Redis keys. */
  readonly prefix: string
  readonly recorder: DecisionRecorder
  /** Stores keys in plain text. Otherwise only digests leave this process. */
  readonly revealKeys: boolean
  /** Used while Redis is unavailable. */
  readonly local: Statistics
  /** Called for the first failure after a success, not for each failure. */
  readonly onFailure?: (error: unknown) => void
  /** Replaces the Redis server time. Only for tests. */
  readonly clock?: Clock
}

const flushIntervalMs = 1_000
const timeoutMs = 2_000

/**
 * Statistics of all processes that share a Redis. Each process counts locally and flushes about once per second; decisions never
 * wait for a flush. All data in Redis is bounded and expires.
 */
export class SharedStatistics implements Statistics {
  readonly #options: SharedStatisticsOptions
  readonly #pending: PendingCounts
  readonly #totals: string
  readonly #slot: number
  readonly #flush = new Script(flushScript)
  readonly #readScript = new Script(readScript)
  readonly #stopListening: () => void
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()
  #isFailing = false
  #isClosed = false

  constructor(options: SharedStatisticsOptions) {
    this.#options = options
    this.#pending = new PendingCounts(options.recorder, showKey(options.revealKeys))
    this.#totals = `${options.prefix}:{statistics}:totals`
    this.#slot = hashSlot(this.#totals)
    this.#stopListening = options.recorder.onSample((sample) => this.#pending.add(sample))
    this.#scheduleFlush()
  }

  summary(): Promise<StatisticsSummary> {
    return this.#ask(
      async () => parseSummary(await this.#read('SUMMARY', 0)),
      (local) => local.summary(),
    )
  }

  top({ by, limit }: Parameters<Statistics['top']>[0]): Promise<readonly KeyCount[]> {
    return this.#ask(
      async () => this.#keyCounts(await this.#read('TOP', limit, by)),
      (local) => local.top({ by, limit }),
    )
  }

  /**
   * If Redis has only digests, a complete key is found by its digest. A search by key prefix then only covers the keys that
   * this process has seen.
   */
  async keys(query: Parameters<Statistics['keys']>[0]): Promise<readonly KeyCount[]> {
    const { prefix, limit } = query
    const { revealKeys, local } = this.#options
    if (revealKeys || prefix === '' || prefix.startsWith('sha256:')) return this.#keysFrom(query)
    const [exact, partial] = await Promise.all([
      this.#keysFrom({ prefix: keyDigest(prefix), limit }),
      local.keys(query),
    ])
    const others = partial.filter(({ key }) => exact.every((row) => row.key !== key))
    return [...exact, ...others].slice(0, limit)
  }

  /** Returns a random sample of recently seen keys. */
  sample({ limit }: { readonly limit: number }): Promise<readonly KeyCount[]> {
    return this.#ask(
      async () => this.#keyCounts(await this.#read('SAMPLE', limit)),
      (local) => local.sample({ limit }),
    )
  }

  recent(query: RecentQuery): Promise<readonly RecentDecision[]> {
    const { limit, allowed, traceId } = query
    const isFiltered = traceId !== undefined || allowed === true
    const list = allowed === false ? 'REJECTED' : 'RECENT'
    return this.#ask<readonly RecentDecision[]>(
      async () => {
        const texts = await this.#read(list, isFiltered ? maxRecent : limit)
        // Processes of older versions store no trace ID.
        const decisions = texts.map((text): RecentDecision => {
          const decision = JSON.parse(String(text)) as RecentDecision
          return { ...decision, traceId: decision.traceId ?? null }
        })
        const wanted = isFiltered ? decisions.filter((decision) => isWanted(decision, query)) : decisions
        return wanted.slice(0, limit).map((decision) => this.#shown(decision))
      },
      (local) => local.recent(query),
    )
  }

  /** Flushes pending counts; one flush runs at a time. Never rejects: after a failure, the counts stay pending. */
  async flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#flushAll())
    await this.#flushing
  }

  /** Flushes the remaining counts and closes the connection. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#stopListening()
    await this.flush()
    await this.#options.connection.close()
  }

  #keysFrom(query: Parameters<Statistics['keys']>[0]): Promise<readonly KeyCount[]> {
    const start = textBytes(query.prefix)
    const end = endOfPrefix(start)
    const from = Buffer.concat([Buffer.from('['), start])
    const to = end === undefined ? '+' : Buffer.concat([Buffer.from('('), end])
    return this.#ask(
      async () => this.#keyCounts(await this.#read('KEYS', query.limit, from, to, start)),
      (local) => local.keys(query),
    )
  }

  #scheduleFlush(): void {
    // Random jitter, so that processes do not flush at the same time.
    const ms = flushIntervalMs * (0.9 + 0.2 * Math.random())
    this.#timer = setTimeout(async () => {
      await this.flush()
      if (!this.#isClosed) this.#scheduleFlush()
    }, ms)
    this.#timer.unref()
  }

  async #flushAll(): Promise<void> {
    const batches = this.#pending.take()
    for (const [i, batch] of batches.entries()) {
      try {
        await this.#send(batch)
        this.#isFailing = false
      } catch (error) {
        for (const rest of batches.slice(i)) this.#pending.restore(rest)
        if (!this.#isFailing) this.#options.onFailure?.(error)
        this.#isFailing = true
        return
      }
    }
  }

  #send({ counts, keys, decisions }: CountBatch): Promise<unknown> {
    const sizes = [counts, keys, decisions].map(({ length }) => String(length))
    const numbers = [...counts.flat(), ...keys.flat()].map((part) => (part instanceof Buffer ? part : String(part)))
    return this.#run(this.#flush, 'write statistics', [...sizes, ...numbers, ...decisions])
  }

  async #read(what: string, limit: number, ...rest: (string | Buffer)[]): Promise<readonly Buffer[]> {
    const reply = await this.#run(this.#readScript, 'read statistics', [what, String(limit), ...rest])
    if (!Array.isArray(reply) || !isByteReply(reply)) throw unexpectedReply('a list of integers and bytes', reply)
    return reply
  }

  #run(script: Script, operation: string, args: readonly (string | Buffer)[]): Promise<unknown> {
    const { connection, clock } = this.#options
    const all = [clock === undefined ? '' : String(Math.round(clock.now())), ...args]
    return withTimeout({ subject: 'Redis', operation, timeoutMs }, () =>
      script.run(connection, this.#slot, [this.#totals], all),
    )
  }

  async #ask<T>(shared: () => Promise<T>, local: (statistics: Statistics) => Promise<T>): Promise<T> {
    try {
      return await shared()
    } catch {
      return local(this.#options.local)
    }
  }

  #keyCounts(rows: readonly Buffer[]): KeyCount[] {
    return Array.from({ length: rows.length / 4 }, (_, i) => {
      const [name, requests, denied, lastAt] = rows.slice(4 * i, 4 * i + 4) as [Buffer, Buffer, Buffer, Buffer]
      // Rare keys have a name but no counts.
      const counts = { requests: Math.max(1, Math.round(Number(requests))), denied: Math.round(Number(denied)) }
      return this.#shown({ ...parseName(name), ...counts, lastAt: Number(lastAt) })
    })
  }

  /** Hides keys that another process stored in plain text, unless this process reveals keys. */
  #shown<T extends { readonly key: string | null }>(row: T): T {
    const { key } = row
    if (this.#options.revealKeys || key === null || key.startsWith('sha256:')) return row
    return { ...row, key: keyDigest(key) }
  }
}
