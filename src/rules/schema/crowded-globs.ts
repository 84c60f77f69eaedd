import { compilePathPattern } from '../../core/matching/paths/path-pattern.js'
import { compileGlob } from '../../core/matching/paths/segment-glob.js'
import type { Rule } from '../../core/rule.js'
import type { Steps } from '../../core/scheduling/steps.js'
import type { Mistakes } from '../../validation/issues.js'

/** A request tries each of these globs, so there are few. */
const maxAlike = 100

/**
 * Reports rules whose path has one glob too many. Globs with one `*` are looked up by the text around it, any number of
 * them. Globs with a `?` or several `*` in the same place are tried one by one if they start and end with the same text.
 */
export function* checkGlobs(
  rules: readonly Rule[],
  caseSensitive: boolean,
  path: string,
  mistakes: Mistakes,
): Steps<void> {
  const alike = new Map<string, Set<string>>()
  for (const [index, rule] of rules.entries()) {
    // Nearly all rules have no such glob, and this is all that they cost.
    if (!/\?|\*[^/*]+\*/.test(rule.path)) continue
    yield
    let before = ''
    for (const { kind, text } of compilePathPattern(rule.path, caseSensitive).segments) {
      if (kind === 'glob' && isCrowded(alike, before, text)) {
        const message = `found more than ${maxAlike} globs like "${text}" in the same place of paths; allowed: up to ${maxAlike} with "?" or several "*" that start and end with the same text`
        mistakes.add(`${path}[${index}].path`, message)
        break
      }
      before += `/${text}`
    }
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
