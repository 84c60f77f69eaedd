import type { BucketStore, Charge } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { checkContext, checkPermits } from '../core/decision/check-request.js'
import { checkCosts } from '../core/decision/costs.js'
import { decideJointly } from '../core/decision/joint/decide-jointly.js'
import { MissingPart, partChargesOf } from '../core/decision/joint/joint-charges.js'
import type { JointCheck, JointDecision, JointOptions } from '../core/decision/joint/joint-check.js'
import { RateLimiter } from '../core/decision/rate-limiter.js'
import { MissingKey, type Plan, type Snapshot } from '../core/decision/snapshot.js'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision, Reason } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import { explainPlan } from '../core/explain/explain-plan.js'
import type { ExplainOptions, Explanation } from '../core/explain/explanation.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import { HoldingLimiter } from '../core/holds/holding-limiter.js'
import type { RequestContext } from '../core/request-context.js'
import { checkReserveOptions } from '../core/reservations/check-reservation.js'
import type {
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from '../core/reservations/reservation.js'
import type { ChargedCost } from '../core/reservations/reservation-storage.js'
import { ReservingLimiter, reservedCosts } from '../core/reservations/reserving-limiter.js'
import { type Costs, type OnStoreFailure, type Rule, requestCost } from '../core/rule.js'
import type { WaitingRoom } from '../core/waiting/waiting-room.js'
import { quoted } from '../validation/issues.js'
import { nameHint } from '../validation/nearest.js'
import type { Warnings } from '../validation/warnings.js'
import { StoreFailurePolicy } from './store-failure-policy.js'
import { unknownRuleSet } from './unknown-rule-set.js'

/** Options of `StandaloneHandler`. */
export interface StandaloneOptions {
  /** The rules, or a function that returns the current ones. It is called once per decision, which keeps the result. */
  readonly snapshot: Snapshot | (() => Snapshot)
  /** The bucket store. */
  readonly store: BucketStore
  /** Limits in this process while `store` fails. */
  readonly localStore: BucketStore
  /** Holds delayed requests. */
  readonly room: WaitingRoom
  /** Time source. */
  readonly clock: Clock
  /** Applies to requests without a matching rule. */
  readonly missingRuleBehavior: 'ALLOW' | 'DENY'
  /** Applies to rules without a policy of their own. */
  readonly onStoreFailure: OnStoreFailure
  /** The share of each limit that this process enforces alone while the store fails; 1 is all of it. */
  readonly localShare: number
  /** Receives warnings about contexts with unknown fields and about rule sets that do not exist. */
  readonly warnings?: Warnings
  /** Called for every failure of a remote store. */
  readonly onStoreError?: (error: unknown) => void
  /** Called for every reply of a remote store. */
  readonly onStoreAnswer?: () => void
}

const contextFields: readonly string[] = [
  'key',
  'clientIp',
  'userId',
  'apiKey',
  'method',
  'path',
  'headers',
  'attributes',
] satisfies (keyof RequestContext)[]

/** The default of `limit` of `explain`. */
const defaultExplained = 1_000

const noCosts: Costs = Object.freeze({})

/** True if nothing is charged, so that the decision only returns the current state. */
const isFree = (permits: number, charges: readonly Charge[]): boolean =>
  permits === 0 && charges.every((charge) => charge.permits === 0)

const noOptions: CheckOptions = Object.freeze({})

/** Decides in this process: one rule snapshot, one call to the store, and a fallback while the store fails. */
export class StandaloneHandler implements Handler {
  readonly #options: StandaloneOptions
  readonly #limiter: RateLimiter
  readonly #holding: HoldingLimiter
  readonly #reserving: ReservingLimiter

  constructor(options: StandaloneOptions) {
    const { store, room, clock, onStoreAnswer, onStoreError } = options
    const fallback = new StoreFailurePolicy(options)
    this.#options = options
    this.#limiter = new RateLimiter(store, room, {
      fallback,
      onStoreAnswer,
      onStoreError,
    })
    const groupOf = (ruleSetId: string | null, ruleId: string) =>
      this.#planOf(ruleSetId ?? undefined)?.rules.get(ruleId)?.group
    this.#holding = new HoldingLimiter(this.#limiter, { store, localHolds: fallback.holds, room, clock, groupOf })
    this.#reserving = new ReservingLimiter({ store, clock, fallback, groupOf, onStoreAnswer, onStoreError })
  }

  async check(context: RequestContext, options?: CheckOptions): Promise<Decision> {
    return this.decide(context, options)
  }

  decide(context: RequestContext, options: CheckOptions = noOptions): Decision | Promise<Decision> {
    const plan = this.#planOf(options.ruleSetId)
    if (plan === undefined) return this.#noRuleSet(options.ruleSetId)
    const { id: ruleSetId } = plan.ruleSet
    const given = options.permits === undefined ? undefined : checkPermits(options.permits)
    const { permits, costs } =
      options.costs == null ? { permits: given ?? 1, costs: undefined } : checkCosts(options.costs, given, plan.costs)
    const charges = plan.charges(checkContext(context), permits, costs)
    // A misspelt field shows as a missing one. Contexts of middleware have both.
    if (context.clientIp == null || context.path == null) this.#warnOfUnknownFields(context)
    if (charges instanceof MissingKey) return this.#missingKey(plan, charges)
    if (charges.length === 0) return this.#notCovered('NO_RULE', ruleSetId)
    return (plan.takesHolds ? this.#holding : this.#limiter).decide(
      ruleSetId,
      charges,
      isFree(permits, charges) ? { ...options, peek: true } : options,
    )
  }

  /** Throws what `decide` throws if the costs of a check are invalid. Charges nothing. */
  validateCosts({ ruleSetId, permits, costs }: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>): void {
    const plan = this.#planOf(ruleSetId)
    if (plan !== undefined && costs != null) checkCosts(costs, permits, plan.costs)
  }

  /** Decides about several contexts at once: all of them are charged, or none is. */
  decideTogether(checks: readonly JointCheck[], options: JointOptions = {}): JointDecision | Promise<JointDecision> {
    const plan = this.#planOf(options.ruleSetId)
    if (plan === undefined) return notCovered(this.#noRuleSet(options.ruleSetId), checks)
    const { id: ruleSetId } = plan.ruleSet
    for (const { context, permits } of checks) {
      checkContext(context)
      if (permits !== undefined) checkPermits(Math.abs(permits))
    }
    const parts = partChargesOf(plan, checks)
    if (parts instanceof MissingPart) {
      const details = { ruleSetId, ruleId: parts.missing.rule.id }
      const decision = unmeteredDecision(false, 'MISSING_KEY', this.#now(), details)
      return { decision, parts: checks.map((_, i) => ({ allowed: i !== parts.index, band: null })) }
    }
    if (parts.every(({ charges }) => charges.length === 0))
      return notCovered(this.#notCovered('NO_RULE', ruleSetId), checks)
    const limiter = plan.takesHolds ? this.#holding : this.#limiter
    return decideJointly(
      {
        ruleSetId,
        decide: (id, charges, how) => limiter.decide(id, charges, how),
        refund: (charges) => this.#limiter.refund(charges.map(({ group, key, permits }) => ({ group, key, permits }))),
      },
      parts,
      options,
    )
  }

  async reserve(context: RequestContext, options: ReserveOptions): Promise<Reservation> {
    const terms = checkReserveOptions(options)
    const plan = this.#planOf(options.ruleSetId)
    const charges = plan === undefined ? [] : chargesOf(plan, context, options)
    if (charges instanceof MissingKey) return { decision: this.#missingKey(plan as Plan, charges), id: terms.id }
    const ruleSetId = plan?.ruleSet.id ?? options.ruleSetId ?? null
    let reason: Reason = 'ALLOWED'
    if (charges.length === 0) {
      const decision = plan === undefined ? this.#noRuleSet(options.ruleSetId) : this.#notCovered('NO_RULE', ruleSetId)
      if (!decision.allowed) return { decision, id: terms.id }
      reason = decision.reason
    }
    const costs = charges.map(({ group }) => chargedCost(plan?.rules.get(group.ruleId)?.rule))
    return this.#reserving.reserve({ ...terms, ruleSetId, reason, charges, costs, names: reservedCosts(options.costs) })
  }

  settle(id: string, actual?: SettleOptions): Promise<SettledReservation> {
    return this.#reserving.settle(id, actual)
  }

  cancel(id: string): Promise<SettledReservation> {
    return this.#reserving.cancel(id)
  }

  /** The number of reservations that this process has made and that are still open. */
  get reservedCount(): number {
    return this.#reserving.openCount
  }

  release(holdId: string): Promise<boolean> {
    return this.#holding.release(holdId)
  }

  renew(holdId: string): Promise<boolean> {
    return this.#holding.renew(holdId)
  }

  /** The number of holds that this process has taken and that are neither released nor expired. */
  get heldCount(): number {
    return this.#holding.heldCount
  }

  /** Ends the waits for slots of CONCURRENCY rules. */
  close(): void {
    this.#holding.close()
  }

  /** Returns the decision of a check with the part of each rule in it. Charges nothing. */
  async explain(context: RequestContext, { limit, ...options }: ExplainOptions = {}): Promise<Explanation> {
    const maxOthers = limit === undefined ? defaultExplained : checkLimit(limit)
    const plan = this.#planOf(options.ruleSetId)
    const decide = () => this.decide(context, { ...options, peek: true })
    if (plan === undefined) return { ruleSetId: null, paths: [], rules: [], omitted: 0, decision: await decide() }
    return explainPlan(plan, checkContext(context), { decide, maxOthers, limiter: this.#limiter })
  }

  async refund(
    context: RequestContext,
    options: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'> = {},
  ): Promise<void> {
    const plan = this.#planOf(options.ruleSetId)
    if (plan === undefined) this.#noRuleSet(options.ruleSetId)
    if (options.permits !== undefined) checkPermits(options.permits)
    const charges = plan === undefined ? [] : chargesOf(plan, context, options)
    if (charges instanceof MissingKey || charges.length === 0) return
    await this.#limiter.refund(charges.map(({ group, key, permits }) => ({ group, key, permits })))
  }

  #planOf(ruleSetId: string | undefined): Plan | undefined {
    const { snapshot } = this.#options
    const { defaultPlan, plans } = typeof snapshot === 'function' ? snapshot() : snapshot
    return ruleSetId === undefined ? defaultPlan : plans.get(ruleSetId)
  }

  #noRuleSet(ruleSetId: string | undefined): Decision {
    const { snapshot } = this.#options
    const { plans } = typeof snapshot === 'function' ? snapshot() : snapshot
    const ids = [...plans.keys()]
    // One warning for all ids, because clients of a server choose them. A process without rules, such as a gateway that only
    // forwards, has nothing to warn of.
    if (ids.length > 0)
      this.#options.warnings?.warn('FLUXGATE_RULE_SET_UNKNOWN', unknownRuleSet(ruleSetId, ids), 'rule set')
    return this.#notCovered('NO_RULE_SET', ruleSetId ?? null)
  }

  #warnOfUnknownFields(context: RequestContext): void {
    const { warnings } = this.#options
    if (warnings === undefined) return
    for (const name in context)
      if (!contextFields.includes(name))
        warnings.warn(
          'FLUXGATE_ARGUMENT_INVALID',
          `The context of a check has the unknown field ${quoted(name)}; ${nameHint(name, contextFields)}`,
        )
  }

  #missingKey({ ruleSet }: Plan, { rule }: MissingKey): Decision {
    return unmeteredDecision(false, 'MISSING_KEY', this.#now(), { ruleSetId: ruleSet.id, ruleId: rule.id })
  }

  #notCovered(reason: Reason, ruleSetId: string | null): Decision {
    return unmeteredDecision(this.#options.missingRuleBehavior === 'ALLOW', reason, this.#now(), { ruleSetId })
  }

  #now(): number {
    return this.#options.clock.now()
  }
}

const notCovered = (decision: Decision, checks: readonly JointCheck[]): JointDecision => ({
  decision,
  parts: checks.map(() => ({ allowed: decision.allowed, band: null })),
})

/** The charges of a request whose speed does not matter. */
function chargesOf(
  plan: Plan,
  context: RequestContext,
  options: Pick<CheckOptions, 'permits' | 'costs'>,
): readonly Charge[] | MissingKey {
  const given = options.permits === undefined ? undefined : checkPermits(options.permits)
  const { permits, costs } = checkCosts(options.costs ?? noCosts, given, plan.costs)
  return plan.charges(checkContext(context), permits, costs)
}

const chargedCost = ({ cost = requestCost, permits = 1 }: Partial<Rule> = {}): ChargedCost => ({ name: cost, permits })

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 0) return limit
  const received = typeof limit === 'number' ? limit : typeof limit
  throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `limit must be an integer of at least 0; received ${received}.`)
}
