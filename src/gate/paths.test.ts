import { describe, expect, it } from 'vitest'
import type { RuleInput, RuleSetInput } from '../rules/schema/input.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'

const rule = (id: string, capacity: number, given: Partial<RuleInput> = {}): RuleInput => ({
  id,
  limitScope: 'GLOBAL',
  bands: [{ capacity, window: '1h' }],
  ...given,
})

const gateOf = (rules: readonly RuleInput[], given: Partial<RuleSetInput> = {}) =>
  createFluxGate({ rules: { id: 'api', ...given, rules }, clock: manualClock(1_800_000_000_000) })

/** Remaining permits of each bucket, by rule and key. */
const remaining = ({ bands }: { bands: readonly { ruleId: string; key: string; remaining: number }[] }) =>
  Object.fromEntries(bands.map(({ ruleId, key, remaining }) => [`${ruleId} ${key}`, remaining]))

describe('a limit on a path', () => {
  it('applies to every spelling of the path', async () => {
    const spellings = [
      '/login',
      '/LOGIN',
      '/login/',
      '/lo%67in',
      '//login',
      '//x/login',
      '/\\x/login',
      '/a\\..\\login',
      '/a/../login',
      '/a/%2e%2e/login',
      '/a//../login',
      '/a%2F..%2Flogin',
      '/a%5C..%5Clogin',
      '/a/..;/login',
      '/login;v=1',
      '/login%3bv=1',
      '/login;v=1/x',
      '/login?x',
      'http://host/login',
      'http://host//x/login',
    ]
    const gate = await gateOf([rule('login', spellings.length, { path: '/login' })])
    for (const path of spellings) expect((await gate.check({ path })).allowed, path).toBe(true)
    for (const path of spellings) expect((await gate.check({ path })).allowed, path).toBe(false)
  })

  it('applies even if a router keeps dot segments and backslashes', async () => {
    const gate = await gateOf([rule('files', 3, { path: '/files/**' }), rule('one', 3, { path: '/{name}' })])
    expect(remaining(await gate.check({ path: '/files/../x' }))).toEqual({ 'files global': 2, 'one global': 2 })
    expect(remaining(await gate.check({ path: '/x\\y' }))).toEqual({ 'one global': 1 })
  })

  it('distinguishes letter case if the rule set is case-sensitive', async () => {
    const gate = await gateOf([rule('login', 1, { path: '/Login' })], { caseSensitive: true })
    expect((await gate.check({ path: '/Login' })).allowed).toBe(true)
    expect((await gate.check({ path: '/Log%69n' })).allowed).toBe(false)
    expect((await gate.check({ path: '/login' })).reason).toBe('NO_RULE')
  })

  it('with PATH or a captured name as key uses one bucket for all spellings, and one per interpretation of an ambiguous path', async () => {
    const gate = await gateOf([
      rule('path', 9, { limitScope: 'COMPOSITE', compositeKeyFields: ['PATH'] }),
      rule('user', 9, { path: '/u/:name', limitScope: 'CUSTOM', keyField: 'path.name' }),
    ])
    expect(remaining(await gate.check({ path: '/u/Ann' }))).toEqual({ 'path /u/ann': 8, 'user ann': 8 })
    expect(remaining(await gate.check({ path: '/U/aNN/' }))).toEqual({ 'path /u/ann': 7, 'user ann': 7 })
    expect(remaining(await gate.check({ path: '/u/ann;1' }))).toEqual({
      'path /u/ann;1': 8,
      'path /u/ann': 6,
      'user ann;1': 8,
      'user ann': 6,
    })
  })

  it('with PATH as key cannot be evaded with path parameters', async () => {
    const gate = await gateOf([rule('path', 2, { limitScope: 'CUSTOM', keyField: 'PATH' })])
    const allowed = []
    for (let i = 0; i < 4; i++) allowed.push((await gate.check({ path: `/login;v=${i}` })).allowed)
    expect(allowed).toEqual([true, true, false, false])
  })

  it('under strategy first is not replaced by a rule that matches only another interpretation of the path', async () => {
    const rules = [rule('free', 100, { path: '/free/**', priority: 1 }), rule('login', 1, { path: '/login' })]
    const gate = await gateOf(rules, { strategy: 'first' })
    expect((await gate.check({ path: '/login' })).allowed).toBe(true)
    for (const path of ['/free/../login', '/free;/../login', '/free%2F..%2F..%2Flogin', '//free/login'])
      expect((await gate.check({ path })).allowed, path).toBe(false)
    expect((await gate.check({ path: '/free/x' })).allowed).toBe(true)
  })

  it('on GET includes HEAD in the same bucket, even with METHOD as key', async () => {
    const gate = await gateOf([
      rule('get', 9, { method: 'GET', limitScope: 'COMPOSITE', compositeKeyFields: ['METHOD', 'IP'] }),
      rule('head', 9, { method: 'HEAD', limitScope: 'CUSTOM', keyField: 'METHOD' }),
    ])
    const clientIp = '10.0.0.1'
    expect(remaining(await gate.check({ method: 'GET', clientIp }))).toEqual({ 'get GET|10.0.0.1': 8 })
    expect(remaining(await gate.check({ method: 'head', clientIp }))).toEqual({
      'get GET|10.0.0.1': 7,
      'head HEAD': 8,
    })
  })
})
