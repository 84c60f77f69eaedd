import { describe, expect, it } from 'vitest'
import type { Rule } from '../../core/rule.js'
import { checkRuleSets, parseRuleSets } from './schema.js'

const bands = [{ capacity: 10, window: '1s' }]
const document = (rule: object) => ({ ruleSets: [{ id: 's', rules: [{ id: 'r', bands, ...rule }] }] })
const ruleOf = (rule: object) => parseRuleSets(document(rule))[0]?.rules[0] as Rule
const mistakesIn = (rule: object): string[] =>
  checkRuleSets(document(rule)).errors.map(({ path, message }) =>
    `${path}: ${message}`.replace('ruleSets[0].rules[0].', ''),
  )
/** One mistake, at this place. */
const refuses = (rule: object, place: string, message: string) =>
  expect(mistakesIn(rule)).toEqual([`${place}: ${message}`])

describe('a rule', () => {
  it('needs an id and bands, and fills in the rest', () => {
    expect(ruleOf({})).toEqual({
      id: 'r',
      enabled: true,
      priority: 0,
      path: '/**',
      methods: [],
      when: [],
      limitScope: 'IP',
      compositeKeyFields: [],
      onMissingKey: 'ANONYMOUS',
      bands: [
        {
          label: '10-per-1s',
          algorithm: 'TOKEN_BUCKET',
          refill: 'STEADY',
          capacity: 10,
          refillTokens: 10,
          windowTicks: 1_000_000,
        },
      ],
      permits: 1,
      policy: 'REJECT',
      mode: 'ENFORCE',
      consistency: 'EXACT',
      overrides: false,
    })
    expect(mistakesIn({ id: undefined, bands: undefined })).toEqual([
      'id: found nothing; allowed: 1 to 128 of letters, digits, . _ - :',
      'bands: found nothing; allowed: a list of 1 to 8 bands',
    ])
  })

  it.each(['a', 'A.b_c-d:9', 'x'.repeat(128), '__proto__', 'constructor'])('may be called %s', (id) => {
    expect(ruleOf({ id }).id).toBe(id)
  })
  it.each(['', 'x'.repeat(129), 'a b', 'a/b', 'ü', 'a\n', 7, null, {}])('may not be called %j', (id) => {
    expect(mistakesIn({ id })).toEqual([expect.stringMatching(/^id: found .*; allowed: 1 to 128 of letters/)])
  })

  it('has a name and a description for people', () => {
    expect(ruleOf({ name: 'Ünï', description: 'two\nlines' })).toMatchObject({ name: 'Ünï', description: 'two\nlines' })
    refuses({ name: 7 }, 'name', 'found 7; allowed: text')
    refuses({ description: ['x'] }, 'description', 'found a list of 1; allowed: text')
  })

  it('can be turned off', () => {
    expect(ruleOf({ enabled: false }).enabled).toBe(false)
    refuses({ enabled: 'false' }, 'enabled', 'found "false"; allowed: true or false')
    refuses({ enabled: 0 }, 'enabled', 'found 0; allowed: true or false')
  })

  it('has a priority, negative too', () => {
    expect(ruleOf({ priority: -5 }).priority).toBe(-5)
    expect(ruleOf({ priority: 1_000_000_000 }).priority).toBe(1_000_000_000)
    const allowed = 'allowed: a whole number from -1000000000 to 1000000000'
    refuses({ priority: 1.5 }, 'priority', `found 1.5; ${allowed}`)
    refuses({ priority: '1' }, 'priority', `found "1"; ${allowed}`)
    refuses({ priority: 1_000_000_001 }, 'priority', `found 1000000001; ${allowed}`)
    refuses({ priority: Number.NaN }, 'priority', `found NaN; ${allowed}`)
  })

  it.each([
    '/',
    '/**',
    '/api/*/items?',
    '/users/{id}/orders/{order-id}',
    '/files/{name}.json',
    `/${'a'.repeat(1_023)}`,
  ])('takes the path %s', (path) => {
    expect(ruleOf({ path }).path).toBe(path)
  })
  it.each([
    '',
    'api',
    '/{id',
    '/id}',
    '/{}',
    '/{a b}',
    '/{a}{b}',
    '/{a}/{a}',
    '/{{a}}',
    '/{id:[0-9]+}',
    '/a\nb',
    7,
    null,
  ])('refuses the path %j', (path) => {
    expect(mistakesIn({ path })).toEqual([expect.stringMatching(/^path: found .*; allowed: a pattern of at most 1024/)])
  })
  it('refuses a path of 1025 characters, and does not repeat all of it', () => {
    const [mistake] = mistakesIn({ path: `/${'a'.repeat(1_024)}` })
    expect(mistake).toContain(`found "/${'a'.repeat(59)}…"; allowed: a pattern`)
  })

  it.each([
    ['GET', ['GET']],
    ['get', ['GET']],
    [
      ['get', 'HEAD', 'Get'],
      ['GET', 'HEAD'],
    ],
    ['*', []],
    [['*'], []],
    [['GET', '*'], []],
    ['VERSION-CONTROL', ['VERSION-CONTROL']],
  ])('takes the method %j', (method, methods) => {
    expect(ruleOf({ method }).methods).toEqual(methods)
  })
  it('refuses a method that is none, and says which', () => {
    const allowed = 'allowed: an HTTP method such as GET, a list of them, or *'
    refuses({ method: 'GET,HEAD' }, 'method', `found "GET,HEAD"; ${allowed}`)
    refuses({ method: 7 }, 'method', `found 7; ${allowed}`)
    refuses({ method: '' }, 'method', `found ""; ${allowed}`)
    refuses({ method: ['GET', 7] }, 'method[1]', `found 7; ${allowed}`)
    expect(mistakesIn({ method: [] })[0]).toContain('method: found an empty list; allowed: a list of 1 to 64')
  })

  it.each([
    ['GLOBAL', 'GLOBAL'],
    ['IP', 'IP'],
    ['USER_ID', 'USER_ID'],
    ['API_KEY', 'API_KEY'],
    ['PER_IP', 'IP'],
    ['PER_USER', 'USER_ID'],
    ['PER_API_KEY', 'API_KEY'],
  ])('counts by the scope %s', (given, limitScope) => {
    expect(ruleOf({ limitScope: given })).toMatchObject({ limitScope })
    expect(ruleOf({ scope: given })).toMatchObject({ limitScope })
  })
  it('refuses a scope that is none, or given twice', () => {
    const allowed = 'allowed: GLOBAL, IP, USER_ID, API_KEY, COMPOSITE, CUSTOM'
    refuses({ limitScope: 'USER' }, 'limitScope', `found "USER"; ${allowed}`)
    refuses({ scope: 'ip' }, 'scope', `found "ip"; ${allowed}`)
    refuses(
      { limitScope: 'IP', scope: 'IP' },
      'scope',
      'found beside limitScope, which means the same; allowed: only one of limitScope, scope',
    )
  })

  it('counts by several fields together', () => {
    const compositeKeyFields = [
      'IP',
      'USER_ID',
      'API_KEY',
      'METHOD',
      'PATH',
      'attributes.a b',
      'header.X-App',
      'path.id',
    ]
    expect(ruleOf({ limitScope: 'COMPOSITE', compositeKeyFields }).compositeKeyFields).toEqual([
      ...['IP', 'USER_ID', 'API_KEY', 'METHOD', 'PATH', 'attributes.a b', 'header.x-app', 'path.id'],
    ])
    const composite = (fields: unknown) => mistakesIn({ limitScope: 'COMPOSITE', compositeKeyFields: fields })
    const names = 'IP, USER_ID, API_KEY, METHOD, PATH, attributes.x, header.x, path.x'
    const list = `allowed: a list of 1 to 16 of these: ${names}`
    expect(composite(undefined)).toEqual([`compositeKeyFields: found nothing; ${list}`])
    expect(composite([])).toEqual([`compositeKeyFields: found an empty list; ${list}`])
    expect(composite('IP')).toEqual([`compositeKeyFields: found "IP"; ${list}`])
    expect(composite(['IP', 'ip', 7, 'header.', 'header.a b'])).toEqual([
      `compositeKeyFields[1]: found "ip"; allowed: ${names}`,
      `compositeKeyFields[2]: found 7; allowed: ${names}`,
      `compositeKeyFields[3]: found "header."; allowed: ${names}`,
      `compositeKeyFields[4]: found "header.a b"; allowed: ${names}`,
    ])
    expect(composite(['header.A', 'header.a'])).toEqual([
      'compositeKeyFields: found "header.a" twice, a duplicate; allowed: each field once',
    ])
    expect(composite(Array.from({ length: 16 }, (_, index) => `path.${index}`))).toEqual([])
    expect(composite(Array.from({ length: 17 }, (_, index) => `path.${index}`))).toEqual([
      `compositeKeyFields: found a list of 17; ${list}`,
    ])
    refuses(
      { compositeKeyFields: ['IP'] },
      'compositeKeyFields',
      'found with limitScope IP; allowed: only with COMPOSITE',
    )
    expect(ruleOf({ compositeKeyFields: [] }).compositeKeyFields).toEqual([])
  })

  it('counts by a field or a resolver of its own', () => {
    expect(ruleOf({ limitScope: 'CUSTOM', keyField: 'header.X-Tenant' }).keyField).toBe('header.x-tenant')
    expect(ruleOf({ limitScope: 'CUSTOM', keyResolver: 'tenant' }).keyResolver).toBe('tenant')
    refuses(
      { limitScope: 'CUSTOM' },
      'keyField',
      'found nothing with limitScope CUSTOM; allowed: one of keyField and keyResolver',
    )
    refuses(
      { limitScope: 'CUSTOM', keyField: 'IP', keyResolver: 'tenant' },
      'keyResolver',
      'found beside keyField; allowed: only one of keyField and keyResolver',
    )
    refuses({ keyResolver: 'tenant' }, 'keyResolver', 'found with limitScope IP; allowed: only with CUSTOM')
    expect(mistakesIn({ limitScope: 'CUSTOM', keyField: 'cookie.x' })[0]).toContain(
      'keyField: found "cookie.x"; allowed: IP,',
    )
    expect(mistakesIn({ limitScope: 'CUSTOM', keyResolver: 'a b' })[0]).toContain(
      'keyResolver: found "a b"; allowed: 1 to',
    )
  })

  it.each([
    ['onMissingKey', ['ANONYMOUS', 'SKIP', 'DENY'], 'onMissingKey'],
    ['onLimitExceed', ['REJECT', 'WAIT_FOR_REFILL'], 'policy'],
    ['onLimitExceedPolicy', ['REJECT', 'WAIT_FOR_REFILL'], 'policy'],
    ['mode', ['ENFORCE', 'SHADOW'], 'mode'],
    ['consistency', ['EXACT', 'LEASED'], 'consistency'],
    ['onStoreFailure', ['LOCAL', 'ALLOW', 'DENY'], 'onStoreFailure'],
  ])('takes %s: %j', (name, values, property) => {
    for (const value of values) expect(ruleOf({ [name]: value })).toHaveProperty(property, value)
    refuses({ [name]: 'reject' }, name, `found "reject"; allowed: ${values.join(', ')}`)
    refuses({ [name]: null }, name, `found null; allowed: ${values.join(', ')}`)
  })
  it('takes REJECT_REQUEST for REJECT, and the policy once', () => {
    expect(ruleOf({ onLimitExceed: 'REJECT_REQUEST' }).policy).toBe('REJECT')
    expect(mistakesIn({ onLimitExceed: 'REJECT', onLimitExceedPolicy: 'REJECT' })).toEqual([
      'onLimitExceedPolicy: found beside onLimitExceed, which means the same; allowed: only one of onLimitExceed, onLimitExceedPolicy',
    ])
  })

  it.each(['TOKEN_BUCKET', 'token-bucket', 'tokenBucket', 'Token_Bucket'])('takes the algorithm %s', (algorithm) => {
    expect(ruleOf({ algorithm }).bands[0]?.algorithm).toBe('TOKEN_BUCKET')
  })
  it('refuses an algorithm that is none, once, however many bands there are', () => {
    expect(mistakesIn({ algorithm: 'GCRA', bands: [...bands, { capacity: 5, window: '1m' }] })).toEqual([
      'algorithm: found "GCRA"; allowed: TOKEN_BUCKET, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_WINDOW_LOG, SLIDING_WINDOW_COUNTER',
    ])
  })

  it('leases only what a lease can keep exact', () => {
    expect(ruleOf({ consistency: 'LEASED' }).consistency).toBe('LEASED')
    expect(ruleOf({ consistency: 'LEASED', algorithm: 'FIXED_WINDOW' }).consistency).toBe('LEASED')
    const allowed = 'allowed: LEASED with TOKEN_BUCKET, FIXED_WINDOW only'
    for (const algorithm of ['LEAKY_BUCKET', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER']) {
      refuses({ consistency: 'LEASED', algorithm }, 'consistency', `found LEASED with ${algorithm}; ${allowed}`)
    }
    const mixed = [...bands, { capacity: 1, window: 1, algorithm: 'leaky-bucket' }]
    refuses({ consistency: 'LEASED', bands: mixed }, 'consistency', `found LEASED with LEAKY_BUCKET; ${allowed}`)
  })

  it.each([
    ['permits', 1, 1_000_000_000],
    ['maxWaitMs', 0, 31_622_400_000],
    ['version', 0, Number.MAX_SAFE_INTEGER],
  ])('takes %s from %d to %d', (name, min, max) => {
    for (const value of [min, max]) expect(ruleOf({ [name]: value })).toHaveProperty(name, value)
    for (const value of [min - 1, max + 1, min + 0.5, '5', null]) {
      expect(mistakesIn({ [name]: value })).toEqual([
        expect.stringMatching(`^${name}: found .*; allowed: a whole number`),
      ])
    }
  })

  it('opts in to overrides', () => {
    expect(ruleOf({ overrides: true }).overrides).toBe(true)
    refuses({ overrides: [] }, 'overrides', 'found an empty list; allowed: true or false')
  })

  it('carries when it was written', () => {
    const createdAt = '2026-01-31T12:00:00.5Z'
    expect(ruleOf({ createdAt, updatedAt: new Date(0) })).toMatchObject({
      createdAt,
      updatedAt: '1970-01-01T00:00:00.000Z',
    })
    for (const wrong of ['yesterday', 5, '2026-13-01', new Date(Number.NaN)]) {
      expect(mistakesIn({ createdAt: wrong })).toEqual([
        expect.stringMatching(/^createdAt: found .*; allowed: a date and time/),
      ])
    }
  })
})
