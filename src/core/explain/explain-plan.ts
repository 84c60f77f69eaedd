import { windowMsAt } from '../calendar/periods.js'
import { ticksPerMs } from '../clock.js'
import type { RateLimiter } from '../decision/rate-limiter.js'
import type { CompiledRule, Plan } from '../decision/snapshot.js'
import type { BandDecision, Decision } from '../decision.js'
import type { RequestContext } from '../request-context.js'
import type { Band } from '../rule.js'
import { inSlices } from '../scheduling/steps.js'
import { findingSteps, isShadowFor, type RuleFinding } from './explain-rules.js'
import type { ExplainedBand, ExplainedBucket, ExplainedRule, Explanation } from './explanation.js'

export interface ExplainParts {
  /** Decides the request without charging it. */
  readonly decide: () => Decision | Promise<Decision>
  /** The maximum number of rules that do not apply. */
  readonly maxOthers: number
  readonly limiter: Pick<RateLimiter, 'decide'>
}

/** Explains a decision of a plan: the part of each rule, and the buckets of those that match. */
export async function explainPlan(
  plan: Plan,
  context: RequestContext,
  { decide, maxOthers, limiter }: ExplainParts,
): Promise<Explanation> {
  const { id: ruleSetId } = plan.ruleSet
  const { paths, rules } = await inSlices(findingSteps(plan, context))
  let others = 0
  const listed = rules.filter(({ status }) => status === 'MATCHED' || status === 'MISSING_KEY' || others++ < maxOthers)
  // Decides and reads all buckets in one turn, so that a remote store receives one call.
  const deciding = decide()
  const levels = listed.map(({ compiled, keys }) =>
    keys.map((key) => ({ key, level: levelOf(limiter, ruleSetId, compiled, key) })),
  )
  const decision = await deciding
  const verdicts = new Map(decision.bands.map((band) => [nameOf(band.ruleId, band.key, band.label), band]))
  const explained = listed.map(async (finding, i): Promise<ExplainedRule> => {
    const { compiled, status, failed } = finding
    const { id: ruleId, name = null, priority, mode } = compiled.rule
    const buckets = (levels[i] ?? []).map(async ({ key, level }) => bucketOf(finding, key, await level, verdicts))
    return { ruleId, name, priority, mode, status, failed, buckets: await Promise.all(buckets) }
  })
  return { ruleSetId, paths, rules: await Promise.all(explained), omitted: rules.length - listed.length, decision }
}

/** Takes no permits and never waits, so that the result describes the bucket as it is. */
const levelOf = (
  limiter: Pick<RateLimiter, 'decide'>,
  ruleSetId: string,
  { charge: { group, policy } }: CompiledRule,
  key: string,
): Decision | Promise<Decision> =>
  limiter.decide(ruleSetId, [{ group, key, permits: 0, maxWaitTicks: 0, policy, shadow: false }], { peek: true })

const nameOf = (ruleId: string, key: string, label: string): string => JSON.stringify([ruleId, key, label])

function bucketOf(
  { compiled }: RuleFinding,
  key: string,
  { reason, bands, degraded }: Decision,
  verdicts: ReadonlyMap<string, BandDecision>,
): ExplainedBucket {
  const { rule } = compiled
  const explained = bands.map(({ label, limit, remaining, resetAt, windowMs }): ExplainedBand => {
    const { allowed = null, retryAfterMs = null } = verdicts.get(nameOf(rule.id, key, label)) ?? {}
    return { label, limit, remaining, resetAt, windowMs, allowed, retryAfterMs }
  })
  return {
    key,
    shadow: isShadowFor(compiled, key),
    override: degraded ? null : overrideOf(reason, rule.bands, bands),
    bands: explained,
  }
}

/** An override with the bands of the rule has no effect, so it counts as none. */
function overrideOf(
  reason: Decision['reason'],
  own: readonly Band[],
  bands: readonly BandDecision[],
): ExplainedBucket['override'] {
  if (reason === 'ALLOW_LISTED') return 'ALLOW'
  if (reason === 'DENY_LISTED') return 'DENY'
  const isOwn = bands.every(({ label, limit, windowMs, resetAt }, i) => {
    const band = own[i]
    if (band?.label !== label || band.capacity !== limit) return false
    // The period of a calendar ends at `resetAt`.
    return windowMsAt(band, resetAt * ticksPerMs - 1) === windowMs
  })
  return isOwn ? null : 'LIMIT'
}
