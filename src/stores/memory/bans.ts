import { afterRejection, type Ban, type BanState, banExpiry, bannedUntil } from '../../core/bans/ban.js'
import {
  type BanEnd,
  BanListeners,
  type BanPage,
  type BanStorage,
  isListed,
  type KeyBan,
  type StartedBan,
} from '../../core/bans/ban-storage.js'
import type { BandResult, BucketGroup, Charge, ChargeResult } from '../../core/bucket-store.js'
import { boundedKey, ownText } from '../../core/keys/bounded-key.js'
import { firstFrom, inUtf8Order } from '../../core/keys/utf8-order.js'
import type { EntryQuery } from '../../core/overrides/override-storage.js'
import { inSlices, type Steps } from '../../core/scheduling/steps.js'

/** The maximum number of keys with rejections or bans. */
export const maxStates = 100_000
/** The oldest keys that are inspected to make room for a new one. */
const inspected = 16
/** Keys that are compared with a query per step. */
const perStep = 256

interface Stored {
  readonly rule: string
  /** Undefined without a ban, and for keys that are not listed. */
  readonly key: string | undefined
  readonly ban: Ban
  readonly state: BanState
}

/** Bans in this process. */
export class MemoryBans implements BanStorage {
  /** Oldest first. */
  readonly #states = new Map<string, Stored>()
  readonly #now: () => number
  readonly #listeners = new BanListeners()

  constructor(now: () => number) {
    this.#now = now
  }

  /** True if a charge is banned. The decision is then rejected. */
  areBanned(charges: readonly Charge[], now: number): boolean {
    return charges.some((charge) => this.#untilOf(charge, now) > 0)
  }

  /** Counts the rejections of a decision, and reports bans in its results. */
  apply(charges: readonly Charge[], result: ChargeResult, peek: boolean): ChargeResult {
    const bands: BandResult[] = []
    let index = 0
    for (const charge of charges) {
      const own = result.bands.slice(index, index + charge.group.bands.length)
      index += own.length
      const until = this.#untilOf(charge, result.now)
      const isRejected = own.some(({ allowed }) => !allowed)
      const started = until === 0 && isRejected && !peek ? this.#reject(charge, result.now) : 0
      for (const { allowed, delay, retryAfter, remaining, resetAt } of own)
        if (until > 0)
          bands.push({
            ...{ allowed: false, delay: 0, remaining: 0, resetAt, banned: true },
            retryAfter: Math.max(retryAfter, until - result.now),
          })
        else
          bands.push({
            ...{ allowed, delay, remaining, resetAt },
            retryAfter: started > 0 && !allowed ? Math.max(retryAfter, started - result.now) : retryAfter,
          })
    }
    return { granted: result.granted, now: result.now, bands }
  }

  delete(group: BucketGroup, key: string): void {
    this.#states.delete(nameOf(group, key))
  }

  clear(): void {
    this.#states.clear()
  }

  onStart(listener: (ban: StartedBan) => void): () => void {
    return this.#listeners.add(listener)
  }

  async get(group: BucketGroup, key: string): Promise<KeyBan | undefined> {
    const stored = this.#states.get(nameOf(group, key))
    return stored && banOf(key, stored, this.#now())
  }

  async list(group: BucketGroup, query: EntryQuery): Promise<BanPage> {
    const bans: KeyBan[] = []
    await inSlices(this.#search(bans, ruleOf(group), query, this.#now()))
    const page = bans.slice(0, query.limit)
    return { bans: page, next: bans.length > query.limit ? page.at(-1)?.key : undefined }
  }

  async set(group: BucketGroup, key: string, end: BanEnd) {
    const now = this.#now()
    const { ban } = group
    const until = 'forTicks' in end ? now + end.forTicks : end.until
    if (ban === undefined || until <= now || until > now + ban.maxTicks) return undefined
    const before = this.#states.get(nameOf(group, key))?.state
    const wasBanned = before !== undefined && bannedUntil(ban, before, now) > 0
    const level = before === undefined || now >= before.until + ban.maxTicks ? 0 : before.level
    this.#store(group, key, ban, { until, level, rejections: [] }, now)
    return { ban: { key, until, count: level, now }, created: !wasBanned }
  }

  async lift(group: BucketGroup, key: string): Promise<boolean> {
    const name = nameOf(group, key)
    const stored = this.#states.get(name)
    if (stored === undefined || banOf(key, stored, this.#now()) === undefined) return false
    return this.#states.delete(name)
  }

  /** Adds the first bans after the cursor, sorted by key, and one more than the limit if there are more. */
  *#search(found: KeyBan[], rule: string, { prefix, after, limit }: EntryQuery, now: number): Steps<void> {
    let count = 0
    for (const stored of this.#states.values()) {
      if (++count % perStep === 0) yield
      const { key } = stored
      if (key === undefined || stored.rule !== rule || !key.startsWith(prefix)) continue
      if (after !== '' && inUtf8Order(key, after) <= 0) continue
      const last = found[limit]
      if (last !== undefined && inUtf8Order(key, last.key) > 0) continue
      const ban = banOf(key, stored, now)
      if (ban === undefined) continue
      found.splice(firstFrom(found, key, keyOf), 0, ban)
      if (found.length > limit + 1) found.pop()
    }
  }

  #untilOf({ group, key, shadow }: Charge, now: number): number {
    if (group.ban === undefined || shadow) return 0
    const found = this.#states.get(nameOf(group, key))
    return found === undefined ? 0 : bannedUntil(group.ban, found.state, now)
  }

  /** Counts a rejection. Returns the end of the ban that it starts, or 0. */
  #reject({ group, key, shadow }: Charge, now: number): number {
    const { ban } = group
    if (ban === undefined || shadow) return 0
    const state = afterRejection(ban, this.#states.get(nameOf(group, key))?.state, now)
    this.#store(group, key, ban, state, now)
    const until = bannedUntil(ban, state, now)
    if (until > 0) this.#listeners.started({ group, key, until })
    return until
  }

  #store(group: BucketGroup, key: string, ban: Ban, state: BanState, now: number): void {
    const stored = {
      rule: ruleOf(group),
      key: state.until > now && isListed(key) ? ownText(key) : undefined,
      ban,
      state,
    }
    const name = ownText(nameOf(group, key))
    this.#states.delete(name)
    this.#states.set(name, stored)
    if (this.#states.size > maxStates) this.#evict(now)
  }

  /** Evicts an expired state, or one without a ban, among the oldest. */
  #evict(now: number): void {
    let checked = 0
    for (const [name, { ban, state }] of this.#states) {
      if (banExpiry(ban, state) <= now || bannedUntil(ban, state, now) === 0) {
        this.#states.delete(name)
        return
      }
      if (++checked === inspected) break
    }
    const [oldest = ''] = this.#states.keys()
    this.#states.delete(oldest)
  }
}

const keyOf = ({ key }: KeyBan): string => key

const ruleOf = ({ ruleSetId, ruleId }: BucketGroup): string => `${ruleSetId}/${ruleId}`

const nameOf = (group: BucketGroup, key: string): string => `${ruleOf(group)}/${boundedKey(key)}`

function banOf(key: string, { ban, state }: Stored, now: number): KeyBan | undefined {
  const until = bannedUntil(ban, state, now)
  return until > 0 ? { key, until, count: state.level, now } : undefined
}
