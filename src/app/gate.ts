import type { BucketReset } from '../core/bucket-reset-handler.js'
import { type BucketStore, demandOf, type SharedResets } from '../core/bucket-store.js'
import { checkKey } from '../core/check-key.js'
import type { Clock } from '../core/clock.js'
import { composeDecision } from '../core/compose-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
import { FluxGateError, messageOf } from '../core/errors.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { OverrideStore } from '../core/override-store.js'
import type { RequestContext } from '../core/request-context.js'
import type { RuleSet } from '../core/rule.js'
import type { EditedRules, RuleSetProvider } from '../core/rule-set-provider.js'
import { type CompiledRule, compileSnapshot, type Snapshot } from '../core/snapshot.js'
import { defaultMaxConcurrentWaits, defaultMaxWaitMs, WaitingRoom } from '../core/waiting-room.js'
import { StandaloneHandler } from '../handlers/standalone.js'
import { chooseReload } from '../rules/reload/choose-reload.js'
import type { ReloadResult, RuleBook, RuleBookStatus } from '../rules/rule-book.js'
import { memoryStore } from '../stores/memory.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import { BucketGenerations } from './bucket-generations.js'
import { type GateEvents, type GateListener, GateListeners } from './gate-events.js'
import type { FluxGateOptions } from './gate-options.js'
import { onceResetsAreKnown } from './once-resets-are-known.js'
import { canChange } from './open-rules.js'
import { overrideStore } from './override-store.js'
import { StoreState } from './store-state.js'
import { WatchedHandler } from './watched-handler.js'

export interface GateHealth {
  /** DEGRADED: decisions are made, but without the store or on rules older than the ones that were offered. */
  readonly status: 'UP' | 'DEGRADED'
  readonly store: {
    readonly status: 'UP' | 'DOWN'
    readonly sinceAt: number
    readonly error: string | null
    /** Of the circuit breaker; CLOSED where there is none. */
    readonly breaker: 'CLOSED' | 'OPEN' | 'HALF_OPEN'
    /** Permits paid for in advance that this process may still spend. */
    readonly heldPermits: number
  }
  readonly rules: Omit<RuleBookStatus, 'failure'> & {
    readonly status: 'UP' | 'STALE'
    readonly reload: string
    readonly error: string | null
    readonly sinceAt: number | null
  }
  readonly waiting: number
}

export interface FluxGate extends Handler {
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /** The buckets of one identity under one rule as they stand, band by band; charges nothing. */
  look(what: {
    readonly ruleSetId: string
    readonly ruleId: string
    readonly key: string
  }): Promise<readonly BandDecision[]>
  /** Forgets one identity of a rule, or all buckets of a rule, or of a whole rule set. */
  reset(what: { readonly ruleSetId: string; readonly ruleId?: string; readonly key?: string }): Promise<void>
  /** Loads the rules again; rejects with what is wrong with them, in which case the old ones stay. */
  reload(): Promise<void>
  /** The rule sets in force. */
  readonly ruleSets: readonly RuleSet[]
  /** Exceptions to rules, where the store keeps them. */
  readonly overrides?: OverrideStore | undefined
  /** The result stops listening. */
  on<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void
  health(): Promise<GateHealth>
  /** Stops reloading, sends away those who wait, and closes a store that was made here. */
  close(): Promise<void>
}

export interface Closable {
  close(): Promise<void>
}

export interface GateParts {
  readonly store: BucketStore
  /** What was made for the gate, and is closed with it. */
  readonly opened: readonly Closable[]
  readonly observer?: DecisionObserver | undefined
}

/** Owns what a gate is made of: rules, snapshot, store, waiting room, listeners. */
export class Gate implements FluxGate {
  readonly #options: FluxGateOptions
  readonly #clock: Clock
  readonly #book: RuleBook
  readonly #store: BucketStore
  /** What the store says of itself. */
  readonly #state: Pick<BucketStore, 'breaker' | 'heldPermits'>
  readonly #storeState: StoreState
  readonly #opened: readonly Closable[]
  readonly #handler: StandaloneHandler
  readonly #room: WaitingRoom
  readonly #listeners = new GateListeners()
  readonly #observer: DecisionObserver | undefined
  readonly #watched: WatchedHandler
  /** Of this process, where the store has none that all processes share. */
  readonly #generations = new BucketGenerations()
  readonly #resets: SharedResets | undefined
  readonly #stopWatchingResets: (() => void) | undefined
  #reloadName = 'NONE'
  #stopReloading = (): void => {}
  #snapshot: Snapshot
  readonly #overrides: OverrideStore | undefined
  #closed = false

  private constructor(options: FluxGateOptions, clock: Clock, book: RuleBook, own: GateParts) {
    this.#options = options
    this.#clock = clock
    this.#book = book
    this.#resets = own.store.resets
    this.#store = this.#resets === undefined ? own.store : onceResetsAreKnown(own.store, this.#resets)
    this.#opened = own.opened
    this.#observer = own.observer
    this.#state = own.store
    this.#snapshot = this.#compile(book.current)
    this.#overrides =
      own.store.overrides &&
      overrideStore(own.store.overrides, {
        ruleOf: (ruleSetId, ruleId) => this.#snapshot.ruleSets.get(ruleSetId)?.rules.get(ruleId)?.rule,
        ipv6Prefix: options.ipv6Prefix,
        clock,
      })
    this.#storeState = new StoreState(clock)
    this.#room = new WaitingRoom(options.waitForRefill?.maxConcurrentWaits ?? defaultMaxConcurrentWaits, clock)
    this.#handler = this.#createHandler()
    this.#watched = new WatchedHandler(this.#handler, this.#listeners, own.observer)
    book.onReload((result) => this.#reloaded(result))
    this.#stopWatchingResets = this.#resets?.watch(() => this.#replaceSnapshot(this.#book.current))
  }

  static async open(
    options: FluxGateOptions,
    clock: Clock,
    provider: RuleSetProvider,
    book: RuleBook,
    parts: GateParts,
  ): Promise<Gate> {
    const { strategy = canChange(options.rules) ? 'AUTO' : 'NONE', pollingIntervalMs } = options.reload ?? {}
    const reload = await chooseReload(strategy, provider, {
      clock,
      onError: (error) => gate.#listeners.emit('reload', { changed: false, error: asReloadError(error) }),
      ...(pollingIntervalMs !== undefined && { intervalMs: pollingIntervalMs }),
    })
    const gate = new Gate(options, clock, book, parts)
    gate.#reloadName = reload.name
    const stops = [reload.start(() => gate.reload()), provider.onEdit?.((edited) => gate.#edited(edited))]
    gate.#stopReloading = () => {
      for (const stop of stops) stop?.()
    }
    return gate
  }

  /** What was edited in this process is in force here before the edit is answered. */
  async #edited({ ruleSetId, removed }: EditedRules): Promise<void> {
    await this.#book.reload()
    // One of the processes that share the buckets has to see to it, and it is the one that made the edit.
    if (removed.length > 0) await this.#resets?.startAfresh(ruleSetId, removed).catch(() => {})
  }

  get ruleSets(): readonly RuleSet[] {
    return this.#book.current
  }

  get overrides(): OverrideStore | undefined {
    return this.#overrides
  }

  check(context: RequestContext, options?: CheckOptions): Promise<Decision> {
    if (this.#closed) return Promise.reject(closedError())
    return this.#watched.isWatched ? this.#watched.check(context, options) : this.#handler.check(context, options)
  }

  checkNow(context: RequestContext, options?: CheckOptions): Decision | undefined {
    if (this.#closed) return undefined
    return this.#watched.isWatched ? this.#watched.checkNow(context, options) : this.#handler.checkNow(context, options)
  }

  async refund(context: RequestContext, options?: Pick<CheckOptions, 'ruleSetId' | 'permits'>): Promise<void> {
    this.#assertOpen()
    await this.#handler.refund(context, options)
  }

  async look({
    ruleSetId,
    ruleId,
    key,
  }: {
    ruleSetId: string
    ruleId: string
    key: string
  }): Promise<readonly BandDecision[]> {
    this.#assertOpen()
    const demands = this.#chosen(ruleSetId, ruleId).map(({ claim }) => demandOf(claim, checkKey(key), 0))
    return composeDecision(ruleSetId, demands, await this.#store.charge(demands, true), false).bands
  }

  async reset({ ruleSetId, ruleId, key }: { ruleSetId: string; ruleId?: string; key?: string }): Promise<void> {
    this.#assertOpen()
    const chosen = this.#chosen(ruleSetId, ruleId)
    if (key !== undefined) {
      checkKey(key)
      for (const { group } of chosen) await this.#store.reset(group, key)
      return
    }
    const ids = chosen.map(({ rule }) => rule.id)
    if (this.#resets === undefined) for (const id of ids) this.#generations.startAfresh(ruleSetId, id)
    else await this.#resets.startAfresh(ruleSetId, ids)
    this.#replaceSnapshot(this.#book.current)
  }

  async reload(): Promise<void> {
    this.#assertOpen()
    const result = await this.#book.reload()
    if ('error' in result) throw result.error
  }

  on<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void {
    return this.#listeners.add(name, listener)
  }

  async health(): Promise<GateHealth> {
    const { failure, ...rules } = this.#book.status()
    const { isDown, sinceAt, error } = this.#storeState
    return {
      status: isDown || failure !== null ? 'DEGRADED' : 'UP',
      store: {
        status: isDown ? 'DOWN' : 'UP',
        sinceAt,
        error: error === null ? null : messageOf(error),
        breaker: this.#state.breaker ?? 'CLOSED',
        heldPermits: this.#state.heldPermits ?? 0,
      },
      rules: {
        ...rules,
        status: failure === null ? 'UP' : 'STALE',
        reload: this.#reloadName,
        error: failure?.error.message ?? null,
        sinceAt: failure?.sinceAt ?? null,
      },
      waiting: this.#room.size,
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#stopReloading()
    this.#stopWatchingResets?.()
    this.#room.close()
    for (const one of this.#opened) await one.close()
  }

  /** One rule, or all of a rule set. */
  #chosen(ruleSetId: string, ruleId: string | undefined): readonly CompiledRule[] {
    const rules = this.#snapshot.ruleSets.get(ruleSetId)?.rules
    const chosen = [...(rules?.values() ?? [])].filter(({ rule }) => ruleId === undefined || rule.id === ruleId)
    if (chosen.length > 0) return chosen
    const which = ruleId === undefined ? 'rule' : `rule "${ruleId}"`
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `There is no ${which} in rule set "${ruleSetId}".`)
  }

  #createHandler(): StandaloneHandler {
    const { missingRuleBehavior = 'ALLOW', onStoreFailure = 'LOCAL', localShare = 1 } = this.#options
    return new StandaloneHandler({
      snapshot: () => this.#snapshot,
      store: this.#store,
      localStore: memoryStore({ clock: this.#clock }),
      room: this.#room,
      clock: this.#clock,
      missingRuleBehavior,
      onStoreFailure,
      localShare,
      onStoreError: (error) => this.#storeFailed(error),
      onStoreAnswer: () => this.#storeAnswered(),
    })
  }

  #compile(ruleSets: readonly RuleSet[]): Snapshot {
    const { defaultRuleSetId, keyResolvers, ipv6Prefix, reload, waitForRefill } = this.#options
    return compileSnapshot(ruleSets, {
      defaultRuleSetId,
      resolvers: keyResolvers,
      ipv6Prefix,
      maxWaitMs: waitForRefill?.maxWaitMs ?? defaultMaxWaitMs,
      resetBucketsOnReload: reload?.resetBucketsOnReload ?? true,
      resets: (ruleSetId, ruleId) => (this.#resets ?? this.#generations).of(ruleSetId, ruleId),
    })
  }

  /** Publishes new rules, and tells the store which buckets nobody will ask for again. */
  #replaceSnapshot(ruleSets: readonly RuleSet[]): void {
    const before = this.#snapshot
    this.#snapshot = this.#compile(ruleSets)
    for (const [ruleSetId, { rules }] of before.ruleSets) {
      const now = this.#snapshot.ruleSets.get(ruleSetId)?.rules
      const reset = [...rules.values()].filter(
        ({ rule, group }) => now?.get(rule.id)?.group.generation !== group.generation,
      )
      for (const { group } of reset) this.#store.retire?.(group)
      if (reset.length > 0) this.#tellReset({ ruleSetId, ruleIds: reset.map(({ rule }) => rule.id) })
    }
  }

  #tellReset(reset: BucketReset): void {
    const handler = this.#options.bucketResetHandler
    if (handler !== undefined) queueMicrotask(() => handler.bucketsReset(reset))
  }

  #reloaded(result: ReloadResult): void {
    if ('error' in result) {
      this.#listeners.emit('reload', { changed: false, error: result.error })
      return
    }
    if (result.changed) {
      const resetChanged = this.#options.reload?.resetBucketsOnReload ?? true
      if (this.#resets === undefined) this.#generations.compare(this.#snapshot, result.ruleSets, resetChanged)
      this.#replaceSnapshot(result.ruleSets)
    }
    this.#listeners.emit('reload', { changed: result.changed, error: null })
  }

  #storeFailed(error: unknown): void {
    // What fails because it was closed is no news.
    if (this.#closed) return
    this.#observer?.storeFailed(error)
    if (this.#storeState.failed(error)) this.#listeners.emit('degraded', { error })
  }

  #storeAnswered(): void {
    if (this.#storeState.answered()) this.#listeners.emit('recovered', {})
  }

  #assertOpen(): void {
    if (this.#closed) throw closedError()
  }
}

const closedError = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'This gate was closed. Create another one.')

const asReloadError = (error: unknown): FluxGateError =>
  error instanceof FluxGateError
    ? error
    : new FluxGateError('FLUXGATE_RULES_UNREADABLE', messageOf(error), { cause: error })
