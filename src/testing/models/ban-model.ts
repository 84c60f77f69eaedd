import type { Ban } from '../../core/bans/ban.js'
import { type BanEnd, BanListeners, type BanPage, type BanStorage, type KeyBan } from '../../core/bans/ban-storage.js'
import type { BandResult, BucketGroup, Charge } from '../../core/bucket-store.js'
import { inUtf8Order } from '../../core/keys/utf8-order.js'
import type { EntryQuery } from '../../core/overrides/override-storage.js'
import { smaller } from './model.js'

interface State {
  readonly group: BucketGroup
  readonly key: string
  readonly until: bigint
  readonly count: bigint
  readonly rejections: readonly bigint[]
}

interface Decided {
  readonly now: bigint
  /** Per charge, the end of its ban, or 0. */
  readonly banned: readonly bigint[]
  /** Per charge, true if its own bands reject. */
  readonly isRejected: readonly boolean[]
  readonly peek: boolean
}

/** The reference model of bans: everything that has happened to a key, in arbitrary precision and with unbounded memory. */
export class BanModel implements BanStorage {
  readonly #states = new Map<string, State>()
  readonly #now: () => bigint
  readonly #listeners = new BanListeners()

  constructor(now: () => bigint) {
    this.#now = now
  }

  /** The end of the ban of a charge, or 0. If the clock steps back, a ban never lasts longer than the longest one. */
  untilOf({ group, key, shadow }: Pick<Charge, 'group' | 'key' | 'shadow'>, now: bigint): bigint {
    const state = this.#states.get(nameOf(group, key))
    if (group.ban === undefined || shadow || state === undefined || state.until <= now) return 0n
    return smaller(state.until, now + BigInt(group.ban.maxTicks))
  }

  /** Replaces the results of banned charges, and counts the rejections of the others. */
  apply(charges: readonly Charge[], bands: BandResult[], { now, banned, isRejected, peek }: Decided): void {
    let first = 0
    for (const [i, charge] of charges.entries()) {
      const last = first + charge.group.bands.length
      const until = banned[i] ?? 0n
      const started = until === 0n && isRejected[i] && !peek ? this.#reject(charge, now) : 0n
      for (let band = first; band < last; band++) {
        const result = bands[band] as BandResult
        const retryAfter = Math.max(result.retryAfter, Number((until > 0n ? until : started) - now))
        if (until > 0n) bands[band] = { ...result, allowed: false, delay: 0, remaining: 0, retryAfter, banned: true }
        else if (started > 0n && !result.allowed) bands[band] = { ...result, retryAfter }
      }
      first = last
    }
  }

  reset(group: BucketGroup, key: string): void {
    this.#states.delete(nameOf(group, key))
  }

  onStart(listener: Parameters<BanStorage['onStart']>[0]): () => void {
    return this.#listeners.add(listener)
  }

  async get(group: BucketGroup, key: string): Promise<KeyBan | undefined> {
    const now = this.#now()
    const until = this.untilOf({ group, key, shadow: false }, now)
    const count = this.#states.get(nameOf(group, key))?.count ?? 0n
    return until === 0n ? undefined : { key, until: Number(until), count: Number(count), now: Number(now) }
  }

  async list(group: BucketGroup, { prefix, after, limit }: EntryQuery): Promise<BanPage> {
    const own = [...this.#states.values()].filter((state) => nameOf(state.group, '') === nameOf(group, ''))
    const bans = (await Promise.all(own.map(({ key }) => this.get(group, key))))
      .filter((ban) => ban !== undefined)
      .filter(({ key }) => key.startsWith(prefix) && (after === '' || inUtf8Order(key, after) > 0))
      .sort((one, other) => inUtf8Order(one.key, other.key))
    const page = bans.slice(0, limit)
    return { bans: page, next: bans.length > limit ? page.at(-1)?.key : undefined }
  }

  async set(group: BucketGroup, key: string, end: BanEnd) {
    const now = this.#now()
    const longest = BigInt(group.ban?.maxTicks ?? 0)
    const until = 'forTicks' in end ? now + BigInt(end.forTicks) : BigInt(end.until)
    if (until <= now || until > now + longest) return undefined
    const created = (await this.get(group, key)) === undefined
    const before = this.#states.get(nameOf(group, key))
    const count = before === undefined || now >= before.until + longest ? 0n : before.count
    this.#states.set(nameOf(group, key), { group, key, until, count, rejections: [] })
    return { ban: { key, until: Number(until), count: Number(count), now: Number(now) }, created }
  }

  async lift(group: BucketGroup, key: string): Promise<boolean> {
    const isBanned = (await this.get(group, key)) !== undefined
    if (isBanned) this.reset(group, key)
    return isBanned
  }

  /** Returns the end of the ban that the rejection starts, or 0. */
  #reject({ group, key, shadow }: Charge, now: bigint): bigint {
    const { ban } = group
    if (ban === undefined || shadow) return 0n
    const { until = 0n, count = 0n, rejections = [] } = this.#states.get(nameOf(group, key)) ?? {}
    const recent = [...rejections.filter((tick) => tick > now - BigInt(ban.withinTicks)), now]
    if (recent.length < ban.after) {
      this.#states.set(nameOf(group, key), { group, key, until, count, rejections: recent })
      return 0n
    }
    const earlier = now >= until + BigInt(ban.maxTicks) ? 0n : count
    const end = now + lengthOf(ban, earlier)
    this.#states.set(nameOf(group, key), { group, key, until: end, count: earlier + 1n, rejections: [] })
    this.#listeners.started({ group, key, until: Number(end) })
    return end
  }
}

/** `for` times `factor` to the power of the number of earlier bans, at most `max`. */
function lengthOf({ forTicks, factor, maxTicks }: Ban, earlier: bigint): bigint {
  // A number is a whole number divided by a power of two.
  let [over, under] = [factor, 1n]
  while (!Number.isInteger(over)) [over, under] = [over * 2, under * 2n]
  let [ticks, divisor] = [BigInt(forTicks), 1n]
  for (let i = 0n; i < earlier && ticks < BigInt(maxTicks) * divisor; i++)
    [ticks, divisor] = [ticks * BigInt(over), divisor * under]
  return smaller(ticks / divisor, BigInt(maxTicks))
}

const nameOf = ({ ruleSetId, ruleId }: BucketGroup, key: string): string => JSON.stringify([ruleSetId, ruleId, key])
