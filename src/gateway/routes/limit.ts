import type { Rule } from '../../core/rule.js'
import { memberField } from '../../rules/schema/key-schema.js'
import { loneRuleFields, readLoneRule } from '../../rules/schema/rule-schema.js'
import type { Fields, Kind } from '../../validation/fields.js'
import type { Mistakes } from '../../validation/issues.js'
import { identifier, wholeNumber } from '../../validation/kinds.js'

/** What a RateLimiter filter asks for: a rule set by its id, or a rule of its own. */
export type RouteLimit =
  | { readonly kind: 'RULE_SET'; readonly ruleSetId: string; readonly permits?: number; readonly place: string }
  | { readonly kind: 'RULE'; readonly rule: Rule; readonly hasId: boolean }

export const rateLimiterFields: readonly string[] = ['ruleSet', ...loneRuleFields]

type Keys = { readonly limitScope: string; readonly keyField?: string }

const named: ReadonlyMap<unknown, Keys> = new Map([
  ['ip', { limitScope: 'IP' }],
  ['user', { limitScope: 'USER_ID' }],
  ['apiKey', { limitScope: 'API_KEY' }],
])

/** Whom an inline limit counts against, by name. */
const keyResolver: Kind<Keys> = {
  allowed: 'ip, user, apiKey, or header.x',
  parse(value) {
    const field = typeof value === 'string' && value.startsWith('header.') ? memberField(value) : undefined
    return field === undefined ? named.get(value) : { limitScope: 'CUSTOM', keyField: field }
  },
}

export function readRateLimiter(args: Fields, mistakes: Mistakes): RouteLimit | undefined {
  return args.has('ruleSet') ? readReference(args) : readInline(args, mistakes)
}

function readReference(args: Fields): RouteLimit | undefined {
  const ruleSetId = args.require('ruleSet', identifier)
  const permits = args.read('permits', wholeNumber(1, 1_000_000_000))
  for (const name of loneRuleFields)
    if (name !== 'permits' && args.has(name)) args.wrong(name, 'found beside ruleSet; allowed: in a rule of that set')
  if (ruleSetId === undefined) return undefined
  return { kind: 'RULE_SET', ruleSetId, place: args.at('ruleSet'), ...(permits !== undefined && { permits }) }
}

function readInline(args: Fields, mistakes: Mistakes): RouteLimit | undefined {
  const keys = args.has('keyResolver') ? args.read('keyResolver', keyResolver) : undefined
  const given = loneRuleFields.filter((name) => name !== 'keyResolver' && args.has(name))
  const document = { ...Object.fromEntries(given.map((name) => [name, args.value(name)])), ...keys }
  if (given.length === 0) {
    args.wrong('ruleSet', 'found nothing; allowed: ruleSet, or algorithm, bands and keyResolver')
    return undefined
  }
  const rule = readLoneRule(document, placeOfArgs(args), mistakes)
  return rule && { kind: 'RULE', rule, hasId: args.has('id') }
}

/** `….args.ruleSet` → `….args` */
const placeOfArgs = (args: Fields): string => args.at('ruleSet').replace(/\.ruleSet$/, '')
