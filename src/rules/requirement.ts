import type { Mistake } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'

/** What else has to be true of rules, beyond what any rule has to be; as `RuleSetProvider.require` takes it. */
export type Requirement = (ruleSets: readonly RuleSet[]) => readonly Mistake[]
