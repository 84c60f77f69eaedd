import type { ValidationIssue } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'

/** A check beyond the rule schema, as `RuleSetProvider.require` takes it. Returns the issues it finds. */
export type RuleRequirement = (ruleSets: readonly RuleSet[]) => readonly ValidationIssue[]
