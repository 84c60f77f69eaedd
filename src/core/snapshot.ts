import { createHash } from 'node:crypto'
import { algorithmTraits } from './algorithm-traits.js'
import { type BucketGroup, type Claim, type Demand, demandOf, isPlain, loneBand, newMemo } from './bucket-store.js'
import { ticksUp } from './clock.js'
import type { PathVariables } from './path-pattern.js'
import type { MatchedContext, RequestContext } from './request-context.js'
import { countsByPath, type Rule, type RuleSet } from './rule.js'
import { isForEveryRequest, type Match, matcherSteps, rankedRules } from './rule-matcher.js'
import { compileKey, type KeyOf, type ScopeKeyOptions } from './scope-key-resolver.js'
import { eachInSteps, finish, mapInSteps, type Steps } from './steps.js'

export interface SnapshotOptions extends ScopeKeyOptions {
  readonly defaultRuleSetId?: string | undefined
  /** The default of a rule's `maxWaitMs` under WAIT_FOR_REFILL. */
  readonly maxWaitMs: number
  /** True if a change of its bands resets the buckets of a rule. */
  readonly resetBucketsOnReload: boolean
  /** The number of times that the buckets of a rule were reset. Part of its generation. */
  readonly resets: (ruleSetId: string, ruleId: string) => number
}

/** All compiled rule sets. Immutable: a decision uses one snapshot from beginning to end. */
export interface Snapshot {
  readonly ruleSets: ReadonlyMap<string, CompiledRuleSet>
  /** The default rule set: the configured one, else the only one, else the one with the id `default`. */
  readonly fallback: CompiledRuleSet | undefined
}

export interface CompiledRuleSet {
  readonly ruleSet: RuleSet
  readonly rules: ReadonlyMap<string, CompiledRule>
  /** The only rule, if it applies to every request and never makes one wait. Matching is then unnecessary. */
  readonly lone: CompiledRule | undefined
  /** The charges of all rules that apply to a request, or the rule that rejects it because its key is missing. */
  demands(context: RequestContext, permits: number): readonly Demand[] | MissingKey
}

export interface CompiledRule {
  readonly rule: Rule
  readonly group: BucketGroup
  readonly keyOf: KeyOf
  readonly claim: Claim
}

/** The result for a request without the key of a rule that has `onMissingKey: DENY`. */
export class MissingKey {
  readonly rule: Rule

  constructor(rule: Rule) {
    this.rule = rule
  }
}

/** The shared key of all requests without a key. */
const anonymous = 'anonymous'

export const compileSnapshot = (ruleSets: readonly RuleSet[], options: SnapshotOptions): Snapshot =>
  finish(snapshotSteps(ruleSets, options))

/** As `compileSnapshot`, in slices of about one rule each. */
export function* snapshotSteps(ruleSets: readonly RuleSet[], options: SnapshotOptions): Steps<Snapshot> {
  const compiled = new Map<string, CompiledRuleSet>()
  for (const ruleSet of ruleSets) compiled.set(ruleSet.id, yield* compileRuleSet(ruleSet, options))
  const shared = ruleSets.filter(({ isForItsRoute }) => !isForItsRoute)
  const defaultId = shared.length === 1 ? shared[0]?.id : 'default'
  return { ruleSets: compiled, fallback: compiled.get(options.defaultRuleSetId ?? defaultId ?? '') }
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

  const chargesFor = (context: RequestContext, permits: number, path: string, reading?: string) => {
    const matches = matcher.match(context, path)
    if (matches.length === 0) return none
    let charges: Demand[] | undefined
    for (let i = 0; i < matches.length; i++) {
      const match = matches[i] as Match
      const compiled = byRank[match.rank] as CompiledRule
      const { pathVariables } = match
      const isPlainMatch = pathVariables === undefined && reading === undefined
      const matched = isPlainMatch ? context : matchedContext(context, pathVariables, reading)
      const key = compiled.keyOf(matched) ?? missingKey(match.rule)
      if (key === undefined) continue
      if (key === denied) return new MissingKey(match.rule)
      const charge = demandOf(compiled.claim, key, permits * match.rule.permits)
      if (charges === undefined) charges = [charge]
      else charges.push(charge)
      // A shadow rule does not count as the first matching rule.
      if (onlyFirst && match.rule.mode === 'ENFORCE') break
    }
    return charges ?? none
  }

  return {
    ruleSet,
    rules,
    lone: byRank.length === 1 ? byRank.find(allowsFastPath) : undefined,
    demands(context, permits) {
      const path = matcher.readPath(context)
      if (typeof path === 'string') return chargesFor(context, permits, path)
      return mergeCharges(path, (reading) => chargesFor(context, permits, reading, reading))
    },
  }
}

/**
 * Merges the charges of all interpretations of a path, each bucket once. Under `strategy: first`, each interpretation has its
 * own first rule. Otherwise a client could select a generous rule with a spelling that the upstream interprets differently.
 */
function mergeCharges(
  paths: readonly string[],
  chargesFor: (path: string) => readonly Demand[] | MissingKey,
): readonly Demand[] | MissingKey {
  const byGroup = new Map<BucketGroup, Map<string, Demand>>()
  for (const path of paths) {
    const charges = chargesFor(path)
    if (charges instanceof MissingKey) return charges
    for (const charge of charges) {
      const byKey = byGroup.get(charge.group) ?? new Map<string, Demand>()
      byGroup.set(charge.group, byKey.set(charge.key, charge))
    }
  }
  return Array.from(byGroup.values(), (byKey) => [...byKey.values()]).flat()
}

const none: readonly Demand[] = []

const allowsFastPath = ({ rule, claim }: CompiledRule): boolean =>
  isForEveryRequest(rule) &&
  !countsByPath(rule) &&
  isPlain(claim) &&
  !rule.bands.some(({ algorithm }) => algorithmTraits[algorithm].isQueue)

export function compileRule(ruleSetId: string, rule: Rule, options: SnapshotOptions): CompiledRule {
  const generation = `${options.resets(ruleSetId, rule.id)}${options.resetBucketsOnReload ? `.${bandsDigest(rule)}` : ''}`
  const { id: ruleId, permits, bands, policy, consistency } = rule
  const { overrides: hasOverrides, limitScope } = rule
  // An override takes effect for the next decision, so rules with overrides are never leased.
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

/** Converts milliseconds to the maximum wait in ticks, at least 1, because 0 means that the rule does not wait at all. */
export const patienceOf = (maxWaitMs: number): number => Math.max(1, ticksUp(maxWaitMs))

/** Marks a missing key that rejects the request. Differs from every key. */
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
  // Lists all members, because V8 reads objects that were created by spreading slowly.
  const { clientIp, userId, apiKey, method, path, headers, attributes } = context
  return { clientIp, userId, apiKey, method, path, headers, attributes, pathVariables, reading }
}

/** A digest of the bands. Two rules have the same digest exactly if their buckets are interchangeable. */
function bandsDigest({ bands }: Rule): string {
  const definition = bands.map(({ label, algorithm, refill, capacity, refillTokens, windowTicks }) => [
    label,
    algorithm,
    refill,
    capacity,
    refillTokens,
    windowTicks,
  ])
  return createHash('sha256').update(JSON.stringify(definition)).digest('base64url').slice(0, 12)
}
