import { afterRejection, type Ban, type BanState, banExpiry, bannedUntil } from '../../core/bans/ban.js'
import type { BandResult, BucketGroup, Charge, ChargeResult } from '../../core/bucket-store.js'
import { boundedKey, ownText } from '../../core/keys/bounded-key.js'

/** The maximum number of keys with rejections or bans. */
const maxStates = 100_000
/** The oldest keys that are inspected to make room for a new one. */
const inspected = 16

/** Bans in this process. */
export class MemoryBans {
  /** Oldest first. */
  readonly #states = new Map<string, { readonly ban: Ban; readonly state: BanState }>()

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

  #untilOf({ group, key, shadow }: Charge, now: number): number {
    if (group.ban === undefined || shadow) return 0
    const found = this.#states.get(nameOf(group, key))
    return found === undefined ? 0 : bannedUntil(group.ban, found.state, now)
  }

  /** Counts a rejection. Returns the end of the ban that it starts, or 0. */
  #reject({ group, key, shadow }: Charge, now: number): number {
    const { ban } = group
    if (ban === undefined || shadow) return 0
    const name = ownText(nameOf(group, key))
    const state = afterRejection(ban, this.#states.get(name)?.state, now)
    this.#states.delete(name)
    this.#states.set(name, { ban, state })
    if (this.#states.size > maxStates) this.#evict(now)
    return bannedUntil(ban, state, now)
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

const nameOf = ({ ruleSetId, ruleId }: BucketGroup, key: string): string => `${ruleSetId}/${ruleId}/${boundedKey(key)}`
