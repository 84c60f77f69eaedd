/** Runs a rule set over requests and reports which of them it rejects, by rule. */
import { ticksPerMs } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import type { RequestContext } from '../core/request-context.js'
import type { Arrivals } from './arrival.js'
import { Meter } from './meter.js'
import { finish, type Run, runOf, type SimulatedSpan } from './simulate-bands.js'

/** Decides about one request at the tick `at` of the virtual clock. */
export type Decide = (context: RequestContext, at: number) => Decision | Promise<Decision>

export interface RuleRun {
  readonly ruleId: string
  /** The number of requests that the rule applied to. */
  readonly applied: number
  /** The number of these requests that were allowed. */
  readonly allowed: number
  /** The number of these requests that this rule rejected. Another rule may have rejected them too. */
  readonly rejected: number
  /** The number of rejections by a rule in SHADOW mode, which have no effect. */
  readonly shadowRejected: number
}

export interface RulesSimulation {
  readonly startAtMs: number
  readonly bucketMs: number
  /** The window of the peaks: one second, because rules have different windows. */
  readonly windowMs: number
  readonly total: Run
  readonly rules: readonly RuleRun[]
  /** The number of requests that no rule applied to. */
  readonly withoutRule: number
}

type Tally = { -readonly [field in keyof RuleRun]: RuleRun[field] }

const peakWindow = 1_000 * ticksPerMs

export async function simulateRules(
  decide: Decide,
  arrivals: Arrivals,
  span: SimulatedSpan = {},
): Promise<RulesSimulation> {
  const tallies = new Map<string, Tally>()
  let meter: Meter | undefined
  let last = span.startAt ?? 0
  let withoutRule = 0
  for await (const { at, context = {} } of arrivals) {
    meter ??= new Meter(span.startAt ?? at, peakWindow)
    last = at
    const decision = await decide(context, at)
    if (decision.allowed) meter.allowed(at, decision.delayMs * ticksPerMs)
    else meter.rejected(at)
    if (decision.ruleId === null && decision.bands.length === 0) withoutRule += 1
    else count(tallies, decision)
  }
  meter ??= new Meter(last, peakWindow)
  const bucketMs = finish([meter], Math.max(last, (span.until ?? 0) - 1))
  return {
    startAtMs: meter.series.startAt / ticksPerMs,
    bucketMs,
    windowMs: peakWindow / ticksPerMs,
    total: runOf(meter),
    rules: [...tallies.values()].sort((a, b) => b.rejected - a.rejected || b.applied - a.applied),
    withoutRule,
  }
}

function count(tallies: Map<string, Tally>, decision: Decision): void {
  const bands = decision.bands
  for (const ruleId of new Set(bands.map((band) => band.ruleId))) {
    const rejecting = bands.find((band) => band.ruleId === ruleId && !band.allowed)
    const tally = tallyOf(tallies, ruleId)
    tally.applied += 1
    if (decision.allowed) tally.allowed += 1
    if (rejecting?.shadow) tally.shadowRejected += 1
    else if (rejecting) tally.rejected += 1
  }
  // A decision without a bucket has no bands, only the deciding rule.
  if (bands.length > 0 || decision.ruleId === null) return
  const tally = tallyOf(tallies, decision.ruleId)
  tally.applied += 1
  if (decision.allowed) tally.allowed += 1
  else tally.rejected += 1
}

function tallyOf(tallies: Map<string, Tally>, ruleId: string): Tally {
  const known = tallies.get(ruleId)
  if (known) return known
  const fresh = { ruleId, applied: 0, allowed: 0, rejected: 0, shadowRejected: 0 }
  tallies.set(ruleId, fresh)
  return fresh
}
