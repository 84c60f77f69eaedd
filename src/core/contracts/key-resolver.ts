import type { MatchedContext } from '../request-context.js'
import type { Rule } from '../rule.js'

/** Computes the rate limit key of a request. Called once per matching rule on the hot path, so it must not do I/O. */
export interface KeyResolver {
  /** Returns the key, or `undefined` if the request has none. The rule's `onMissingKey` then applies. */
  resolve(rule: Rule, context: MatchedContext): string | undefined
}
