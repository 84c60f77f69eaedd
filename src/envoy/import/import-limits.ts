import type { ValidationIssue } from '../../core/errors.js'
import type { RuleSetInput } from '../../rules/schema/input.js'
import { noIssues } from '../../validation/issues.js'
import { convertLimits } from './convert-limits.js'
import { readLimits } from './read-limits.js'

export interface ImportedLimits {
  /** Undefined if there are errors. */
  readonly ruleSet: RuleSetInput | undefined
  /** Everything that has no equivalent. */
  readonly errors: readonly ValidationIssue[]
  /** Parts of the file that are omitted because they do not affect the limits. */
  readonly notes: readonly ValidationIssue[]
}

/** Converts a document of envoyproxy/ratelimit to a rule set. */
export function importLimits(document: unknown): ImportedLimits {
  const issues = noIssues()
  const notes = noIssues()
  const domain = readLimits(document, issues, notes)
  const ruleSet = issues.count === 0 ? convertLimits(domain) : undefined
  return { ruleSet, errors: issues.kept, notes: notes.kept }
}
