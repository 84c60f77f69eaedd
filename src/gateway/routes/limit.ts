import type { Rule } from '../../core/rule.js'
import { memberField } from '../../rules/schema/fields/key-schema.js'
import { readSingleRule, singleRuleKinds } from '../../rules/schema/rule-schema.js'
import type { Fields } from '../../validation/fields.js'
import type { Kind } from '../../validation/kind.js'
import { identifier } from '../../validation/kinds.js'

/** A parsed RateLimiter filter: a reference to a rule set, or an inline rule. */
export type RouteLimit =
  | { readonly kind: 'RULE_SET'; readonly ruleSetId: string; readonly permits?: number; readonly place: string }
  | { readonly kind: 'RULE'; readonly rule: Rule; readonly hasId: boolean }

type KeyOptions = { readonly limitScope: string; readonly keyField?: string }

const namedResolvers: ReadonlyMap<unknown, KeyOptions> = new Map([
  ['ip', { limitScope: 'IP' }],
  ['user', { limitScope: 'USER_ID' }],
  ['apiKey', { limitScope: 'API_KEY' }],
])

/** The named key resolvers of an inline limit. */
const keyResolver: Kind<KeyOptions> = {
  allowed: 'ip, user, apiKey or header.<name>',
  schema: { type: 'string' },
  parse(value) {
    const field = typeof value === 'string' && value.startsWith('header.') ? memberField(value) : undefined
    return field === undefined ? namedResolvers.get(value) : { limitScope: 'CUSTOM', keyField: field }
  },
}

export const rateLimiterKinds = { ...singleRuleKinds, ruleSet: identifier, keyResolver }

type LimitFields = Fields<typeof rateLimiterKinds>

export const readRateLimiter = (args: LimitFields): RouteLimit | undefined =>
  args.has('ruleSet') ? readReference(args) : readInline(args)

function readReference(args: LimitFields): RouteLimit | undefined {
  const ruleSetId = args.require('ruleSet')
  const permits = args.read('permits')
  for (const name of Object.keys(singleRuleKinds))
    if (name !== 'permits' && args.has(name))
      args.report(name, 'must not be combined with ruleSet; set it in a rule of that rule set')
  if (ruleSetId === undefined) return undefined
  return { kind: 'RULE_SET', ruleSetId, place: args.at('ruleSet'), ...(permits !== undefined && { permits }) }
}

function readInline(args: LimitFields): RouteLimit | undefined {
  const keys = args.read('keyResolver')
  const names = Object.keys(singleRuleKinds).filter((name) => name !== 'keyResolver' && args.has(name))
  if (names.length === 0) {
    args.report('ruleSet', 'is missing; set ruleSet, or algorithm, bands and keyResolver for an inline rule')
    return undefined
  }
  const document = { ...Object.fromEntries(names.map((name) => [name, args.value(name)])), ...keys }
  const rule = readSingleRule(document, args.path, args.issues)
  return rule && { kind: 'RULE', rule, hasId: args.has('id') }
}
