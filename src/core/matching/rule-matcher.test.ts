import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plainRule } from '../../testing/plain-rule.js'
import type { RequestContext } from '../request-context.js'
import { type Rule, withHead } from '../rule.js'
import { finish } from '../scheduling/steps.js'
import { compileConditions } from './condition.js'
import { matcherSteps as listSteps } from './list-matcher.js'
import { normalisePath } from './paths/normalise-path.js'
import { compilePathPattern } from './paths/path-pattern.js'
import { capturedFrom, matchesPath } from './paths/tree-search.js'
import { compareRules, rankedRules } from './rank-rules.js'
import { compileRules, type RuleMatcher } from './rule-matcher.js'

const rule = (id: string, fields: Partial<Rule> = {}): Rule => plainRule({ id, ...fields })
/** A matcher that uses only the first interpretation of a path. */
const matcherOf = (rules: readonly Rule[], caseSensitive = false) =>
  readingFirst(compileRules({ id: 'set', strategy: 'all', caseSensitive, rules }))

/** The matcher of edge runtimes. */
const listMatcherOf = (rules: readonly Rule[]) =>
  readingFirst(finish(listSteps(finish(rankedRules({ id: 'set', strategy: 'all', rules })), false)))

function readingFirst(matcher: RuleMatcher) {
  return {
    match(context: RequestContext) {
      const read = matcher.interpretPath(context)
      return matcher.match(context, typeof read === 'string' ? read : (read[0] as string))
    },
  }
}
const idsFor = (rules: readonly Rule[], context: RequestContext, caseSensitive = false) =>
  matcherOf(rules, caseSensitive)
    .match(context)
    .map((match) => match.rule.id)

describe('compileRules', () => {
  it('matches every spelling of a path', () => {
    const matcher = matcherOf([rule('users', { path: '/api/users' })])
    for (const path of ['/api/users', '/api//users', '/api/./users', '/api/users/', '/api/%75sers', '/api/users?a=b']) {
      expect(matcher.match({ path }).map((match) => match.rule.id)).toEqual(['users'])
    }
    for (const path of ['/API/Users', '/api\\users', '/x\\..\\api/users', 'http://host/api/users']) {
      expect(matcher.match({ path }).map((match) => match.rule.id)).toEqual(['users'])
    }
    for (const path of ['/api/user', '/api/users/7', '/api%2Fusers']) {
      expect(matcher.match({ path })).toEqual([])
    }
  })

  it('compares the segments that all paths start with as whole segments', () => {
    const rules = ['/api/v1/users/**', '/api/v1/users/me', '/api/v1/orders'].map((path) => rule(path, { path }))
    expect(idsFor(rules, { path: '/api/v1/users/me' })).toEqual(['/api/v1/users/**', '/api/v1/users/me'])
    expect(idsFor(rules, { path: '/api/v1/users' })).toEqual(['/api/v1/users/**'])
    expect(idsFor(rules, { path: '/api/v1/orders' })).toEqual(['/api/v1/orders'])
    for (const path of ['/', '/api', '/api/v1', '/api/v10/orders', '/api/v1orders', '/ap/i/v1/orders', '/orders'])
      expect(idsFor(rules, { path })).toEqual([])
    const ending = [...rules, rule('version', { path: '/api/v1' }), rule('all', { path: '/api/**' })]
    expect(idsFor(ending, { path: '/api/v1' })).toEqual(['all', 'version'])
    expect(idsFor(ending, { path: '/api/v1/orders' })).toEqual(['/api/v1/orders', 'all'])
  })

  it('ignores letter case in paths, captured values and their conditions, unless the rule set is case-sensitive', () => {
    const rules = [
      rule('login', { path: '/Login' }),
      rule('tenant', { path: '/t/{Name}', when: [{ field: 'path.Name', values: ['Acmé'] }] }),
    ]
    expect(idsFor(rules, { path: '/lOGIN' })).toEqual(['login'])
    expect(matcherOf(rules).match({ path: '/T/ACM%C3%89' })[0]?.pathVariables).toEqual({ Name: 'acmé' })
    expect(idsFor(rules, { path: '/lOGIN' }, true)).toEqual([])
    expect(idsFor(rules, { path: '/Login' }, true)).toEqual(['login'])
    expect(idsFor(rules, { path: '/t/ACM%C3%89' }, true)).toEqual([])
    expect(matcherOf(rules, true).match({ path: '/t/Acm%C3%A9' })[0]?.pathVariables).toEqual({ Name: 'Acmé' })
  })

  it('applies a rule for GET to HEAD, whether by method or by condition', () => {
    const rules = [
      rule('any'),
      rule('condition', { when: [{ field: 'method', values: ['get'] }] }),
      rule('get', { methods: ['GET'] }),
      rule('head', { methods: ['HEAD'] }),
      rule('post', { methods: ['POST'] }),
    ]
    expect(idsFor(rules, { method: 'HEAD' })).toEqual(['any', 'condition', 'get', 'head'])
    expect(idsFor(rules, { method: 'GET' })).toEqual(['any', 'condition', 'get'])
  })

  it('sorts by descending priority, ties by id', () => {
    const rules = [
      rule('b'),
      rule('a'),
      rule('B'),
      rule('low', { priority: -1 }),
      rule('high', { priority: 5, path: '/x' }),
    ]
    expect(idsFor(rules, { path: '/x' })).toEqual(['high', 'B', 'a', 'b', 'low'])
    expect(idsFor(rules, { path: '/y' })).toEqual(['B', 'a', 'b', 'low'])
  })

  it('ignores disabled rules', () => {
    expect(idsFor([rule('off', { enabled: false }), rule('on')], {})).toEqual(['on'])
    expect(idsFor([], { path: '/a' })).toEqual([])
  })

  it('treats a request without a path as a request for /', () => {
    expect(idsFor([rule('root', { path: '/' }), rule('one', { path: '/*' }), rule('all')], {})).toEqual(['all', 'root'])
  })

  it('matches methods in any letter case, and no method if the request has none', () => {
    const rules = [rule('any'), rule('read', { methods: ['GET', 'HEAD'] }), rule('write', { methods: ['POST'] })]
    expect(idsFor(rules, { method: 'GET' })).toEqual(['any', 'read'])
    expect(idsFor(rules, { method: 'head' })).toEqual(['any', 'read'])
    expect(idsFor(rules, { method: 'post' })).toEqual(['any', 'write'])
    expect(idsFor(rules, { method: 'DELETE' })).toEqual(['any'])
    expect(idsFor(rules, {})).toEqual(['any'])
  })

  it('returns the captures of each rule under its own names', () => {
    const rules = [
      rule('by-id', { path: '/users/{id}' }),
      rule('by-user', { path: '/users/{user}', priority: 1 }),
      rule('plain', { path: '/users/*' }),
    ]
    const matches = matcherOf(rules).match({ path: '/users/7' })
    expect(matches.map(({ rule, pathVariables }) => [rule.id, pathVariables])).toEqual([
      ['by-user', { user: '7' }],
      ['by-id', { id: '7' }],
      ['plain', undefined],
    ])
  })

  it('evaluates conditions on captured values', () => {
    const rules = [rule('seven', { path: '/users/{id}', when: [{ field: 'path.id', values: ['7'] }] })]
    expect(idsFor(rules, { path: '/users/7' })).toEqual(['seven'])
    expect(idsFor(rules, { path: '/users/8' })).toEqual([])
  })

  it('finds one of ten thousand rules that differ only in a condition', () => {
    const rules = Array.from({ length: 10_000 }, (_, i) =>
      rule(`tenant-${i}`, {
        when: [
          { field: 'attributes.plan', values: ['paid'] },
          { field: 'attributes.tenant', values: [`t${i}`, `${i}`] },
        ],
      }),
    )
    const matcher = matcherOf([...rules, rule('everyone', { priority: 1 })])
    const idsOf = (tenant: unknown, plan = 'paid') =>
      matcher.match({ attributes: { tenant, plan } }).map((match) => match.rule.id)
    expect(idsOf('t77')).toEqual(['everyone', 'tenant-77'])
    expect(idsOf(77)).toEqual(['everyone', 'tenant-77'])
    expect(idsOf(['t9', '9', 't8'])).toEqual(['everyone', 'tenant-8', 'tenant-9'])
    expect(idsOf('t77', 'free')).toEqual(['everyone'])
    expect(idsOf(undefined)).toEqual(['everyone'])
  })

  it('agrees with evaluating every rule', () => {
    const segment = fc.constantFrom('a', 'b', 'ab', '*', '**', 'a*', '?', '{x}', '{y}', 'a{z}')
    const pattern = fc.array(segment, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`)
    const condition = fc.constantFrom(
      { field: 'attributes.t', values: ['1'] },
      { field: 'attributes.t', values: ['2', '3'] },
      { field: 'header.h', values: ['1'] },
      { field: 'path.x', values: ['a', 'ab'] },
      { field: 'method', values: ['get'] },
      { field: 'clientIp', values: ['10.0.0.0/8'] },
    )
    const rules = fc
      .array(
        fc.record({
          enabled: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
          priority: fc.integer({ min: 0, max: 2 }),
          path: fc.oneof(pattern, fc.constant('/**')),
          methods: fc.subarray(['GET', 'POST'], { maxLength: 1 }),
          when: fc.array(condition, { maxLength: 2 }),
        }),
        { maxLength: 30 },
      )
      .map((list) => list.map((fields, i) => rule(`r${(i * 7) % 31}`, fields)))
    const context = fc.record(
      {
        path: fc
          .array(fc.constantFrom('a', 'b', 'AB', 'c', '..', ''), { maxLength: 6 })
          .map((parts) => `/${parts.join('/')}`),
        method: fc.constantFrom('GET', 'get', 'HEAD', 'POST', 'PUT'),
        clientIp: fc.constantFrom('10.1.1.1', '192.0.2.1'),
        headers: fc.record({ h: fc.constantFrom('1', '2') }),
        attributes: fc.record({ t: fc.constantFrom<unknown>('1', 2, 3, ['2', '3'], {}) }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(rules, fc.array(context, { maxLength: 8 }), (list, contexts) => {
        for (const matcher of [matcherOf(list), listMatcherOf(list)])
          for (const one of contexts) {
            const found = matcher.match(one).map((match) => [match.rule.id, match.pathVariables])
            expect(found).toEqual(scan(list, one))
          }
      }),
      { numRuns: 1000 },
    )
  })

  it('handles long paths, many stars and many double stars', () => {
    const stars = rule('stars', { path: '/*a*a*a*a*a*b' })
    const double = rule('double', { path: '/**/a/**/b/**' })
    const triple = rule('triple', { path: '/**/a/**/a/**/a/{x}/**/a/b' })
    const matcher = matcherOf([stars, double, triple])
    const idsOf = (path: string) => matcher.match({ path }).map((match) => match.rule.id)
    expect(idsOf(`/${'a'.repeat(1_000_000)}`)).toEqual([])
    expect(idsOf(`/${'a'.repeat(1_000_000)}b`)).toEqual(['stars'])
    expect(idsOf('/a'.repeat(10_000))).toEqual([])
    expect(idsOf(`${'/a'.repeat(10_000)}/b`)).toEqual(['double', 'triple'])
    expect(idsOf('/'.repeat(1_000_000))).toEqual([])
    const everyPair = Array.from({ length: 400 }, (_, i) => rule(`p${i}`, { path: `/**/s${i % 20}/**/s${i % 19}/**` }))
    const path = Array.from({ length: 2_000 }, (_, i) => `/s${i % 20}`).join('')
    expect(matcherOf(everyPair).match({ path })).toHaveLength(400)
  })
})

/** The expected matches, found by evaluating every rule without the tree. */
function scan(rules: readonly Rule[], context: RequestContext): unknown[] {
  const path = normalisePath(context.path)
  return rules
    .filter(
      ({ enabled, methods }) =>
        enabled && (methods.length === 0 || withHead(methods).includes(`${context.method}`.toUpperCase())),
    )
    .toSorted(compareRules)
    .flatMap((one) => {
      const pattern = compilePathPattern(one.path)
      if (!matchesPath(pattern, path)) return []
      const variables = pattern.captures && capturedFrom(pattern.captures, path)
      return (compileConditions(one.when)?.(context, variables) ?? true) ? [[one.id, variables]] : []
    })
}
