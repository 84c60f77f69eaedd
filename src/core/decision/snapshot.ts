import { createHash } from 'node:crypto'
import { algorithmTraits } from '../algorithm-traits.js'
import { type BucketGroup, type Claim, type Demand, demandOf, isPlain, loneBand, newMemo } from '../bucket-store.js'
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

/** All rule sets, compiled. Immutable: a decision uses one snapshot from beginning to end. */
export interface Snapshot {
  readonly ruleSets: ReadonlyMap<string, CompiledRuleSet>
  /** For requests that name none: the configured one; else the only one there is; else the one called `default`. */
  readonly fallback: CompiledRuleSet | undefined
}

export interface CompiledRuleSet {
  readonly ruleSet: RuleSet
  readonly rules: ReadonlyMap<string, CompiledRule>
  /** The only rule, if it is for every request and never holds one: there is nothing to match, and nothing to put together. */
  readonly lone: CompiledRule | undefined
  /** What a request is to be charged for; or why it cannot be charged at all. */
  demands(context: RequestContext, permits: number): readonly Demand[] | MissingKey
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
  const compiled = new Map<string, CompiledRuleSet>()
  for (const ruleSet of ruleSets) compiled.set(ruleSet.id, yield* compileRuleSet(ruleSet, options))
  const forAll = ruleSets.filter(({ isForItsRoute }) => !isForItsRoute)
  const only = forAll.length === 1 ? forAll[0]?.id : 'default'
  return { ruleSets: compiled, fallback: compiled.get(options.defaultRuleSetId ?? only ?? '') }
}

function* compileRuleSet(ruleSet: RuleSet, options: SnapshotOptions): Steps<CompiledRuleSet> {
  const { caseSensitive } = ruleSet
  const compile = (rule: Rule): CompiledRule => compileRule(ruleSet.id, rule, { ...options, caseSensitive })
  const rules = new Map<string, CompiledRule>()
  yield* eachInSteps(ruleSet.rules, (rule) => rules.set(rule.id, compile(rule)))
  const ranked = yield* rankedRules(ruleSet)
  const byRank = yield* mapInSteps(ranked, (rule) => rules.get(rule.id) as CompiledRule, 64)
  const matcher = yield* matcherSteps(ranked, caseSensitive === true)
  const onlyFirst = ruleSet.strategy === 'first'

  const demandsOf = (context: RequestContext, permits: number, path: string, reading?: string) => {
    const matches = matcher.match(context, path)
    if (matches.length === 0) return none
    let demands: Demand[] | undefined
    for (let i = 0; i < matches.length; i++) {
      const match = matches[i] as Match
      const compiled = byRank[match.rank] as CompiledRule
      const { pathVariables } = match
      const isPlainMatch = pathVariables === undefined && reading === undefined
      const matched = isPlainMatch ? context : matchedContext(context, pathVariables, reading)
      const key = compiled.keyOf(matched) ?? missingKey(match.rule)
      if (key === undefined) continue
      if (key === denied) return new MissingKey(match.rule)
      const demand = demandOf(compiled.claim, key, permits * match.rule.permits)
      if (demands === undefined) demands = [demand]
      else demands.push(demand)
      // A shadow only watches, so the rule after it is still the first that counts.
      if (onlyFirst && match.rule.mode === 'ENFORCE') break
    }
    return demands ?? none
  }

  return {
    ruleSet,
    rules,
    lone: byRank.length === 1 ? byRank.find(isForAllAtOnce) : undefined,
    demands(context, permits) {
      const path = matcher.readPath(context)
      if (typeof path === 'string') return demandsOf(context, permits, path)
      return unitedDemands(path, (reading) => demandsOf(context, permits, reading, reading))
    },
  }
}

/**
 * What each reading of a path asks for, and every bucket once. Under `strategy: first`, each reading has its own first rule:
 * otherwise a request could choose a generous rule by a spelling that its server does not read that way.
 */
function unitedDemands(
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

const isForAllAtOnce = ({ rule, claim }: CompiledRule): boolean =>
  isForEveryRequest(rule) &&
  !countsByPath(rule) &&
  isPlain(claim) &&
  !rule.bands.some(({ algorithm }) => algorithmTraits[algorithm].isQueue)

export function compileRule(ruleSetId: string, rule: Rule, options: SnapshotOptions): CompiledRule {
  const generation = `${options.resets(ruleSetId, rule.id)}${options.resetBucketsOnReload ? `.${meaningOf(rule)}` : ''}`
  const { id: ruleId, permits, bands, policy, consistency } = rule
  const { overrides: hasOverrides, limitScope } = rule
  // An override holds for the next decision, so that nothing is paid in advance where there may be one.
  const isLeased = consistency === 'LEASED' && !hasOverrides
  const countsAddresses = limitScope === 'IP'
  const memo = newMemo()
  const lone = loneBand(ruleId, bands)
  const group = { ruleSetId, ruleId, generation, permits, bands, lone, isLeased, hasOverrides, countsAddresses, memo }
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
