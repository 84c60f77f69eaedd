import { cellsOf } from '../../algorithms/index.js'
import type {
  BucketGroup,
  Charge,
  ChargeResult,
  Leasing,
  LeasingStore,
  Refund,
  Settlement,
  StoreAvailability,
} from '../../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { TurnBatches } from '../../core/scheduling/turn-batches.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { isSplit, wrapRedisError } from '../../redis/client/connection-errors.js'
import { hashSlot } from '../../redis/client/hash-slot.js'
import { Script } from '../../redis/client/script.js'
import { bucketKey, keySuffix } from './bucket-keys.js'
import type { CachedRejections } from './cached-rejections.js'
import { type Answer, decode, newEdit } from './decode.js'
import { encode } from './encode.js'
import { InFlight } from './in-flight.js'
import { consumeScript, consumeSha } from './lua/consume.generated.js'
import { decodeTerms, expiryOf } from './overrides/encoding.js'
import { OverriddenGroups } from './overrides/overridden-group.js'
import {
  LastKnownOverrides,
  type LookupResult,
  type OverrideCache,
  OverrideCaches,
} from './overrides/override-cache.js'
import { RedisOverrides } from './overrides/redis-overrides.js'
import { probeDemand, probeKeys } from './probe.js'
import type { Backdate, Lookup, Names, Work } from './work.js'

export interface RedisBucketsOptions {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** For tests alone: time instead of the server's. */
  readonly clock?: Clock | undefined
  /** For tests alone: time in this process; default `clock`, or the system's. */
  readonly localClock?: Clock | undefined
  /** Receives the rejections of Redis; without it, none are cached. */
  readonly rejectionCache?: CachedRejections | undefined
}

interface Job {
  readonly work: Work
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** About as much as a server does in a quarter of a millisecond; a step on a log costs as much as several others. */
const maxWeight = 128
const logWeight = 8

const longestCloseMs = 250

/**
 * Buckets in Redis. One decision, with all its rules and bands, is one call of one script on the server's clock; decisions
 * of the same turn share a call. On a cluster a call is about one slot.
 */
export class RedisBuckets implements LeasingStore {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #clock: Clock | undefined
  readonly #localClock: Clock
  readonly #script = new Script(consumeScript, consumeSha)
  readonly #suffixes = new WeakMap<BucketGroup, readonly string[]>()
  readonly #underWay = new InFlight()
  /** The last error of the connection, and what it is for callers. */
  #unreachable: { readonly cause: unknown; readonly error: FluxGateError } | undefined
  readonly overrides: RedisOverrides
  readonly availability: StoreAvailability
  readonly rejectionCache: CachedRejections | undefined
  readonly leasing: Leasing = {
    lease: (request) => this.ask({ what: 'LEASE', claims: [request] }),
    settle: (settlements) => this.#settle(settlements),
  }
  readonly #groups = new OverriddenGroups()
  readonly #lastKnown = new LastKnownOverrides()
  readonly #overrideCaches: OverrideCaches
  readonly #names: Names = {
    keyOf: (group, key, band) => this.#keyOf(group, key, band),
    overrideOf: (group, key) => this.overrides.locate(group, key),
  }
  readonly #batches = new TurnBatches<Job>({
    weightOf: ({ work }) => weightOf(work),
    maxWeight,
    send: (route, jobs) => void this.#send(route, jobs),
  })

  constructor(connection: RedisConnection, options: RedisBucketsOptions = {}) {
    const { prefix = 'fluxgate', clock, localClock, rejectionCache } = options
    this.#connection = connection
    this.#prefix = prefix
    this.#clock = clock
    this.#localClock = localClock ?? clock ?? systemClock
    this.rejectionCache = rejectionCache
    this.availability = this.#createAvailability()
    this.overrides = new RedisOverrides(connection, prefix, () => this.#localClock.now())
    const version = (): object => this.overrides.version
    this.#overrideCaches = new OverrideCaches({ prefix, isCluster: connection.isCluster, version })
  }

  charge(demands: readonly Charge[], peek: boolean): Promise<ChargeResult> {
    return this.ask({ what: peek ? 'PEEK' : 'CHARGE', claims: demands })
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#change(refunds, () => this.#bySlot(refunds).map((claims) => this.ask({ what: 'REFUND', claims })))
  }

  reset(group: BucketGroup, key: string): Promise<void> {
    const claims = [{ group, key }]
    return this.#change(claims, () => [this.ask({ what: 'RESET', claims })])
  }

  /** Clears cached rejections before the call, and after it too, because a charge in flight may have been rejected in between. */
  async #change(buckets: readonly Pick<Refund, 'group' | 'key'>[], calls: () => Promise<Answer>[]): Promise<void> {
    this.rejectionCache?.bucketsChanged(buckets)
    try {
      await Promise.all(calls())
    } finally {
      this.rejectionCache?.bucketsChanged(buckets)
    }
  }

  async #settle(settlements: readonly Settlement[]): Promise<void> {
    await Promise.all(this.#bySlot(settlements).map((claims) => this.ask({ what: 'SETTLE', claims })))
  }

  /** Runs the script without a decision, to find out early whether the credentials and the ACL allow it. Writes nothing. */
  async checkAccess(): Promise<void> {
    const { args } = encode([], this.#names, 0, this.#overrideCaches.forRoute(0).edit)
    const key = bucketKey(this.#prefix, 'probe', '')
    await this.#script.run(this.#connection, hashSlot(key), [key], args)
  }

  /** Charges a bucket of its own; in a cluster, one on each primary. */
  async #probe(): Promise<void> {
    const keys = await probeKeys(this.#connection).catch((error: unknown) => {
      throw wrapRedisError(error, 'decide')
    })
    await Promise.all(keys.map((key) => this.charge([probeDemand(key)], false)))
  }

  /** What was asked for before, and in the same turn, is still sent: who is sent away has its permits given back. */
  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    await this.#underWay.idle(longestCloseMs)
    this.overrides.close()
    await this.#connection.close()
  }

  #createAvailability(): StoreAvailability {
    const [connection, unreachable] = [this.#connection, () => this.#unreachableError()]
    return {
      failsPartially: connection.isCluster,
      get isConnected() {
        return connection.isConnected ?? true
      },
      get unreachable() {
        return unreachable()
      },
      probe: () => this.#probe(),
    }
  }

  #unreachableError(): FluxGateError | undefined {
    const { unreachable: cause } = this.#connection
    if (cause === undefined) return undefined
    if (this.#unreachable?.cause !== cause) this.#unreachable = { cause, error: wrapRedisError(cause, 'decide') }
    return this.#unreachable.error
  }

  /** One piece of work, whose claims are all of one slot if this is a cluster. */
  ask(work: Work): Promise<Answer> {
    this.#underWay.begin(1)
    return this.overrides.isLoaded || !mayHaveOverrides(work) ? this.#add(work) : this.#addOnceKnown(work)
  }

  #add(work: Work): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#batches.add(this.#routeOf(work), { work, resolve, reject })
    })
  }

  /** Only once: which overrides are in force is then read now and then. */
  async #addOnceKnown(work: Work): Promise<Answer> {
    try {
      await this.overrides.load()
    } catch (error) {
      this.#underWay.end(1)
      throw wrapRedisError(error, 'decide')
    }
    return this.#add(work)
  }

  slotOf(group: BucketGroup, key: string): number {
    return hashSlot(this.#keyOf(group, key, 0))
  }

  /** What one call may be about: everything, or on a cluster what is in the same slot. */
  #bySlot<Claim extends { readonly group: BucketGroup; readonly key: string }>(claims: readonly Claim[]): Claim[][] {
    const parts = new Map<number, Claim[]>()
    for (const claim of claims) {
      const slot = this.#connection.isCluster ? this.slotOf(claim.group, claim.key) : 0
      const part = parts.get(slot)
      if (part === undefined) parts.set(slot, [claim])
      else part.push(claim)
    }
    return [...parts.values()]
  }

  /** Work of different routes cannot share a call. */
  #routeOf({ claims }: Work): number {
    if (!this.#connection.isCluster) return 0
    const [{ group, key }] = claims as [Work['claims'][0]]
    return this.slotOf(group, key)
  }

  async #send(route: number, jobs: readonly Job[]): Promise<void> {
    const cache = this.#overrideCaches.forRoute(route)
    const { edit } = cache
    const works = jobs.map(({ work }) => cache.applyTo(work))
    const askedAt = ticks(this.#localClock)
    try {
      const now = this.#clock === undefined ? -1 : ticks(this.#clock)
      const message = encode(works, this.#names, now, edit)
      const reply = await this.#script.run(this.#connection, route, message.keys, message.args)
      const another = newEdit(reply)
      if (another !== undefined) {
        this.#overrideCaches.applyEdit(route, edit, another)
        return this.#sendAgain(route, jobs)
      }
      const answers = decode(works, reply, message, (lookup, override, now) =>
        this.#groupOf(cache, lookup, { override, edit, now }),
      )
      for (const [i, answer] of answers.entries()) this.#answer(jobs[i] as Job, answer, askedAt)
    } catch (error) {
      if (jobs.length > 1 && isSplit(error)) {
        for (const job of jobs) this.#sendAgain(route, [job])
        return
      }
      const wrapped = wrapRedisError(error, 'decide')
      for (const { reject } of jobs) reject(wrapped)
    } finally {
      this.#underWay.end(jobs.length)
    }
  }

  /** In another call, so that these jobs are still under way when the one that failed them is over. */
  #sendAgain(route: number, jobs: readonly Job[]): void {
    this.#underWay.begin(jobs.length)
    void this.#send(route, jobs)
  }

  #groupOf(cache: OverrideCache, { work, claim, otherwise }: Lookup, found: LookupResult): BucketGroup {
    const { override } = found
    const { group: rule, key } = work.claims[claim] as Charge
    const group = override === undefined ? rule : this.#overridden(rule, override)
    if (override === undefined) this.#lastKnown.delete(rule, key)
    else this.#lastKnown.set(rule, key, group, expiryOf(override))
    // The override of a range may hide one of the key itself, so neither is cached.
    if (otherwise.length === 0) cache.add(rule, key, group, found)
    return group
  }

  /** The group of a key with an override, of its own or of its range, from what this process knows. */
  cachedGroup(rule: BucketGroup, key: string): BucketGroup | undefined {
    const nowMs = this.#localClock.now()
    const own = this.#lastKnown.get(rule, key, nowMs)
    const range = own === undefined ? this.overrides.rangeOf(rule, key) : undefined
    return range === undefined || (expiryOf(range) ?? Number.POSITIVE_INFINITY) <= nowMs
      ? own
      : this.#overridden(rule, range)
  }

  #overridden(rule: BucketGroup, override: Buffer): BucketGroup {
    return this.#groups.get(rule, override.toString('latin1'), () => decodeTerms(override))
  }

  #answer(job: Job, answer: Answer | FluxGateError, askedAt: number): void {
    const { work, resolve, reject } = job
    if (answer instanceof FluxGateError) {
      reject(answer)
      return
    }
    if (answer.states === undefined) {
      if (work.what !== 'PEEK') this.rejectionCache?.bucketsChanged(work.claims)
      resolve(answer)
      return
    }
    const { states, ...result } = answer
    const isPeek = work.what === 'PEEK'
    const backdates =
      this.rejectionCache?.record(work.claims as readonly Charge[], result, states, askedAt, isPeek) ?? []
    if (backdates.length === 0) resolve(result)
    else this.#askBackdated(job, backdates)
  }

  /** Both in the same turn, so that one call does both, in this order. */
  #askBackdated({ work, resolve, reject }: Job, claims: readonly Backdate[]): void {
    this.ask({ what: 'BACKDATE', claims }).catch(() => {})
    this.ask(work).then(resolve, reject)
  }

  #keyOf(group: BucketGroup, key: string, band: number): string {
    let suffixes = this.#suffixes.get(group)
    if (suffixes === undefined) {
      suffixes = group.bands.map((band, i) => keySuffix(group, band, i))
      this.#suffixes.set(group, suffixes)
    }
    return bucketKey(this.#prefix, key, suffixes[band] as string)
  }
}

const mayHaveOverrides = ({ claims }: Work): boolean => claims.some(({ group }) => group.hasOverrides)

function weightOf({ claims }: Work): number {
  let weight = 0
  for (const { group } of claims) for (const band of group.bands) weight += cellsOf(band) === undefined ? logWeight : 1
  return weight
}
