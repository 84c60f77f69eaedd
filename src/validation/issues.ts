import { FluxGateError, quoted, type ValidationIssue } from '../core/errors.js'

export { describeValue, printable, quoted } from '../core/errors.js'

const maxKept = 1_000
const maxShown = 20
const maxPath = 500

/** Collects the validation issues of a document. `count` includes every issue; `kept` holds the first 1000. */
export interface ValidationIssues {
  readonly kept: readonly ValidationIssue[]
  readonly count: number
  add(path: string, message: string): void
}

export function noIssues(): ValidationIssues {
  const kept: ValidationIssue[] = []
  let count = 0
  return {
    kept,
    get count() {
      return count
    },
    add(path, message) {
      count += 1
      if (kept.length < maxKept)
        kept.push({ path: path.length > maxPath ? `${path.slice(0, maxPath)}…` : path, message })
    },
  }
}

/** The error for an invalid document. Its message gives the number of issues and one line for each of the first 20. */
export function rulesInvalid(
  source: string,
  issues: Pick<ValidationIssues, 'kept' | 'count'>,
  cause?: unknown,
): FluxGateError {
  const { kept, count } = issues
  const lines = kept.slice(0, maxShown).map((issue) => `  ${describeIssue(issue)}`)
  if (count > lines.length) lines.push(`  … and ${count - lines.length} more`)
  const message = `${source}: ${count} ${count === 1 ? 'error' : 'errors'}\n${lines.join('\n')}`
  return new FluxGateError('FLUXGATE_RULES_INVALID', message, {
    errors: kept,
    ...(cause !== undefined && { cause }),
  })
}

/** One line about an issue: `rules[0].bands[0].capacity: must be …; received 0 (line 7, column 15)`. */
export function describeIssue({ path, message, line, column = 1 }: ValidationIssue): string {
  const text = `${path}: ${message}`
  const position = line === undefined ? path : positionText(line, column)
  // The path of a syntax error is its position.
  return line === undefined || position === path ? text : `${text} (${position})`
}

/** A position as messages show it, from 1. */
export const positionText = (line: number, column: number): string => `line ${line}, column ${column}`

/** The path of a member: `rules[0].id`, or `when["attributes.tier"]` if the name is not a plain identifier. */
export function placeOf(path: string, name: string): string {
  if (!/^[A-Za-z_$][\w$-]{0,63}$/.test(name)) return `${path}[${quoted(name)}]`
  return path === '' ? name : `${path}.${name}`
}
