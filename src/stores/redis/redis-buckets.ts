import type {
  BucketGroup,
  Charge,
  ChargeResult,
  ChargeVariants,
  Leasing,
  LeasingStore,
  Refund,
  Settlement,
  StoreAvailability,
} from '../../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import type { Hold, HoldStorage } from '../../core/holds/hold-storage.js'
import type { ReservationStorage } from '../../core/reservations/reservation-storage.js'
import { TurnBatches } from '../../core/scheduling/turn-batches.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { isSplit, wrapRedisError } from '../../redis/client/errors.js'
import { hashSlot } from '../../redis/client/hash-slot.js'
import { malformedReply } from '../../redis/client/replies.js'
import { Script } from '../../redis/client/script.js'
import { RedisBans } from './bans/redis-bans.js'
import { bucketPrefix, type Digest, Layouts } from './bucket-keys.js'
import type { CachedRejections } from './cached-rejections.js'
import { CalendarTime } from './calendar-time.js'
import { type Answer, decode, newEdit, UnknownPeriod } from './decode.js'
import { encode } from './encode.js'
import { consumeScript } from './lua/consume.generated.js'
import type { Backdate, LastEdit, Lookup, Names, Operation } from './operation.js'
import { OverriddenGroups } from './overrides/overridden-groups.js'
import { type LookupResult, type OverrideCache, OverrideCaches } from './overrides/override-cache.js'
import { RedisOverrides } from './overrides/redis-overrides.js'
import { probeCharge, probeKeys } from './probe.js'
import { ClusterReservations } from './reservations/cluster/cluster-reservations.js'
import { RedisReservations, type RedisReservationsOptions } from './reservations/redis-reservations.js'

export interface RedisBucketsOptions {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Replaces the clock of the Redis server, for tests only. */
  readonly clock?: Clock | undefined
  /** The clock of this process, for tests only; default `clock`, or the system clock. */
  readonly localClock?: Clock | undefined
  /** Receives the rejections of Redis; without it, none are cached. */
  readonly rejectionCache?: CachedRejections | undefined
  /** Replaces SHA-256 in abbreviations of rules, for tests only. */
  readonly digest?: Digest | undefined
}

interface Job {
  readonly operation: Operation
  readonly weight: number
  /** True if a key of the operation may have an override. */
  readonly hasOverrides: boolean
  /** The number of calls that lacked a period of a calendar band. */
  readonly attempt: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** Maximum weight of one call: about a third of a millisecond of server time. A log costs as much as several other buckets. */
const maxWeight = 128
const logWeight = 8
/** Bands share a key, so several of them cost as much as one. */
const bandsPerWeight = 4

/** The second call has all periods, unless the server's clock steps in between. */
const maxPeriodAttempts = 3

/** How long `close` waits for calls in flight. */
const closeTimeoutMs = 250

/**
 * Buckets in Redis. One decision, with all its rules and bands, is one call of one script on the server's clock. Decisions of
 * the same turn of the event loop share a call. In a cluster, each call concerns one slot.
 */
export class RedisBuckets implements LeasingStore {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #clock: Clock | undefined
  readonly #localClock: Clock
  readonly #script = new Script(consumeScript)
  /** The number of calls in flight, for which `close` waits. */
  #inFlight = 0
  #onIdle: (() => void) | undefined
  /** The last error of the connection, and the error that callers receive for it. */
  #unreachable: { readonly cause: unknown; readonly error: FluxGateError } | undefined
  readonly overrides: RedisOverrides
  readonly bans: RedisBans
  readonly availability: StoreAvailability
  readonly rejectionCache: CachedRejections | undefined
  readonly leasing: Leasing = {
    lease: (request) => this.ask({ type: 'LEASE', items: [request] }),
    settle: (settlements) => this.#settle(settlements),
  }
  readonly #calendarTime = new CalendarTime()
  readonly holds: HoldStorage = {
    release: async (holds) => (await this.#askHolds('RELEASE', holds)).some((count) => count > 0),
    renew: async (holds) => (await this.#askHolds('RENEW', holds)).every((missing) => missing === 0),
  }
  readonly variants: ChargeVariants = {
    charge: async (charge, variant) => {
      const answer = await this.ask({ type: variant, items: [charge] })
      return charge.shadow ? { ...answer, granted: true } : answer
    },
  }
  readonly reservations: ReservationStorage
  readonly #groups = new OverriddenGroups()
  readonly #overrideCaches: OverrideCaches
  readonly #names: Names
  readonly #batches = new TurnBatches<Job>({
    maxWeight,
    send: (route, jobs) => void this.#send(route, jobs),
  })

  constructor(connection: RedisConnection, options: RedisBucketsOptions = {}) {
    const { prefix = 'fluxgate', clock, localClock, rejectionCache, digest } = options
    this.#connection = connection
    this.#prefix = prefix
    this.#clock = clock
    this.#localClock = localClock ?? clock ?? systemClock
    this.rejectionCache = rejectionCache
    this.availability = this.#createAvailability()
    this.overrides = new RedisOverrides(connection, prefix, () => this.#localClock.now())
    const overrideOf: Names['overrideOf'] = (group, key) => this.overrides.locate(group, key)
    const calendarSpan = () => this.#calendarTime.span(ticks(this.#clock ?? this.#localClock))
    const layouts = new Layouts(digest)
    this.#names = { prefix, layouts, calendarSpan, overrideOf }
    const now = () => (clock === undefined ? -1 : ticks(clock))
    const reserving: RedisReservationsOptions = {
      ...{ connection, prefix, layouts },
      ask: (operation) => this.ask(operation),
      overridden: (rule, override) => this.#groups.of(rule, override),
    }
    this.reservations = connection.isCluster
      ? new ClusterReservations({ ...reserving, now, slotOf: (key) => this.slotOf(key) })
      : new RedisReservations(reserving)
    this.bans = new RedisBans({
      ...{ connection, prefix, layouts, now },
      onChange: (group, key) => this.rejectionCache?.bucketsChanged([{ group, key }]),
    })
    const version = (): object => this.overrides.version
    this.#overrideCaches = new OverrideCaches({ prefix, isCluster: connection.isCluster, version })
  }

  charge(charges: readonly Charge[], peek: boolean): Promise<ChargeResult> {
    return this.ask({ type: peek ? 'PEEK' : 'CHARGE', items: charges })
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    const typeOf = (items: readonly Refund[]) => (items.some(({ hold }) => hold !== undefined) ? 'RELEASE' : 'REFUND')
    return this.#change(refunds, () => this.#bySlot(refunds).map((items) => this.ask({ type: typeOf(items), items })))
  }

  /** Returns the number in the answer of each call. Hold ids are unique, so other operations of the same keys do not matter. */
  async #askHolds(type: 'RELEASE' | 'RENEW', holds: readonly Hold[]): Promise<number[]> {
    const items = holds.map(({ group, key, hold }) => ({ group, key, hold, permits: 0 }))
    const answers = await Promise.all(this.#bySlot(items).map((part) => this.ask({ type, items: part })))
    return answers.map(({ holds: count }) => count ?? 0)
  }

  reset(group: BucketGroup, key: string): Promise<void> {
    const items = [{ group, key }]
    return this.#change(items, () => [this.ask({ type: 'RESET', items })])
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
    await Promise.all(this.#bySlot(settlements).map((items) => this.ask({ type: 'SETTLE', items })))
  }

  /** Runs the script without a decision, to check early that the credentials and the ACL allow it. Writes nothing. */
  async checkAccess(): Promise<void> {
    const { args } = encode([], this.#names, 0, noEdit)
    const key = bucketPrefix(this.#prefix, 'probe')
    await this.#script.run(this.#connection, hashSlot(key), [key], args)
  }

  /** Charges a bucket of its own; in a cluster, one on each primary. */
  async #probe(): Promise<void> {
    const keys = await probeKeys(this.#connection).catch((error: unknown) => {
      throw wrapRedisError(error, 'decide')
    })
    await Promise.all(keys.map((key) => this.charge([probeCharge(key)], false)))
  }

  /** Calls of this turn and earlier are still sent, because they include refunds of waiting requests. */
  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#inFlight > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, closeTimeoutMs)
        this.#onIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    this.overrides.close()
    await this.bans.close()
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

  /** Sends an operation with the others of this turn. In a cluster, all its keys must be in one slot. */
  ask(operation: Operation, attempt = 0): Promise<Answer> {
    const { layouts } = this.#names
    let weight = 0
    let hasOverrides = false
    for (const { group } of operation.items) {
      if (group.hasOverrides) hasOverrides = true
      const { hasLog } = layouts.byGroup.get(group) ?? layouts.add(group)
      weight += hasLog ? logWeight : Math.ceil(group.bands.length / bandsPerWeight)
    }
    this.#inFlight += 1
    // Operations of different cluster slots cannot share a call.
    const route = this.#connection.isCluster ? this.slotOf((operation.items[0] as Operation['items'][0]).key) : 0
    return new Promise((resolve, reject) => {
      const job: Job = { operation, weight, hasOverrides, attempt, resolve, reject }
      if (hasOverrides && !this.overrides.isLoaded) this.#addAfterLoading(route, job)
      else this.#batches.add(route, job, weight)
    })
  }

  /** Loads the overrides that all processes keep. Only the first decision with overrides waits for it. */
  #addAfterLoading(route: number, job: Job): void {
    this.overrides.load().then(
      () => this.#batches.add(route, job, job.weight),
      (error: unknown) => {
        this.#ended(1)
        job.reject(wrapRedisError(error, 'decide'))
      },
    )
  }

  #ended(calls: number): void {
    this.#inFlight -= calls
    if (this.#inFlight === 0) this.#onIdle?.()
  }

  slotOf(key: string): number {
    return hashSlot(bucketPrefix(this.#prefix, key))
  }

  /** Groups items by call: in a cluster by slot, otherwise all together. */
  #bySlot<Item extends { readonly key: string }>(items: readonly Item[]): Item[][] {
    const parts = new Map<number, Item[]>()
    for (const item of items) {
      const slot = this.#connection.isCluster ? this.slotOf(item.key) : 0
      const part = parts.get(slot)
      if (part === undefined) parts.set(slot, [item])
      else part.push(item)
    }
    return [...parts.values()]
  }

  async #send(route: number, jobs: readonly Job[]): Promise<void> {
    // Calls without overrides need neither the cache nor the check for edits.
    const cache = jobs.some(({ hasOverrides }) => hasOverrides) ? this.#overrideCaches.forRoute(route) : undefined
    const edit = cache?.edit ?? noEdit
    const operations = jobs.map(({ operation }) => cache?.applyTo(operation) ?? operation)
    const sentAt = ticks(this.#localClock)
    try {
      const now = this.#clock === undefined ? -1 : ticks(this.#clock)
      const message = encode(operations, this.#names, now, edit)
      const reply = await this.#script.run(this.#connection, route, message.keys, message.args)
      const another = cache && newEdit(reply)
      if (another !== undefined) {
        this.#overrideCaches.applyEdit(route, edit, another)
        return this.#sendAgain(route, jobs)
      }
      const answers = decode(
        operations,
        reply,
        message,
        cache && ((lookup, override, now) => this.#groupOf(cache, lookup, { override, edit, now })),
      )
      for (const [i, answer] of answers.entries()) this.#answer(jobs[i] as Job, answer, sentAt)
    } catch (error) {
      if (jobs.length > 1 && isSplit(error)) {
        for (const job of jobs) this.#sendAgain(route, [job])
        return
      }
      const wrapped = wrapRedisError(error, 'decide')
      for (const { reject } of jobs) reject(wrapped)
    } finally {
      this.#ended(jobs.length)
    }
  }

  /** Counts the jobs as in flight again before the failed call ends, so that `close` waits for them. */
  #sendAgain(route: number, jobs: readonly Job[]): void {
    this.#inFlight += jobs.length
    void this.#send(route, jobs)
  }

  #groupOf(cache: OverrideCache, { operation, item, otherwise }: Lookup, found: LookupResult): BucketGroup {
    const { group: rule, key } = operation.items[item] as Charge
    const group = this.#groups.found(rule, key, found.override)
    // The override of a range may hide one of the key itself, so neither is cached.
    if (otherwise.length === 0) cache.add(rule, key, group, found)
    return group
  }

  /** The group of a key with an override, of its own or of its range, from the cache of this process. */
  cachedGroup(rule: BucketGroup, key: string): BucketGroup | undefined {
    return this.#groups.lastKnown(rule, key, this.#localClock.now(), () => this.overrides.rangeOf(rule, key))
  }

  #answer(job: Job, answer: Answer | UnknownPeriod | FluxGateError, sentAt: number): void {
    const { operation, resolve, reject } = job
    if (answer instanceof FluxGateError) {
      reject(answer)
      return
    }
    if (answer instanceof UnknownPeriod) {
      this.#askAround(job, answer)
      return
    }
    if (answer.states === undefined) {
      if (operation.type !== 'PEEK') this.rejectionCache?.bucketsChanged(operation.items)
      resolve(answer)
      return
    }
    const { states, bannedUntil, startedBans, ...result } = answer
    const isPeek = operation.type === 'PEEK'
    if (bannedUntil !== undefined)
      this.bans.decided(answer.applied ?? (operation.items as readonly Charge[]), bannedUntil, startedBans)
    const backdates =
      this.rejectionCache?.record(operation.items as readonly Charge[], result, states, sentAt, isPeek, bannedUntil) ??
      []
    if (backdates.length === 0) resolve(result)
    else this.#askBackdated(job, backdates)
  }

  /** Asks again with the periods around the server's time and the time of the bucket. */
  #askAround({ operation, attempt, resolve, reject }: Job, { tick, now }: UnknownPeriod): void {
    this.#calendarTime.correct(ticks(this.#clock ?? this.#localClock), now, tick)
    if (attempt < maxPeriodAttempts) this.ask(operation, attempt + 1).then(resolve, reject)
    else reject(malformedReply('period'))
  }

  /** Both start in the same turn, so one call executes them in this order. */
  #askBackdated({ operation, resolve, reject }: Job, items: readonly Backdate[]): void {
    this.ask({ type: 'BACKDATE', items }).catch(() => {})
    this.ask(operation).then(resolve, reject)
  }
}

/** For calls without overrides, which read no edit. */
const noEdit: LastEdit = { key: '', known: '' }
