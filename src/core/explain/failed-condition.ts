import { compileConditions, readerOf } from '../matching/condition.js'
import { compilePathPattern, type PathVariables } from '../matching/paths/path-pattern.js'
import { capturedFrom, matchesPath } from '../matching/paths/tree-search.js'
import { textOf } from '../matching/request-field.js'
import type { RequestContext } from '../request-context.js'
import { type Rule, withHead } from '../rule.js'
import type { FailedCondition } from './explanation.js'

const maxShown = 20
const maxTextLength = 256

/** A rule whose conditions hold for one interpretation of the path. */
export interface Matched {
  readonly path: string
  readonly variables: PathVariables | undefined
}

/** The outcome for one interpretation of the path. `stage` is the number of conditions that held. */
export type MatchOutcome = Matched | { readonly stage: number; readonly failed: FailedCondition }

/** Evaluates the conditions of a rule one by one, in the order of the rule. */
export function matchOne(
  rule: Rule,
  context: RequestContext,
  path: string,
  caseSensitive: boolean | undefined,
): MatchOutcome {
  const pattern = compilePathPattern(rule.path, caseSensitive)
  if (!matchesPath(pattern, path)) return { stage: 0, failed: failed('path', [rule.path], path) }
  const variables = pattern.captures && capturedFrom(pattern.captures, path)
  const method = context.method?.toUpperCase()
  if (rule.methods.length > 0 && !withHead(rule.methods).includes(method ?? ''))
    return { stage: 1, failed: failed('method', rule.methods, method) }
  for (const [index, condition] of rule.when.entries()) {
    const { field, values } = condition
    if (compileConditions([condition], caseSensitive)?.(context, variables)) continue
    const received = field === 'clientIp' ? context.clientIp : readerOf(field)?.(context, variables)
    return { stage: 2 + index, failed: failed(field, values, received) }
  }
  return { path, variables }
}

/** Describes a condition in bounded size: clients choose the received values. */
export function failed(field: string, expected: readonly string[], received: unknown): FailedCondition {
  return { field, expected: shortList(expected), received: shownValue(received) }
}

function shownValue(value: unknown): FailedCondition['received'] {
  if (!Array.isArray(value)) return value === undefined || value === null ? null : shortText(value)
  return shortList(value.map(shortText))
}

function shortText(value: unknown): string {
  const text = textOf(value) ?? `(${Array.isArray(value) ? 'list' : typeof value})`
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text
}

const shortList = (items: readonly string[]): readonly string[] =>
  items.length > maxShown ? [...items.slice(0, maxShown), `… ${items.length - maxShown} more`] : items
