import { algorithmTraits, haveFixedWindows, takeHolds } from '../algorithm-traits.js'
import { type BucketGroup, type Charge, newMemo, type RuleCharge } from '../bucket-store.js'
import { ticksUp } from '../clock.js'
import { compileKey, type KeyOf, type ScopeKeyOptions } from '../keys/scope-key-resolver.js'
import type { PathVariables } from '../matching/paths/path-pattern.js'
import { isForEveryRequest, rankedRules } from '../matching/rank-rules.js'
import type { Match } from '../matching/rule-leaf.js'
import { matcherSteps } from '../matching/rule-matcher.js'
import type { MatchedContext, RequestContext } from '../request-context.js'
import { type Costs, countsByPath, type Rule, type RuleSet, requestCost, resetsOnChange } from '../rule.js'
import { sha256 } from '../runtime/sha256.js'
import { eachInSteps, finish, manyPerStep, mapInSteps, type Steps } from '../scheduling/steps.js'
import { costOf } from './costs.js'
import { compileIsShadow, type IsShadow } from './gradual-enforcement.js'

/** Options of `compileSnapshot`. */
export interface SnapshotOptions extends ScopeKeyOptions {
  /** The rule set of requests that name none. */
  readonly defaultRuleSetId?: string | undefined
  /** The default of a rule's `maxWaitMs` under WAIT_FOR_REFILL. */
  readonly maxWaitMs: number
  /** True if a change of its bands resets the buckets of a rule without `onRuleChange`. */
  readonly resetBucketsOnReload: boolean
  /** True for candidates, whose buckets are separate from those of the current rules and never leased. */
  readonly isCandidate?: boolean
  /** The number of times that the buckets of a rule were reset. Part of its generation. */
  readonly resets: (ruleSetId: string, ruleId: string) => number
}

/** All rule sets, compiled. Immutable: a decision uses one snapshot from start to end. */
export interface Snapshot {
  /** The compiled rule sets by id. */
  readonly plans: ReadonlyMap<string, Plan>
  /** Decides requests that name no rule set: the configured default, else the only rule set, else the one called `default`. */
  readonly defaultPlan: Plan | undefined
}

/** A compiled rule set. Its form is chosen at compile time, so that a request pays only for what its rule set needs. */
export interface Plan {
  readonly ruleSet: RuleSet
  readonly rules: ReadonlyMap<string, CompiledRule>
  /** True if a rule has a band of the algorithm CONCURRENCY, so that its decisions may take holds. */
  readonly takesHolds: boolean
  /** The charges of a request, one per rule that applies; or the rule that rejects it because its identity is missing. */
  charges(context: RequestContext, permits: number, costs?: Costs): readonly Charge[] | MissingKey
  /** The names of the costs that the rules charge. */
  readonly costs: ReadonlySet<string>
}

export interface CompiledRule {
  readonly rule: Rule
  readonly group: BucketGroup
  readonly keyOf: KeyOf
  readonly charge: RuleCharge
  /** Set if the rule enforces for a share of its keys only. Replaces `charge.shadow`. */
  readonly isShadow: IsShadow | undefined
}

/** The result for a request without the key of a rule that has `onMissingKey: DENY`. */
export class MissingKey {
  readonly rule: Rule

  constructor(rule: Rule) {
    this.rule = rule
  }
}

/** The shared key of all requests without a key. */
export const anonymous = 'anonymous'

/** Compiles rule sets for `StandaloneHandler`. */
export const compileSnapshot = (ruleSets: readonly RuleSet[], options: SnapshotOptions): Snapshot =>
  finish(snapshotSteps(ruleSets, options))

/** Like `compileSnapshot`, in slices of about one rule each. */
export function* snapshotSteps(ruleSets: readonly RuleSet[], options: SnapshotOptions): Steps<Snapshot> {
  const plans = new Map<string, Plan>()
  for (const ruleSet of ruleSets) plans.set(ruleSet.id, yield* planSteps(ruleSet, options))
  const forAll = ruleSets.filter(({ isForItsRoute }) => !isForItsRoute)
  const only = forAll.length === 1 ? forAll[0]?.id : 'default'
  return { plans, defaultPlan: plans.get(options.defaultRuleSetId ?? only ?? '') }
}

function* planSteps(ruleSet: RuleSet, options: SnapshotOptions): Steps<Plan> {
  const { caseSensitive } = ruleSet
  const ruleOptions = { ...options, caseSensitive }
  const digests = new Map<string, string>()
  const compile = (rule: Rule): CompiledRule => compileRule(ruleSet.id, rule, ruleOptions, digests)
  const rules = new Map<string, CompiledRule>()
  yield* eachInSteps(ruleSet.rules, (rule) => rules.set(rule.id, compile(rule)))
  const ranked = yield* rankedRules(ruleSet)
  const byRank = yield* mapInSteps(ranked, (rule) => rules.get(rule.id) as CompiledRule, 64)
  const [only] = byRank
  const isSingle = only !== undefined && byRank.length === 1 && isForEveryRequest(only.rule) && !countsByPath(only.rule)
  const charges = isSingle ? singleCharges(only) : yield* matchedCharges(ruleSet, ranked, byRank)
  const costs = new Set<string>()
  yield* eachInSteps(ruleSet.rules, ({ cost = requestCost }) => costs.add(cost), manyPerStep)
  const takesHolds = byRank.some(({ group }) => group.takesHolds)
  return { ruleSet, rules, takesHolds, charges, costs }
}

/** For a single rule that applies to every request: there is nothing to match. */
function singleCharges({ rule, keyOf, charge, isShadow }: CompiledRule): Plan['charges'] {
  const { group, maxWaitTicks, policy, shadow } = charge
  const isGlobal = rule.limitScope === 'GLOBAL'
  const { cost } = rule
  return (context, permits, costs) => {
    const amount = cost === undefined ? permits : costOf(costs, cost)
    if (amount === undefined) return none
    const { key: given } = context
    const key = (given == null || isGlobal ? keyOf(context) : given || undefined) ?? missingKey(rule, isShadow)
    if (key === undefined) return none
    if (key === denied) return new MissingKey(rule)
    const isShadowCharge = isShadow === undefined ? shadow : isShadow(key)
    return [{ group, key, permits: amount * rule.permits, maxWaitTicks, policy, shadow: isShadowCharge }]
  }
}

function* matchedCharges(
  { caseSensitive, strategy }: RuleSet,
  ranked: readonly Rule[],
  byRank: readonly CompiledRule[],
): Steps<Plan['charges']> {
  const matcher = yield* matcherSteps(ranked, caseSensitive === true)
  const onlyFirst = strategy === 'first'

  const chargesFor = (
    context: RequestContext,
    permits: number,
    costs: Costs | undefined,
    path: string,
    reading?: string,
  ) => {
    const { key: given } = context
    const matches = matcher.match(context, path)
    if (matches.length === 0) return none
    let charges: Charge[] = none
    for (let i = 0; i < matches.length; i++) {
      const { rule, rank, pathVariables } = matches[i] as Match
      const { keyOf, charge, isShadow } = byRank[rank] as CompiledRule
      const amount = rule.cost === undefined ? permits : costOf(costs, rule.cost)
      if (amount === undefined) continue
      const isPlainMatch = pathVariables === undefined && reading === undefined
      const matched = isPlainMatch ? context : matchedContext(context, pathVariables, reading)
      const isGiven = given != null && rule.limitScope !== 'GLOBAL'
      const key = (isGiven ? given || undefined : keyOf(matched)) ?? missingKey(rule, isShadow)
      if (key === undefined) continue
      if (key === denied) return new MissingKey(rule)
      // Lists all members, because V8 reads objects that were created by spreading slowly.
      const { group, maxWaitTicks, policy } = charge
      const shadow = isShadow === undefined ? charge.shadow : isShadow(key)
      const charged = { group, key, permits: amount * rule.permits, maxWaitTicks, policy, shadow }
      // Most requests have one charge. Pushing it to an empty array would allocate room for 17.
      if (charges.length === 0) charges = [charged]
      else charges.push(charged)
      // A shadow rule does not decide, so the next rule is still the first one that does.
      if (onlyFirst && !shadow) break
    }
    return charges
  }

  return (context, permits, costs) => {
    const path = matcher.interpretPath(context)
    if (typeof path === 'string') return chargesFor(context, permits, costs, path)
    return mergeCharges(path, (reading) => chargesFor(context, permits, costs, reading, reading))
  }
}

/**
 * Merges the charges of all interpretations of a path, each bucket once. Under `strategy: first`, each interpretation has its
 * own first rule. Otherwise a client could select a generous rule with a spelling that the upstream interprets differently.
 */
function mergeCharges(
  paths: readonly string[],
  chargesFor: (path: string) => readonly Charge[] | MissingKey,
): readonly Charge[] | MissingKey {
  const byGroup = new Map<BucketGroup, Map<string, Charge>>()
  for (const path of paths) {
    const charges = chargesFor(path)
    if (charges instanceof MissingKey) return charges
    for (const charge of charges) {
      const byKey = byGroup.get(charge.group) ?? new Map<string, Charge>()
      byGroup.set(charge.group, byKey.set(charge.key, charge))
    }
  }
  return Array.from(byGroup.values(), (byKey) => [...byKey.values()]).flat()
}

const none: Charge[] = []

/** `digests` caches the digests of bands, because many rules have the same bands. */
export function compileRule(
  ruleSetId: string,
  rule: Rule,
  options: SnapshotOptions,
  digests = new Map<string, string>(),
): CompiledRule {
  const keepsFraction = rule.onRuleChange === 'SCALE'
  const resets = resetsOnChange(rule, options.resetBucketsOnReload)
  const digest = keepsFraction ? '.scale' : resets ? `.${bandsDigest(rule, digests)}` : ''
  const generation = `${options.isCandidate ? 'candidate.' : ''}${options.resets(ruleSetId, rule.id)}${digest}`
  const { id: ruleId, permits, bands, policy, consistency } = rule
  const { overrides: hasOverrides, limitScope, onStoreFailure, ban } = rule
  // An override takes effect for the next decision, so rules with overrides are never leased.
  const isLeased = consistency === 'LEASED' && !hasOverrides && !options.isCandidate
  const countsAddresses = limitScope === 'IP'
  const takesHolds = takeHolds(bands)
  const memo = newMemo()
  const group = {
    ruleSetId,
    ruleId,
    generation,
    permits,
    bands,
    definitions: keepsFraction ? bands : undefined,
    isLeased,
    hasOverrides,
    countsAddresses,
    onStoreFailure,
    takesHolds,
    hasFixedWindows: haveFixedWindows(bands),
    ban,
    memo,
  }
  const maxWaitTicks = policy === 'WAIT_FOR_REFILL' ? maxWaitTicksOf(rule.maxWaitMs ?? options.maxWaitMs) : 0
  return {
    rule,
    group,
    keyOf: compileKey(rule, options),
    charge: { group, maxWaitTicks, policy, shadow: rule.mode === 'SHADOW' },
    isShadow: compileIsShadow(ruleSetId, rule),
  }
}

/** Converts milliseconds to the maximum wait in ticks, at least 1, because 0 means that the rule does not wait at all. */
export const maxWaitTicksOf = (maxWaitMs: number): number => Math.max(1, ticksUp(maxWaitMs))

/** Marks a missing key that rejects the request. Differs from every key. */
export const denied: unique symbol = Symbol('denied')

/** Requests without a key count as one key for `enforcePercent`. */
function missingKey({ onMissingKey, mode }: Rule, isShadow: IsShadow | undefined): string | typeof denied | undefined {
  if (onMissingKey === 'ANONYMOUS') return anonymous
  const enforces = isShadow === undefined ? mode === 'ENFORCE' : !isShadow(anonymous)
  return onMissingKey === 'DENY' && enforces ? denied : undefined
}

/** The key of a request under a rule that matches, as the plans determine it. For explanations. */
export function keyOfMatch(
  { rule, keyOf, isShadow }: CompiledRule,
  context: RequestContext,
  pathVariables: PathVariables | undefined,
  reading: string | undefined,
): string | typeof denied | undefined {
  const { key: given } = context
  if (given != null && rule.limitScope !== 'GLOBAL') return given || missingKey(rule, isShadow)
  const isPlainMatch = pathVariables === undefined && reading === undefined
  return keyOf(isPlainMatch ? context : matchedContext(context, pathVariables, reading)) ?? missingKey(rule, isShadow)
}

function matchedContext(
  context: RequestContext,
  pathVariables: PathVariables | undefined,
  reading: string | undefined,
): MatchedContext {
  const { clientIp, userId, apiKey, method, path, headers, attributes } = context
  return { clientIp, userId, apiKey, method, path, headers, attributes, pathVariables, reading }
}

/** A digest of the bands. Two rules have the same digest exactly if their buckets are interchangeable. */
function bandsDigest(rule: Rule, digests: Map<string, string>): string {
  const text = bandsDefinition(rule)
  const digest = digests.get(text) ?? sha256(text, 'base64url').slice(0, 12)
  digests.set(text, digest)
  return digest
}

/** The parts of the bands that buckets depend on. */
export function bandsDefinition({ bands }: Rule): string {
  const definition = bands.map(({ label, algorithm, refill, capacity, refillTokens, windowTicks, calendar }) =>
    // A change of the limit does not end requests in progress, so their holds must still be counted.
    algorithmTraits[algorithm].takesHolds
      ? [label, algorithm]
      : [
          label,
          algorithm,
          refill,
          capacity,
          refillTokens,
          windowTicks,
          ...(calendar === undefined ? [] : [calendar.unit, calendar.timeZone, calendar.month, calendar.day]),
        ],
  )
  return JSON.stringify(definition)
}
