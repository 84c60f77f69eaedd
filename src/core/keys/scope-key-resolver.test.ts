import { describe, expect, it } from 'vitest'
import { plainRule } from '../../testing/plain-rule.js'
import type { MatchedContext } from '../request-context.js'
import type { Rule } from '../rule.js'
import { compileKey, type ScopeKeyOptions, unknownResolvers } from './scope-key-resolver.js'

const keyOf = (fields: Partial<Rule>, context: MatchedContext, options?: ScopeKeyOptions) =>
  compileKey(plainRule(fields), options)(context)

const custom = (keyField: string, context: MatchedContext) => keyOf({ limitScope: 'CUSTOM', keyField }, context)

describe('scope keys', () => {
  it('are the same for all requests under GLOBAL', () => {
    expect(keyOf({ limitScope: 'GLOBAL' }, {})).toBe('global')
  })

  it('are the address under IP, and the network for IPv6', () => {
    expect(keyOf({}, { clientIp: '203.0.113.7' })).toBe('203.0.113.7')
    expect(keyOf({}, { clientIp: '::ffff:203.0.113.7' })).toBe('203.0.113.7')
    expect(keyOf({}, { clientIp: '2001:db8:0:1ff::1' })).toBe('2001:db8:0:100::/56')
    expect(keyOf({}, { clientIp: '2001:db8:0:1ff::1' }, { ipv6Prefix: 64 })).toBe('2001:db8:0:1ff::/64')
    expect(keyOf({}, {})).toBeUndefined()
    expect(keyOf({}, { clientIp: '' })).toBeUndefined()
  })

  it('are the user id or the API key', () => {
    expect(keyOf({ limitScope: 'USER_ID' }, { userId: 'u1', apiKey: 'k1' })).toBe('u1')
    expect(keyOf({ limitScope: 'API_KEY' }, { userId: 'u1', apiKey: 'k1' })).toBe('k1')
    expect(keyOf({ limitScope: 'USER_ID' }, { userId: '', apiKey: 'k1' })).toBeUndefined()
    expect(keyOf({ limitScope: 'API_KEY' }, { userId: 'u1' })).toBeUndefined()
  })

  it('join all fields under COMPOSITE, and are missing if one field is missing', () => {
    const composite = { limitScope: 'COMPOSITE', compositeKeyFields: ['IP', 'USER_ID', 'METHOD', 'PATH'] } as const
    const context = { clientIp: '203.0.113.7', userId: 'a|b', method: 'get', path: '/api//%75sers/?x=1' }
    expect(keyOf(composite, context)).toBe('203.0.113.7|a\\|b|GET|/api/users')
    expect(keyOf(composite, { ...context, userId: '' })).toBeUndefined()
    expect(keyOf(composite, { ...context, method: undefined })).toBeUndefined()
    expect(keyOf({ limitScope: 'COMPOSITE', compositeKeyFields: [] }, context)).toBeUndefined()
  })

  it('are the value of one field under CUSTOM', () => {
    const context: MatchedContext = {
      clientIp: '203.0.113.7',
      path: '/t/acme/',
      headers: { 'x-app': 'ios', 'x-many': ['a', 'b'], 'x-empty': '' },
      attributes: { tenant: 'acme', level: 0, beta: false, org: { id: 7 }, list: ['a'], nothing: null, empty: '' },
      pathVariables: { tenant: 'acme' },
    }
    expect(custom('attributes.tenant', context)).toBe('acme')
    expect(custom('attributes.level', context)).toBe('0')
    expect(custom('attributes.beta', context)).toBe('false')
    expect(custom('attributes.org.id', context)).toBe('7')
    expect(custom('header.X-App', context)).toBe('ios')
    expect(custom('header.x-many', context)).toBe('a, b')
    expect(custom('path.tenant', context)).toBe('acme')
    expect(custom('PATH', context)).toBe('/t/acme')
    expect(custom('IP', context)).toBe('203.0.113.7')
    for (const missing of ['org', 'list', 'nothing', 'empty', 'other', 'constructor', '__proto__']) {
      expect(custom(`attributes.${missing}`, context), missing).toBeUndefined()
    }
    expect(custom('header.x-empty', context)).toBeUndefined()
    expect(custom('path.other', context)).toBeUndefined()
  })

  it('come from a registered resolver, which may be an object or a function', () => {
    const byName = (name: string, resolvers: ScopeKeyOptions['resolvers']) =>
      keyOf({ limitScope: 'CUSTOM', keyResolver: name }, { userId: 'u1' }, { resolvers })
    const object = { prefix: 'o:', resolve: (_: Rule, context: MatchedContext) => `${object.prefix}${context.userId}` }
    expect(byName('mine', { mine: object })).toBe('o:u1')
    expect(byName('mine', { mine: (one, context) => `${one.id}:${context.userId}` })).toBe('rule:u1')
    expect(byName('mine', new Map([['mine', object]]))).toBe('o:u1')
    expect(byName('mine', { mine: () => '' })).toBeUndefined()
    expect(byName('mine', { mine: () => undefined })).toBeUndefined()
    expect(() => byName('toString', {})).toThrow(
      'Rule "rule" uses the unknown key resolver "toString". Register it in `keyResolvers`.',
    )
    expect(() => byName('mine', undefined)).toThrow('unknown key resolver "mine"')
  })

  it('reject unknown fields', () => {
    for (const field of ['', 'ip', 'attributes', 'header.', 'cookie.a', 'GLOBAL', 'constructor']) {
      expect(() => custom(field, {})).toThrow(`Rule "rule" uses the unknown key field "${field}"`)
    }
  })

  it('report the path of every rule whose resolver is not registered', () => {
    const rules = [
      plainRule({ limitScope: 'CUSTOM', keyResolver: 'known' }),
      plainRule({ limitScope: 'CUSTOM', keyResolver: 'lost' }),
      plainRule({ limitScope: 'CUSTOM', keyField: 'IP' }),
    ]
    const sets = [
      { id: 'a', strategy: 'all', rules: [] },
      { id: 'b', strategy: 'all', rules },
    ] as const
    expect(unknownResolvers(sets, { known: () => 'x' })).toEqual([
      {
        path: 'ruleSets[1].rules[1].keyResolver',
        message: 'key resolver "lost" is not registered; registered: "known"',
      },
    ])
    expect(unknownResolvers(sets, undefined).map(({ path }) => path)).toEqual([
      'ruleSets[1].rules[0].keyResolver',
      'ruleSets[1].rules[1].keyResolver',
    ])
    expect(
      unknownResolvers(
        sets,
        new Map([
          ['known', () => 'x'],
          ['lost', () => 'x'],
        ]),
      ),
    ).toEqual([])
  })
})
