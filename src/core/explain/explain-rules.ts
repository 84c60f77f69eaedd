import { type CompiledRule, denied, keyOfMatch, type Plan } from '../decision/snapshot.js'
import { compileKey } from '../keys/scope-key-resolver.js'
import { interpretPath } from '../matching/paths/normalise-path.js'
import { compareRules, readsPath } from '../matching/rank-rules.js'
import type { RequestContext } from '../request-context.js'
import { keyFieldsOf, type Rule } from '../rule.js'
import { mapInSteps, type Steps } from '../scheduling/steps.js'
import type { FailedCondition, RuleStatus } from './explanation.js'
import { failed, type Matched, type MatchOutcome, matchOne } from './failed-condition.js'

/** The part of a rule in a decision, before its buckets are read. */
export interface RuleFinding {
  readonly compiled: CompiledRule
  readonly status: RuleStatus
  readonly failed: FailedCondition | null
  /** The keys that the rule counts, one per interpretation of the path. */
  readonly keys: readonly string[]
}

export interface Findings {
  readonly paths: readonly string[]
  /** In order of priority. */
  readonly rules: readonly RuleFinding[]
}

/**
 * Evaluates each rule by itself, without the compiled matcher, because the matcher does not know why a rule does not match. A
 * test compares both over random rules and requests.
 */
export function* findingSteps({ ruleSet, rules }: Plan, context: RequestContext): Steps<Findings> {
  const { caseSensitive, strategy } = ruleSet
  const interpreted = interpretPath(context.path, caseSensitive)
  const paths = typeof interpreted === 'string' ? [interpreted] : interpreted
  const usesPath = readsPath(ruleSet.rules.filter(({ enabled }) => enabled))
  const readings = usesPath ? paths : paths.slice(0, 1)
  /** The interpretations for which an earlier rule is the only one that applies, under `strategy: first`. */
  const decided = new Map<string, string>()
  const ranked = [...rules.values()].sort((one, other) => compareRules(one.rule, other.rule))
  const found = yield* mapInSteps(ranked, (compiled): RuleFinding => {
    const { rule } = compiled
    if (!rule.enabled) return { compiled, status: 'DISABLED', failed: failed('enabled', ['true'], false), keys: [] }
    const outcomes = readings.map((path) => matchOne(rule, context, path, caseSensitive))
    const matches = outcomes.filter(isMatch)
    if (matches.length === 0) return { compiled, status: 'NOT_MATCHED', failed: furthest(outcomes), keys: [] }
    const open = matches.filter(({ path }) => !decided.has(path))
    if (open.length === 0) {
      const first = decided.get((matches[0] as Matched).path)
      return { compiled, status: 'PRECEDED', failed: failed('strategy', ['all'], `first: ${first}`), keys: [] }
    }
    const keys = new Set<string>()
    let missing: RuleStatus = 'NO_KEY'
    for (const { path, variables } of open) {
      const key = keyOfMatch(compiled, context, variables, readings.length > 1 ? path : undefined)
      if (key === denied) missing = 'MISSING_KEY'
      else if (key !== undefined) {
        keys.add(key)
        if (strategy === 'first' && !isShadowFor(compiled, key)) decided.set(path, rule.id)
      }
    }
    if (keys.size > 0 && missing === 'NO_KEY') return { compiled, status: 'MATCHED', failed: null, keys: [...keys] }
    return { compiled, status: missing, failed: missingField(compiled, context, open[0] as Matched), keys: [] }
  })
  return { paths, rules: found }
}

/** True if the rule does not enforce its limit for this key. */
export const isShadowFor = ({ charge, isShadow }: CompiledRule, key: string): boolean =>
  isShadow === undefined ? charge.shadow : isShadow(key)

const isMatch = (outcome: MatchOutcome): outcome is Matched => !('failed' in outcome)

/** The failure of the interpretation for which most conditions held. */
function furthest(outcomes: readonly MatchOutcome[]): FailedCondition {
  const failures = outcomes.flatMap((outcome) => ('failed' in outcome ? [outcome] : []))
  return failures.reduce((one, other) => (other.stage > one.stage ? other : one)).failed
}

/** The first key field that the request does not have. */
function missingField({ rule }: CompiledRule, context: RequestContext, { variables }: Matched): FailedCondition {
  if (context.key === '') return failed('key', [], undefined)
  if (rule.keyResolver !== undefined) return failed(`keyResolver ${rule.keyResolver}`, [], undefined)
  const fields = keyFieldsOf(rule)
  const matched = { ...context, pathVariables: variables }
  const isMissing = (field: string): boolean => compileKey(asField(rule, field))(matched) === undefined
  return failed(fields.find(isMissing) ?? fields[0] ?? 'key', [], undefined)
}

const asField = (rule: Rule, field: string): Rule => ({ ...rule, limitScope: 'CUSTOM', keyField: field })
