import type { BucketStore } from '../../core/bucket-store.js'
import { composeDecision } from '../../core/decision/compose-decision.js'
import { MissingKey } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import type { CheckOptions, Handler } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import type { Verdict } from '../../telemetry/candidates/report.js'
import type { Candidate, Candidates } from './candidates.js'

export interface CandidateHandlerParts {
  readonly handler: Required<Pick<Handler, 'decide'>>
  readonly candidates: Candidates
  readonly store: BucketStore
  readonly defaultRuleSetId: () => string | undefined
  readonly missingRuleBehavior: 'ALLOW' | 'DENY'
}

/**
 * Decides with the rules in force, and evaluates the candidate of the rule set beside them, without effect on the decision. The
 * candidate is a decision of its own, which charges all of its buckets or none. It is requested in the same turn of the event
 * loop, so a remote store receives both in one call. Used only while there are candidates.
 */
export class CandidateHandler {
  readonly #parts: CandidateHandlerParts

  constructor(parts: CandidateHandlerParts) {
    this.#parts = parts
  }

  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision> {
    const { handler, candidates, defaultRuleSetId } = this.#parts
    const candidate = options?.peek ? undefined : candidates.of(options?.ruleSetId ?? defaultRuleSetId())
    const decided = handler.decide(context, options)
    if (candidate === undefined) return decided
    const verdict = this.#try(candidate, context, options?.permits ?? 1, decided)
    if (decided instanceof Promise || verdict instanceof Promise) {
      // A failure of the store is reported by the decision itself. The candidate then has no verdict.
      const recorded = Promise.all([decided, verdict]).then(([decision, then]) => record(candidate, decision, then))
      recorded.catch(() => {})
    } else record(candidate, decided, verdict)
    return decided
  }

  /** The verdict of the candidate. */
  #try(
    { plan }: Candidate,
    context: RequestContext,
    permits: number,
    decided: Decision | Promise<Decision>,
  ): Verdict | Promise<Verdict> {
    const all = plan.charges(context, permits)
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

const verdictOf = ({ allowed, ruleId, key }: Decision): Verdict => ({ allowed, ruleId, key })

/** Compares neither decisions without the shared store nor rejections by rules that candidates do not evaluate. */
function record({ comparison, heldRules }: Candidate, decision: Decision, then: Verdict): void {
  if (decision.degraded || (!decision.allowed && heldRules.has(decision.ruleId ?? ''))) return
  comparison.add(decision, then)
}
