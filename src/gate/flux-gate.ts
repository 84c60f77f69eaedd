import type { BanStore } from '../core/contracts/ban-store.js'
import type { OverrideStore } from '../core/contracts/override-store.js'
import type { JointCheck, JointDecision, JointOptions } from '../core/decision/joint/joint-check.js'
import type { Decision } from '../core/decision.js'
import type { ExplainOptions, Explanation } from '../core/explain/explanation.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { Acquired } from '../core/holds/keep-hold.js'
import type { RequestContext } from '../core/request-context.js'
import type {
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from '../core/reservations/reservation.js'
import type { BucketState } from '../core/reservations/reservation-storage.js'
import type { RuleSet } from '../core/rule.js'
import type { MetricsFormat } from '../telemetry/exposition/exposition.js'
import type { CollectedMetric } from '../telemetry/metrics.js'
import type { Warnings } from '../validation/warnings.js'
import type { CandidateControl } from './candidates/candidate-control.js'
import type { GateEvents, GateListener } from './events.js'
import type { GateHealth } from './health/gate-health.js'

/** Identifies the buckets of one key under one rule. */
export interface BucketSelector {
  readonly ruleSetId: string
  readonly ruleId: string
  readonly key: string
}

/** Applies rules to requests. Created by `createFluxGate`. */
export interface FluxGate extends Handler {
  /**
   * Decides a request and charges it if it is allowed. A rejection is a decision with `allowed: false`, never an error.
   *
   * @example
   * const { allowed, retryAfterMs } = await gate.check({ clientIp: '203.0.113.7', method: 'GET', path: '/api/users' })
   */
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /** Like `check`, but synchronous if the buckets are in this process: returns the Decision itself, or throws. Middleware uses it. */
  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision>
  /**
   * Decides several contexts as one: either all of them are charged, or none is. Synchronous if the buckets are in this process.
   *
   * @example
   * const { decision, parts } = await gate.decideTogether([{ context: { clientIp } }, { context: { apiKey }, permits: 3 }])
   */
  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision>
  /** Throws what a check throws if its rule set does not charge one of its costs. Charges nothing. */
  validateCosts(options: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>): void
  /**
   * Explains the decision about a request: every rule with the condition that excludes it or with its key and buckets. Charges
   * nothing, and emits no `decision` event.
   *
   * @example
   * const { rules, decision } = await gate.explain({ clientIp: '203.0.113.7', method: 'GET', path: '/api/users' })
   * for (const { ruleId, status, failed } of rules) console.log(ruleId, status, failed?.field)
   */
  explain(context: RequestContext, options?: ExplainOptions): Promise<Explanation>
  /**
   * Decides like `check` and, under rules with the algorithm CONCURRENCY, occupies slots until `release()` is called. Holds are
   * renewed automatically until then. If this process ends, they expire after `maxHold`.
   *
   * @example
   * const { decision, release } = await gate.acquire({ apiKey, path: '/reports' })
   */
  acquire(context: RequestContext, options?: CheckOptions): Promise<Acquired>
  /** Frees the slots of a decision with a `holdId`. Resolves to false if they have expired or were released before. */
  release(holdId: string): Promise<boolean>
  /** Extends a hold by its `maxHold`, from now. Resolves to false if it has expired or was released. */
  renew(holdId: string): Promise<boolean>
  /** The number of holds that this process has taken and that are neither released nor expired. */
  readonly heldCount: number
  /**
   * Charges an estimate of the cost of a request, like a check, and keeps it until `settle` replaces it with the actual cost. A
   * call with an `id` that is already known charges nothing and resolves to the first result.
   *
   * @throws FluxGateError `FLUXGATE_RESERVATION_UNSUPPORTED` if a rule that applies has LEAKY_BUCKET, CONCURRENCY or LEASED
   * @example
   * const { decision, id } = await gate.reserve({ apiKey }, { costs: { tokens: 4000 }, ttlMs: 60_000 })
   * if (decision.allowed) await gate.settle(id, { costs: { tokens: 1234 } })
   */
  reserve(context: RequestContext, options: ReserveOptions): Promise<Reservation>
  /**
   * Replaces the estimate of a reservation with its actual cost. An excess is refunded as of the time it was taken. A shortfall
   * is charged, even if the bucket goes into debt of at most its capacity. Further calls return the first result.
   *
   * @throws FluxGateError `FLUXGATE_RESERVATION_UNKNOWN` or `FLUXGATE_RESERVATION_EXPIRED`
   */
  settle(id: string, actual?: SettleOptions): Promise<SettledReservation>
  /** Refunds a reservation completely. Rejects like `settle`. */
  cancel(id: string): Promise<SettledReservation>
  /** The number of reservations that this process has made and that are neither settled, canceled nor expired. */
  readonly reservedCount: number
  /** Returns the current buckets of a key under a rule, by band, with their open reservations. Charges nothing. */
  look(what: BucketSelector): Promise<readonly BucketState[]>
  /** Resets the buckets of a key, of a rule (without `key`), or of a rule set (without `ruleId`). */
  reset(what: Pick<BucketSelector, 'ruleSetId'> & Partial<BucketSelector>): Promise<void>
  /** Reloads the rules. Rejects if they are invalid; the current rules then stay in effect. */
  reload(): Promise<void>
  /** The current rule sets. */
  readonly ruleSets: readonly RuleSet[]
  /** The id of the rule set for requests that name none; undefined if no rule set is the default. */
  readonly defaultRuleSetId: string | undefined
  /** Warnings about likely misconfigurations, with the number of their occurrences. */
  readonly warnings: Warnings
  /** Overrides of rules; undefined if the store does not support them. */
  readonly overrides?: OverrideStore | undefined
  /** Bans of keys by rules with `ban`; undefined if the store does not support them. */
  readonly bans?: BanStore | undefined
  /** Candidates: other versions of rule sets, evaluated alongside the current rules without effect. */
  readonly candidates: CandidateControl
  /** Adds an event listener. Returns a function that removes it. */
  on<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void
  /** Returns the health of the gate. Probes the store at most once per second, with the timeout of a call. */
  health(): Promise<GateHealth>
  /**
   * Returns the metrics in the Prometheus text format, or in OpenMetrics with the exemplars of sampled traces.
   *
   * @param options `format`: `PROMETHEUS` (default) or `OPENMETRICS`
   * @throws FluxGateError `FLUXGATE_CONFIG_INVALID` if the gate was created without `metrics: true`
   */
  metrics(options?: { readonly format?: MetricsFormat | undefined }): Promise<string>
  /** Returns the metrics as data, for other formats. Like `metrics`, it needs the option `metrics: true`. */
  collectMetrics(): Promise<readonly CollectedMetric[]>
  /** The names of all metrics. Like `metrics`, it needs the option `metrics: true`. */
  metricNames(): readonly string[]
  /** Stops reloading, rejects delayed requests, and closes the stores that the gate opened. */
  close(): Promise<void>
}
