import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { BanStore } from '../core/contracts/ban-store.js'
import type { OverrideStore } from '../core/contracts/override-store.js'
import type { EditedRules, ReloadRequest } from '../core/contracts/rule-set-provider.js'
import type { JointCheck, JointDecision, JointOptions } from '../core/decision/joint/joint-check.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import type { ExplainOptions, Explanation } from '../core/explain/explanation.js'
import type { CheckOptions } from '../core/handler.js'
import { type Acquired, keepHold } from '../core/holds/keep-hold.js'
import type { RequestContext } from '../core/request-context.js'
import type {
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from '../core/reservations/reservation.js'
import type { BucketState } from '../core/reservations/reservation-storage.js'
import type { RuleSet } from '../core/rule.js'
import { defaultMaxConcurrentWaits, WaitingRoom } from '../core/waiting/waiting-room.js'
import { StandaloneHandler } from '../handlers/standalone.js'
import { warnOfUnknownOptions } from '../handlers/unknown-options.js'
import type { LoadedRules, ReloadResult } from '../rules/loaded-rules.js'
import { chooseReload } from '../rules/reload/choose-reload.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import type { MetricsFormat } from '../telemetry/exposition/exposition.js'
import type { CollectedMetric } from '../telemetry/metrics.js'
import type { Warnings } from '../validation/warnings.js'
import { banStore } from './bans/ban-store.js'
import { lookAtBuckets, resetBuckets } from './buckets/bucket-access.js'
import { type CandidateControl, candidateControl } from './candidates/candidate-control.js'
import { CandidateHandler, refundCandidate } from './candidates/candidate-handler.js'
import { Candidates, withoutCandidates } from './candidates/candidates.js'
import { CurrentRules } from './current-rules.js'
import { asReloadError, type GateEvents, type GateListener, GateListeners, startedBan } from './events.js'
import type { BucketSelector, FluxGate } from './flux-gate.js'
import type { GateParts } from './gate-parts.js'
import { PendingResets } from './generations/pending-resets.js'
import { requireGenerations } from './generations/require-generations.js'
import { type GateHealth, healthOf } from './health/gate-health.js'
import { probeStore, StoreState } from './health/store-state.js'
import { type Decider, ObservedHandler } from './observed-handler.js'
import { canChange, checkDefaultRuleSet } from './open-rules.js'
import type { FluxGateOptions } from './options.js'
import { overrideStore } from './overrides/override-store.js'
import { collectGateMetrics, renderGateMetrics, requireMetrics } from './reporting/read-metrics.js'

/** Implements `FluxGate`. Owns the rules, the store, the waiting room and the listeners. */
export class Gate implements FluxGate {
  readonly #options: FluxGateOptions
  readonly #clock: Clock
  readonly #loadedRules: LoadedRules
  readonly #rules: CurrentRules
  readonly #parts: GateParts
  /** The store for decisions. Rejects calls until the bucket generations are known. */
  readonly #store: BucketStore
  readonly #storeState: StoreState
  readonly #pendingResets: PendingResets | undefined
  readonly #handler: StandaloneHandler
  readonly #room: WaitingRoom
  readonly #listeners = new GateListeners()
  /** Used by decisions: the handler itself, or with candidates alongside it. */
  #plain: Decider
  #observed: ObservedHandler
  readonly #candidates: Candidates
  readonly candidates: CandidateControl
  readonly overrides: OverrideStore | undefined
  readonly bans: BanStore | undefined
  readonly warnings: Warnings
  #reloadName = 'NONE'
  /** Stop functions of background work. */
  readonly #stops: (() => void)[] = []
  #closed = false

  private constructor(options: FluxGateOptions, parts: GateParts) {
    const { clock, loadedRules, store, observer } = parts
    const { overrides, bans, generations, availability } = store
    this.#options = options
    this.#clock = clock
    this.#loadedRules = loadedRules
    this.#parts = parts
    this.warnings = parts.warnings
    this.#rules = new CurrentRules(options, withoutCandidates(loadedRules.current), store)
    this.#store = generations === undefined ? store : requireGenerations(store, generations)
    this.overrides =
      overrides &&
      overrideStore(overrides, {
        ruleOf: (ruleSetId, ruleId) => this.#rules.ruleOf(ruleSetId, ruleId),
        ipv6Prefix: options.ipv6Prefix,
        clock,
      })
    this.bans = bans && banStore(bans, { ruleOf: this.#rules.compiledRule, ipv6Prefix: options.ipv6Prefix })
    if (bans !== undefined)
      this.#stops.push(bans.onStart((ban) => this.#rules.has(ban.group) && this.#emit('ban', startedBan(ban))))
    this.#storeState = new StoreState({
      clock,
      probe: availability?.probe && (() => probeStore(store)),
      unreachable: () => availability?.unreachable,
      wasReached: () => generations === undefined || generations.isKnown,
      onDown: (error) => this.#emit('degraded', { error }),
      onUp: () => this.#emit('recovered', {}),
    })
    this.#room = new WaitingRoom(options.waitForRefill?.maxConcurrentWaits ?? defaultMaxConcurrentWaits, clock)
    this.#handler = this.#createHandler()
    this.#observed = new ObservedHandler(this.#handler, this.#listeners, observer)
    this.#plain = this.#handler
    this.#candidates = new Candidates(clock, store, () => this.#rules.snapshotOptions())
    this.candidates = candidateControl(this.#candidates, parts.ruleStore)
    this.#takeCandidates(loadedRules.current)
    loadedRules.onReload((result) => this.#reloaded(result))
    if (generations === undefined) return
    const pendingResets = new PendingResets(
      generations,
      (error) => this.#storeFailed(error),
      () => this.#storeState.answered(),
    )
    this.#pendingResets = pendingResets
    this.#stops.push(
      generations.watch(() => this.#rules.compileAgain()),
      () => pendingResets.close(),
    )
  }

  static async open(options: FluxGateOptions, parts: GateParts): Promise<Gate> {
    const { provider, clock } = parts
    const { strategy = canChange(options.rules) ? 'AUTO' : 'NONE', pollingIntervalMs } = options.reload ?? {}
    const reload = await chooseReload(strategy, provider, {
      clock,
      onError: (error) => gate.#emit('reload', { changed: false, error: asReloadError(error) }),
      ...(pollingIntervalMs !== undefined && { intervalMs: pollingIntervalMs }),
    })
    const gate = new Gate(options, parts)
    checkDefaultRuleSet(options, gate)
    gate.#reloadName = reload.name
    gate.#stops.push(reload.start((request) => gate.#reload(request)))
    const stopListening = provider.onEdit?.((edited) => gate.#edited(edited))
    if (stopListening !== undefined) gate.#stops.push(stopListening)
    return gate
  }

  /** An edit made in this process is in effect here before the edit resolves. */
  async #edited({ ruleSetId, removed }: EditedRules): Promise<void> {
    await this.#loadedRules.reload()
    // Exactly one of the processes that share the buckets must reset them: the one that made the edit.
    if (removed.length > 0) await this.#pendingResets?.resetRules(ruleSetId, removed)
  }

  get ruleSets(): readonly RuleSet[] {
    return this.#rules.ruleSets
  }

  get defaultRuleSetId(): string | undefined {
    return this.#rules.snapshot.defaultPlan?.ruleSet.id
  }

  /** Not `async`: a promise for the promise of a remote decision would take three more turns of the microtask queue. */
  check(context: RequestContext, options?: CheckOptions): Promise<Decision> {
    try {
      if (options !== undefined) warnOfUnknownOptions(options, this.warnings)
      return Promise.resolve(this.decide(context, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision> {
    if (this.#closed) throw closedError()
    const isObserved = this.#parts.observer !== undefined || this.#listeners.hearDecisions
    return (isObserved ? this.#observed : this.#plain).decide(context, options)
  }

  validateCosts(options: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>): void {
    this.#handler.validateCosts(options)
  }

  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision> {
    if (this.#closed) throw closedError()
    const isObserved = this.#parts.observer !== undefined || this.#listeners.hearDecisions
    return (isObserved ? this.#observed : this.#plain).decideTogether(checks, options)
  }

  async refund(
    context: RequestContext,
    options?: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>,
  ): Promise<void> {
    this.#assertOpen()
    if (options !== undefined) warnOfUnknownOptions(options, this.warnings)
    await this.#handler.refund(context, options)
    const candidate = this.#candidates.of(options?.ruleSetId ?? this.defaultRuleSetId)
    if (candidate !== undefined) await refundCandidate(candidate, this.#store, context, options)
  }

  async explain(context: RequestContext, options?: ExplainOptions): Promise<Explanation> {
    this.#assertOpen()
    return this.#handler.explain(context, options)
  }

  async acquire(context: RequestContext, options?: CheckOptions): Promise<Acquired> {
    return keepHold(this, await this.decide(context, options))
  }

  async release(holdId: string): Promise<boolean> {
    this.#assertOpen()
    return this.#handler.release(holdId)
  }

  async renew(holdId: string): Promise<boolean> {
    this.#assertOpen()
    return this.#handler.renew(holdId)
  }

  get heldCount(): number {
    return this.#handler.heldCount
  }

  async reserve(context: RequestContext, options: ReserveOptions): Promise<Reservation> {
    this.#assertOpen()
    return this.#observed.reserve(this.#handler, context, options)
  }

  async settle(id: string, actual?: SettleOptions): Promise<SettledReservation> {
    this.#assertOpen()
    return this.#handler.settle(id, actual)
  }

  async cancel(id: string): Promise<SettledReservation> {
    this.#assertOpen()
    return this.#handler.cancel(id)
  }

  get reservedCount(): number {
    return this.#handler.reservedCount
  }

  async look(what: BucketSelector): Promise<readonly BucketState[]> {
    this.#assertOpen()
    return lookAtBuckets(this.#rules, this.#store, what)
  }

  async reset(what: Pick<BucketSelector, 'ruleSetId'> & Partial<BucketSelector>): Promise<void> {
    this.#assertOpen()
    return resetBuckets(this.#rules, this.#store, what)
  }

  reload(): Promise<void> {
    return this.#reload()
  }

  async #reload(request?: ReloadRequest): Promise<void> {
    this.#assertOpen()
    const result = await this.#loadedRules.reload(request)
    if ('error' in result) throw result.error
  }

  on<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void {
    return this.#listeners.add(name, listener)
  }

  async health(): Promise<GateHealth> {
    if (!this.#closed) await this.#storeState.refresh()
    return healthOf({
      isClosed: this.#closed,
      availability: this.#parts.store.availability,
      state: this.#storeState,
      pendingResets: this.#pendingResets?.count ?? 0,
      rules: this.#loadedRules.status(),
      reload: this.#reloadName,
      waiting: this.#room.size,
    })
  }

  async metrics({ format = 'PROMETHEUS' }: { readonly format?: MetricsFormat | undefined } = {}): Promise<string> {
    return renderGateMetrics(this.#parts.metrics, format)
  }

  async collectMetrics(): Promise<readonly CollectedMetric[]> {
    return collectGateMetrics(this.#parts.metrics)
  }

  metricNames(): readonly string[] {
    return requireMetrics(this.#parts.metrics).names
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#handler.close()
    for (const stop of this.#stops) stop()
    this.#room.close()
    for (const one of this.#parts.opened) await one.close()
  }

  #createHandler(): StandaloneHandler {
    const { missingRuleBehavior = 'ALLOW', onStoreFailure = 'LOCAL', localShare = 1 } = this.#options
    return new StandaloneHandler({
      snapshot: () => this.#rules.snapshot,
      store: this.#store,
      localStore: memoryStore({ clock: this.#clock }),
      room: this.#room,
      clock: this.#clock,
      missingRuleBehavior,
      onStoreFailure,
      localShare,
      warnings: this.warnings,
      onStoreError: (error) => this.#storeFailed(error),
      onStoreAnswer: () => {
        if (this.#storeState.isDown) this.#storeState.answered()
      },
    })
  }

  /** Chooses the path of decisions, so that gates without candidates have no extra step. */
  #takeCandidates(ruleSets: readonly RuleSet[]): void {
    const had = !this.#candidates.isEmpty
    this.#candidates.replace(ruleSets)
    if (had === !this.#candidates.isEmpty) return
    const { missingRuleBehavior = 'ALLOW' } = this.#options
    this.#plain = had
      ? this.#handler
      : new CandidateHandler({
          handler: this.#handler,
          candidates: this.#candidates,
          store: this.#store,
          defaultRuleSetId: () => this.defaultRuleSetId,
          missingRuleBehavior,
        })
    this.#observed = new ObservedHandler(this.#plain, this.#listeners, this.#parts.observer)
  }

  async #reloaded(result: ReloadResult): Promise<void> {
    if ('error' in result) {
      this.#emit('reload', { changed: false, error: result.error })
      return
    }
    if (result.changed) {
      await this.#rules.replace(withoutCandidates(result.ruleSets))
      this.#takeCandidates(result.ruleSets)
    }
    this.#emit('reload', { changed: result.changed, error: null })
  }

  /** Calls that were in flight when the gate was closed may fail for that reason, so nothing is emitted after it. */
  #emit<Name extends keyof GateEvents>(name: Name, event: GateEvents[Name]): void {
    if (!this.#closed) this.#listeners.emit(name, event)
  }

  #storeFailed(error: unknown): void {
    // Calls that fail because the gate was closed are not store failures.
    if (this.#closed) return
    this.#parts.observer?.storeFailed(error)
    this.#storeState.failed(error)
  }

  #assertOpen(): void {
    if (this.#closed) throw closedError()
  }
}

const closedError = (): FluxGateError => new FluxGateError('FLUXGATE_CLOSED', 'The gate is closed. Create a new one.')
