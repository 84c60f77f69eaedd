import type { Rule } from '../../core/rule.js'
import { memberField } from '../../rules/schema/key-schema.js'
import { readSingleRule, singleRuleFields } from '../../rules/schema/rule-schema.js'
import type { Fields, Kind } from '../../validation/fields.js'
import type { ValidationIssues } from '../../validation/issues.js'
import { identifier, wholeNumber } from '../../validation/kinds.js'

/** A parsed RateLimiter filter: a reference to a rule set, or an inline rule. */
export type RouteLimit =
  | { readonly kind: 'RULE_SET'; readonly ruleSetId: string; readonly permits?: number; readonly place: string }
  | { readonly kind: 'RULE'; readonly rule: Rule; readonly hasId: boolean }

export const rateLimiterFields: readonly string[] = ['ruleSet', ...singleRuleFields]

type KeyOptions = { readonly limitScope: string; readonly keyField?: string }

const named: ReadonlyMap<unknown, KeyOptions> = new Map([
  ['ip', { limitScope: 'IP' }],
  ['user', { limitScope: 'USER_ID' }],
  ['apiKey', { limitScope: 'API_KEY' }],
])

/** The named key resolvers of an inline limit. */
const keyResolver: Kind<KeyOptions> = {
  allowed: 'ip, user, apiKey or header.<name>',
  parse(value) {
    const field = typeof value === 'string' && value.startsWith('header.') ? memberField(value) : undefined
    return field === undefined ? named.get(value) : { limitScope: 'CUSTOM', keyField: field }
  },
}

export function readRateLimiter(args: Fields, issues: ValidationIssues): RouteLimit | undefined {
  return args.has('ruleSet') ? readReference(args) : readInline(args, issues)
}

function readReference(args: Fields): RouteLimit | undefined {
  const ruleSetId = args.require('ruleSet', identifier)
  const permits = args.read('permits', wholeNumber(1, 1_000_000_000))
  for (const name of singleRuleFields)
    if (name !== 'permits' && args.has(name))
      args.wrong(name, 'cannot be combined with ruleSet; set it in a rule of that rule set')
  if (ruleSetId === undefined) return undefined
  return { kind: 'RULE_SET', ruleSetId, place: args.at('ruleSet'), ...(permits !== undefined && { permits }) }
}

function readInline(args: Fields, issues: ValidationIssues): RouteLimit | undefined {
  const keys = args.has('keyResolver') ? args.read('keyResolver', keyResolver) : undefined
  const present = singleRuleFields.filter((name) => name !== 'keyResolver' && args.has(name))
  const document = { ...Object.fromEntries(present.map((name) => [name, args.value(name)])), ...keys }
  if (present.length === 0) {
    args.wrong('ruleSet', 'is missing; set ruleSet, or algorithm, bands and keyResolver for an inline rule')
    return undefined
  }
  const rule = readSingleRule(document, placeOfArgs(args), issues)
  return rule && { kind: 'RULE', rule, hasId: args.has('id') }
}

/** `….args.ruleSet` → `….args` */
const placeOfArgs = (args: Fields): string => args.at('ruleSet').replace(/\.ruleSet$/, '')
