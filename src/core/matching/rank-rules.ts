import { countsByPath, type Rule, type RuleSet } from '../rule.js'
import { type Steps, sortInSteps } from '../scheduling/steps.js'

/** True if the matches or the keys depend on the path of a request. */
export const readsPath = (rules: readonly Rule[]): boolean =>
  !rules.every((rule) => isForEveryPath(rule) && !countsByPath(rule))

const isForEveryPath = ({ path }: Rule): boolean => path === '/**'

export const isForEveryRequest = (rule: Rule): boolean =>
  isForEveryPath(rule) && rule.methods.length === 0 && rule.when.length === 0

/** The enabled rules in order of rank. */
export const rankedRules = ({ rules }: RuleSet): Steps<readonly Rule[]> =>
  sortInSteps(
    rules.filter((rule) => rule.enabled),
    compareRules,
  )

/** Compares ids by code unit, because the order must not depend on the locale. */
export function compareRules(a: Rule, b: Rule): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return a.id < b.id ? -1 : Number(a.id > b.id)
}
