import { pathPatternIssue } from '../../core/matching/paths/path-pattern.js'
import type { Kind } from '../../validation/fields.js'

export const maxPathLength = 1_024

/** A path pattern with `?`, `*`, `**` and `{name}`; `core/matching/paths/path-pattern` compiles it. */
export const pathPattern: Kind<string> = {
  allowed:
    `a pattern of at most ${maxPathLength} characters and 64 segments that starts with /, such as /api/*/items or /users/{id}/**, ` +
    'with at most one {name} per segment and no name twice',
  parse: (value) => (typeof value === 'string' && isPattern(value) ? value : undefined),
}

function isPattern(pattern: string): boolean {
  if (!pattern.startsWith('/') || pattern.length > maxPathLength || /\p{Cc}/u.test(pattern)) return false
  return pathPatternIssue(pattern) === undefined
}
