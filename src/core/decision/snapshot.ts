import { createHash } from 'node:crypto'
import { type BucketGroup, type Claim, type Demand, demandOf, newMemo } from '../bucket-store.js'
import { ticksUp } from '../clock.js'
import { compileKey, type KeyOf, type ScopeKeyOptions } from '../keys/scope-key-resolver.js'
import type { PathVariables } from '../matching/paths/path-pattern.js'
import { isForEveryRequest, type Match, matcherSteps, rankedRules } from '../matching/rule-matcher.js'
import type { MatchedContext, RequestContext } from '../request-context.js'
import { countsByPath, type Rule, type RuleSet } from '../rule.js'
import { eachInSteps, finish, mapInSteps, type Steps } from '../scheduling/steps.js'

export interface SnapshotOptions extends ScopeKeyOptions {
  readonly defaultRuleSetId?: string | undefined
  /** How long WAIT_FOR_REFILL waits where a rule does not say. */
  readonly maxWaitMs: number
  /** Whether a rule whose bands changed starts with fresh buckets. */
  readonly resetBucketsOnReload: boolean
  /** How often a rule's buckets were reset as a whole. */
  readonly resets: (ruleSetId: string, ruleId: string) => number
}

/** All rule sets, compiled. Immutable: a decision uses one snapshot from start to end. */
export interface Snapshot {
  readonly plans: ReadonlyMap<string, Plan>
  /** Decides requests that name no rule set: the configured default, else the only rule set, else the one called `default`. */
  readonly defaultPlan: Plan | undefined
}

/** A compiled rule set. Its form is chosen at compile time, so that a request pays only for what its rule set needs. */
export interface Plan {
  readonly ruleSet: RuleSet
  readonly rules: ReadonlyMap<string, CompiledRule>
  /** The charges of a request, one per rule that applies; or the rule that rejects it because its identity is missing. */
  charges(context: RequestContext, permits: number): readonly Demand[] | MissingKey
}

export interface CompiledRule {
  readonly rule: Rule
  readonly group: BucketGroup
  readonly keyOf: KeyOf
  readonly claim: Claim
}

/** A rule that refuses requests without its identity, for a request that is one. */
export class MissingKey {
  readonly rule: Rule

  constructor(rule: Rule) {
    this.rule = rule
  }
}

/** Who shares a bucket when there is nobody to name. */
const anonymous = 'anonymous'

export const compileSnapshot = (ruleSets: readonly RuleSet[], options: SnapshotOptions): Snapshot =>
  finish(snapshotSteps(ruleSets, options))

/** As `compileSnapshot`, in steps of about one rule each. */
export function* snapshotSteps(ruleSets: readonly RuleSet[], options: SnapshotOptions): Steps<Snapshot> {
  const plans = new Map<string, Plan>()
  for (const ruleSet of ruleSets) plans.set(ruleSet.id, yield* planSteps(ruleSet, options))
  const forAll = ruleSets.filter(({ isForItsRoute }) => !isForItsRoute)
  const only = forAll.length === 1 ? forAll[0]?.id : 'default'
  return { plans, defaultPlan: plans.get(options.defaultRuleSetId ?? only ?? '') }
}

function* planSteps(ruleSet: RuleSet, options: SnapshotOptions): Steps<Plan> {
  const { caseSensitive } = ruleSet
  const compile = (rule: Rule): CompiledRule => compileRule(ruleSet.id, rule, { ...options, caseSensitive })
  const rules = new Map<string, CompiledRule>()
  yield* eachInSteps(ruleSet.rules, (rule) => rules.set(rule.id, compile(rule)))
  const ranked = yield* rankedRules(ruleSet)
  const byRank = yield* mapInSteps(ranked, (rule) => rules.get(rule.id) as CompiledRule, 64)
  const [only] = byRank
  const isSingle = only !== undefined && byRank.length === 1 && isForEveryRequest(only.rule) && !countsByPath(only.rule)
  const charges = isSingle ? singleCharges(only) : yield* matchedCharges(ruleSet, ranked, byRank)
  return { ruleSet, rules, charges }
}

/** For a single rule that applies to every request: there is nothing to match. */
function singleCharges({ rule, keyOf, claim }: CompiledRule): Plan['charges'] {
  return (context, permits) => {
    const key = keyOf(context) ?? missingKey(rule)
    if (key === undefined) return none
    return key === denied ? new MissingKey(rule) : [demandOf(claim, key, permits * rule.permits)]
  }
}

function* matchedCharges(
  { caseSensitive, strategy }: RuleSet,
  ranked: readonly Rule[],
  byRank: readonly CompiledRule[],
): Steps<Plan['charges']> {
  const matcher = yield* matcherSteps(ranked, caseSensitive === true)
  const onlyFirst = strategy === 'first'

  const chargesOf = (context: RequestContext, permits: number, path: string, reading?: string) => {
    const matches = matcher.match(context, path)
    if (matches.length === 0) return none
    const demands: Demand[] = []
    for (let i = 0; i < matches.length; i++) {
      const { rule, rank, pathVariables } = matches[i] as Match
      const { keyOf, claim } = byRank[rank] as CompiledRule
      const isPlainMatch = pathVariables === undefined && reading === undefined
      const matched = isPlainMatch ? context : matchedContext(context, pathVariables, reading)
      const key = keyOf(matched) ?? missingKey(rule)
      if (key === undefined) continue
      if (key === denied) return new MissingKey(rule)
      demands.push(demandOf(claim, key, permits * rule.permits))
      // A shadow rule does not decide, so the next rule is still the first one that does.
      if (onlyFirst && rule.mode === 'ENFORCE') break
    }
    return demands
  }

  return (context, permits) => {
    const path = matcher.readPath(context)
    if (typeof path === 'string') return chargesOf(context, permits, path)
    return unitedCharges(path, (reading) => chargesOf(context, permits, reading, reading))
  }
}

/**
 * What each reading of a path asks for, and every bucket once. Under `strategy: first`, each reading has its own first rule:
 * otherwise a request could choose a generous rule by a spelling that its server does not read that way.
 */
function unitedCharges(
  readings: readonly string[],
  demandsOf: (reading: string) => readonly Demand[] | MissingKey,
): readonly Demand[] | MissingKey {
  const united = new Map<BucketGroup, Map<string, Demand>>()
  for (const reading of readings) {
    const demands = demandsOf(reading)
    if (demands instanceof MissingKey) return demands
    for (const demand of demands) {
      const ofGroup = united.get(demand.group) ?? new Map<string, Demand>()
      united.set(demand.group, ofGroup.set(demand.key, demand))
    }
  }
  return Array.from(united.values(), (ofGroup) => [...ofGroup.values()]).flat()
}

const none: readonly Demand[] = []

export function compileRule(ruleSetId: string, rule: Rule, options: SnapshotOptions): CompiledRule {
  const generation = `${options.resets(ruleSetId, rule.id)}${options.resetBucketsOnReload ? `.${meaningOf(rule)}` : ''}`
  const { id: ruleId, permits, bands, policy, consistency } = rule
  const { overrides: hasOverrides, limitScope, onStoreFailure } = rule
  // An override holds for the next decision, so that nothing is paid in advance where there may be one.
  const isLeased = consistency === 'LEASED' && !hasOverrides
  const countsAddresses = limitScope === 'IP'
  const memo = newMemo()
  const group = {
    ruleSetId,
    ruleId,
    generation,
    permits,
    bands,
    isLeased,
    hasOverrides,
    countsAddresses,
    onStoreFailure,
    memo,
  }
  const patience = policy === 'WAIT_FOR_REFILL' ? patienceOf(rule.maxWaitMs ?? options.maxWaitMs) : 0
  return {
    rule,
    group,
    keyOf: compileKey(rule, options),
    claim: { group, patience, policy, shadow: rule.mode === 'SHADOW' },
  }
}

/** A caller that would wait has some patience, if only for one tick: none at all means that nobody asked to wait. */
export const patienceOf = (maxWaitMs: number): number => Math.max(1, ticksUp(maxWaitMs))

/** Tells "refuse this request" from any identity. */
const denied = Symbol('denied')

function missingKey({ onMissingKey, mode }: Rule): string | typeof denied | undefined {
  if (onMissingKey === 'ANONYMOUS') return anonymous
  return onMissingKey === 'DENY' && mode === 'ENFORCE' ? denied : undefined
}

function matchedContext(
  context: RequestContext,
  pathVariables: PathVariables | undefined,
  reading: string | undefined,
): MatchedContext {
  // Spelt out: objects made by spreading are slow to read afterwards.
  const { clientIp, userId, apiKey, method, path, headers, attributes } = context
  return { clientIp, userId, apiKey, method, path, headers, attributes, pathVariables, reading }
}

/** The same for two rules exactly if their buckets mean the same. */
function meaningOf({ bands }: Rule): string {
  const meaning = bands.map(({ label, algorithm, refill, capacity, refillTokens, windowTicks }) => [
    label,
    algorithm,
    refill,
    capacity,
    refillTokens,
    windowTicks,
  ])
  return createHash('sha256').update(JSON.stringify(meaning)).digest('base64url').slice(0, 12)
}
