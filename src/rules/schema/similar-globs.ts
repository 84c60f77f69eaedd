import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { compilePathPattern } from '../../core/matching/paths/path-pattern.js'
import { compileGlob } from '../../core/matching/paths/segment-glob.js'
import type { Rule } from '../../core/rule.js'
import { manyPerStep, type Steps } from '../../core/scheduling/steps.js'
import type { ValidationIssues } from '../../validation/issues.js'

/** A request tries each similar glob, so their number is limited. */
const maxSimilarGlobs = 100

/**
 * Reports rules whose path exceeds the limit on similar globs. A glob with one `*` is found by an index on its prefix and
 * suffix, so those are unlimited. Globs with a `?` or several `*` that share a position, prefix and suffix are tried one by one.
 */
export function* checkGlobs(
  rules: readonly Rule[],
  caseSensitive: boolean,
  path: string,
  issues: ValidationIssues,
): Steps<void> {
  const count = globCounter(caseSensitive)
  for (const [index, rule] of rules.entries()) {
    if (index % manyPerStep === 0) yield
    const message = count(rule.path)
    if (message !== undefined) issues.add(`${path}[${index}].path`, message)
  }
}

/** Returns a message if adding `rule` to the others would exceed the limit. */
export function* similarGlobsIssue(
  rule: RuleDocument,
  others: readonly RuleDocument[],
  caseSensitive: boolean,
): Steps<string | undefined> {
  if (!hasComplexGlob(pathOf(rule))) return undefined
  const count = globCounter(caseSensitive)
  for (const [index, other] of others.entries()) {
    if (index % manyPerStep === 0) yield
    count(pathOf(other))
  }
  return count(pathOf(rule))
}

const pathOf = ({ path }: RuleDocument): string => (typeof path === 'string' ? path : '')

/** A cheap test that rules out nearly all paths. */
const hasComplexGlob = (path: string): boolean => /\?|\*[^/*]+\*/.test(path)

/** Returns a function that counts the globs of a path, and returns a message once a limit is exceeded. */
function globCounter(caseSensitive: boolean): (path: string) => string | undefined {
  const groups = new Map<string, Set<string>>()
  return (path) => {
    if (!hasComplexGlob(path)) return undefined
    let before = ''
    for (const { kind, text } of compilePathPattern(path, caseSensitive).segments) {
      if (kind === 'glob' && exceedsLimit(groups, before, text))
        return `must be one of at most ${maxSimilarGlobs} similar globs; "${text}" exceeds the limit for globs with "?" or several "*" in the same position with the same start and end`
      before += `/${text}`
    }
    return undefined
  }
}

function exceedsLimit(groups: Map<string, Set<string>>, before: string, text: string): boolean {
  const { prefix, middle, suffix } = compileGlob(text)
  if (middle === '*' || middle === '?*') return false
  const group = JSON.stringify([before, prefix, suffix])
  const globs = groups.get(group) ?? new Set()
  groups.set(group, globs.add(text))
  return globs.size > maxSimilarGlobs
}
