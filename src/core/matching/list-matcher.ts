/**
 * Replaces `rule-matcher` in the build for edge runtimes, where a limit has one rule: evaluates the rules one by one, and needs a
 * tenth of the code of a compiled tree.
 */
import type { RequestContext } from '../request-context.js'
import { type Rule, withHead } from '../rule.js'
import type { Steps } from '../scheduling/steps.js'
import { compileConditions } from './condition.js'
import { interpretPath } from './paths/normalise-path.js'
import { compilePathPattern } from './paths/path-pattern.js'
import { capturedFrom, matchesPath } from './paths/tree-search.js'
import { readsPath } from './rank-rules.js'
import type { Match } from './rule-leaf.js'
import type { RuleMatcher } from './rule-matcher.js'

/** Compiles rules in order of rank. */
export function* matcherSteps(rules: readonly Rule[], caseSensitive: boolean): Steps<RuleMatcher> {
  const reads = readsPath(rules)
  const matchers: ((context: RequestContext, path: string) => Match | undefined)[] = []
  for (const [rank, rule] of rules.entries()) {
    matchers.push(matchOfRule(rule, rank, caseSensitive))
    yield
  }
  return {
    interpretPath: ({ path }) => (reads ? interpretPath(path, caseSensitive) : '/'),
    match: (context, path) => matchers.flatMap((matchOf) => matchOf(context, path) ?? []),
  }
}

function matchOfRule(rule: Rule, rank: number, caseSensitive: boolean) {
  const pattern = compilePathPattern(rule.path, caseSensitive)
  const methods = withHead(rule.methods)
  const holds = compileConditions(rule.when, caseSensitive)
  return (context: RequestContext, path: string): Match | undefined => {
    if (methods.length > 0 && !methods.includes(context.method?.toUpperCase() ?? '')) return undefined
    if (!matchesPath(pattern, path)) return undefined
    const pathVariables = pattern.captures && capturedFrom(pattern.captures, path)
    return holds?.(context, pathVariables) === false ? undefined : { rule, rank, pathVariables }
  }
}
