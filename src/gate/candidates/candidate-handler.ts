import type { BucketStore, Charge } from '../../core/bucket-store.js'
import { composeDecision } from '../../core/decision/compose-decision.js'
import { costOf } from '../../core/decision/costs.js'
import { MissingPart, mergedCharges, partChargesOf } from '../../core/decision/joint/joint-charges.js'
import type { JointCheck, JointDecision, JointOptions } from '../../core/decision/joint/joint-check.js'
import { MissingKey, type Plan } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import type { CheckOptions } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import { requestCost } from '../../core/rule.js'
import type { Verdict } from '../../telemetry/candidates/report.js'
import type { Decider } from '../observed-handler.js'
import type { Candidate, Candidates } from './candidates.js'

export interface CandidateHandlerParts {
  readonly handler: Decider
  readonly candidates: Candidates
  readonly store: BucketStore
  readonly defaultRuleSetId: () => string | undefined
  readonly missingRuleBehavior: 'ALLOW' | 'DENY'
}

/**
 * Decides with the current rules, and evaluates the candidate of the rule set alongside them, without effect on the decision. The
 * candidate is a decision of its own, which charges all of its buckets or none. It is requested in the same turn of the event
 * loop, so a remote store receives both in one call. Used only while there are candidates.
 */
export class CandidateHandler implements Decider {
  readonly #parts: CandidateHandlerParts

  constructor(parts: CandidateHandlerParts) {
    this.#parts = parts
  }

  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision> {
    const { handler, candidates, defaultRuleSetId } = this.#parts
    const candidate = options?.peek ? undefined : candidates.of(options?.ruleSetId ?? defaultRuleSetId())
    const decided = handler.decide(context, options)
    if (candidate === undefined) return decided
    this.#compare(candidate, chargesOf(candidate.plan, context, options), decided)
    return decided
  }

  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision> {
    const { handler, candidates, defaultRuleSetId, store } = this.#parts
    const candidate = options?.peek ? undefined : candidates.of(options?.ruleSetId ?? defaultRuleSetId())
    const decided = handler.decideTogether(checks, options)
    if (candidate === undefined) return decided
    const decision = decided instanceof Promise ? decided.then((joint) => joint.decision) : decided.decision
    const counted = checks.filter(({ permits = 1 }) => permits > 0)
    if (counted.length > 0) this.#compare(candidate, jointCharges(candidate.plan, counted), decision)
    for (const { context, permits = 1 } of checks)
      if (permits < 0) void refundCandidate(candidate, store, context, { permits: -permits })
    return decided
  }

  #compare(candidate: Candidate, all: readonly Charge[] | MissingKey, decided: Decision | Promise<Decision>): void {
    const verdict = this.#try(all, decided)
    if (decided instanceof Promise || verdict instanceof Promise) {
      // A failure of the store is reported by the decision itself. The candidate then has no verdict.
      const recorded = Promise.all([decided, verdict]).then(([decision, then]) => record(candidate, decision, then))
      recorded.catch(() => {})
    } else record(candidate, decided, verdict)
  }

  /** The verdict of the candidate. */
  #try(all: readonly Charge[] | MissingKey, decided: Decision | Promise<Decision>): Verdict | Promise<Verdict> {
    if (all instanceof MissingKey) return { allowed: false, ruleId: all.rule.id, key: null }
    // Nothing would release the slot of a candidate.
    const charges = all.filter(({ group }) => !group.takesHolds)
    if (all.length === 0) return { allowed: this.#parts.missingRuleBehavior === 'ALLOW', ruleId: null, key: null }
    if (charges.length === 0) return { allowed: true, ruleId: null, key: null }
    const { store } = this.#parts
    if (store.chargeSync === undefined)
      return store.charge(charges, false).then((result) => verdictOf(composeDecision(null, charges, result, false)))
    // At the time of the decision, if it has read buckets: equal rules must decide equally.
    const wasMetered = !(decided instanceof Promise) && decided.bands.length > 0
    const result =
      wasMetered && store.chargeAgain !== undefined ? store.chargeAgain(charges) : store.chargeSync(charges, false)
    return verdictOf(composeDecision(null, charges, result, false))
  }
}

type Amounts = Pick<CheckOptions, 'permits' | 'costs'>

/** The handler has validated the options before. */
const chargesOf = (
  plan: Plan,
  context: RequestContext,
  { permits, costs }: Amounts = {},
): readonly Charge[] | MissingKey => plan.charges(context, permits ?? costOf(costs, requestCost) ?? 1, costs)

/** A request that is refunded does not count for the candidate either. */
export async function refundCandidate(
  { plan }: Candidate,
  store: Pick<BucketStore, 'refund'>,
  context: RequestContext,
  options?: Amounts,
): Promise<void> {
  const charges = chargesOf(plan, context, options)
  if (charges instanceof MissingKey || charges.length === 0) return
  // The candidate has no effect, so neither has a failed refund.
  await store.refund(charges.map(({ group, key, permits }) => ({ group, key, permits }))).catch(() => {})
}

function jointCharges(plan: Plan, checks: readonly JointCheck[]): readonly Charge[] | MissingKey {
  const parts = partChargesOf(plan, checks)
  return parts instanceof MissingPart ? parts.missing : mergedCharges(parts)
}

const verdictOf = ({ allowed, ruleId, key }: Decision): Verdict => ({ allowed, ruleId, key })

/** Compares neither decisions without the shared store nor rejections by rules that candidates do not evaluate. */
function record({ comparison, heldRules }: Candidate, decision: Decision, then: Verdict): void {
  if (decision.degraded || (!decision.allowed && heldRules.has(decision.ruleId ?? ''))) return
  comparison.add(decision, then)
}
