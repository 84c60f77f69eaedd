import { compilePathPattern } from '../../core/matching/paths/path-pattern.js'
import { compileGlob } from '../../core/matching/paths/segment-glob.js'
import type { Rule } from '../../core/rule.js'
import type { RuleDocument } from '../../core/rule-store.js'
import { manyPerStep, type Steps } from '../../core/scheduling/steps.js'
import type { ValidationIssues } from '../../validation/issues.js'

/** A request tries each of these globs, so there are few. */
export const maxAlike = 100

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

/** What is wrong with the path of a rule that is added to others; undefined if nothing is. */
export function* crowdedGlob(
  rule: RuleDocument,
  others: readonly RuleDocument[],
  caseSensitive: boolean,
): Steps<string | undefined> {
  if (!hasCounted(pathOf(rule))) return undefined
  const count = globCounter(caseSensitive)
  for (const [index, other] of others.entries()) {
    if (index % manyPerStep === 0) yield
    count(pathOf(other))
  }
  return count(pathOf(rule))
}

/** Empty where it is left out. */
const pathOf = ({ path }: RuleDocument): string => (typeof path === 'string' ? path : '')

/** Nearly all paths have no such glob, and this is all that they cost. */
const hasCounted = (path: string): boolean => /\?|\*[^/*]+\*/.test(path)

/** Counts the globs of one path after the other; returns what is wrong with a path that has one too many. */
function globCounter(caseSensitive: boolean): (path: string) => string | undefined {
  const alike = new Map<string, Set<string>>()
  return (path) => {
    if (!hasCounted(path)) return undefined
    let before = ''
    for (const { kind, text } of compilePathPattern(path, caseSensitive).segments) {
      if (kind === 'glob' && isCrowded(alike, before, text))
        return `must be one of at most ${maxAlike} similar globs; "${text}" exceeds the limit for globs with "?" or several "*" in the same position with the same start and end`
      before += `/${text}`
    }
    return undefined
  }
}

function isCrowded(alike: Map<string, Set<string>>, before: string, text: string): boolean {
  const { prefix, middle, suffix } = compileGlob(text)
  if (middle === '*' || middle === '?*') return false
  const place = JSON.stringify([before, prefix, suffix])
  const globs = alike.get(place) ?? new Set()
  alike.set(place, globs.add(text))
  return globs.size > maxAlike
}
