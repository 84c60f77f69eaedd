import { pathPatternIssue } from '../../../core/matching/paths/path-pattern.js'
import type { Kind } from '../../../validation/kind.js'
import { textMatching } from '../../../validation/kinds.js'
import { oneOrMore } from '../../../validation/structures.js'

const maxMethods = 64
export const maxPathLength = 1_024

const method = textMatching('an HTTP method such as GET', /^[A-Za-z][A-Za-z0-9_-]{0,31}$/)

/** An HTTP method, converted to upper case. */
export const methodName: Kind<string> = { ...method, parse: (value) => method.parse(value)?.toUpperCase() }

const methodOrAny = textMatching(method.allowed, /^(\*|[A-Za-z][A-Za-z0-9_-]{0,31})$/)

/** `GET`, `[GET, HEAD]` or `*`. */
export const methods = oneOrMore(
  { ...methodOrAny, parse: (value) => methodOrAny.parse(value)?.toUpperCase() },
  maxMethods,
  'an HTTP method such as GET, a list of methods, or *',
)

/** A path pattern with `?`, `*`, `**` and `{name}`; `core/matching/paths/path-pattern` compiles it. */
export const pathPattern: Kind<string> = {
  allowed:
    `a pattern of at most ${maxPathLength} characters and 64 segments that starts with /, such as /api/*/items or /users/{id}/**, ` +
    'with at most one {name} per segment and no name twice',
  schema: { type: 'string', pattern: '^/', maxLength: maxPathLength },
  parse: (value) => (typeof value === 'string' && isPattern(value) ? value : undefined),
}

function isPattern(pattern: string): boolean {
  if (!pattern.startsWith('/') || pattern.length > maxPathLength || /\p{Cc}/u.test(pattern)) return false
  return pathPatternIssue(pattern) === undefined
}
