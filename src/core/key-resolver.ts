import type { MatchedContext } from './request-context.js'
import type { Rule } from './rule.js'

/** Decides whom a request counts against. Called once per matching rule, on the hot path: no I/O. */
export interface KeyResolver {
  /** The identity to count, or `undefined` when this request has none; the rule's `onMissingKey` then decides. */
  resolve(rule: Rule, context: MatchedContext): string | undefined
}
