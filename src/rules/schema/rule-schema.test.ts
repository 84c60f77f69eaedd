import { describe, expect, it } from 'vitest'
import type { Rule } from '../../core/rule.js'
import { checkRuleSets, parseRuleSets } from './parse-rules.js'

const bands = [{ capacity: 10, window: '1s' }]
const document = (rule: object) => ({ ruleSets: [{ id: 's', rules: [{ id: 'r', bands, ...rule }] }] })
const ruleOf = (rule: object) => parseRuleSets(document(rule))[0]?.rules[0] as Rule
const issuesIn = (rule: object): string[] =>
  checkRuleSets(document(rule)).errors.map(({ path, message }) =>
    `${path}: ${message}`.replace('ruleSets[0].rules[0].', ''),
  )
/** Expects exactly one issue, at this path. */
const expectIssue = (rule: object, place: string, message: string) =>
  expect(issuesIn(rule)).toEqual([`${place}: ${message}`])

describe('a rule', () => {
  it('requires an id and bands, and applies defaults', () => {
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
    expect(issuesIn({ id: undefined, bands: undefined })).toEqual([
      'id: must be 1 to 128 characters (letters, digits, . _ - :); received nothing',
      'bands: must be a list of 1 to 8 bands; received nothing',
    ])
  })

  it.each(['a', 'A.b_c-d:9', 'x'.repeat(128), '__proto__', 'constructor'])('accepts the id %s', (id) => {
    expect(ruleOf({ id }).id).toBe(id)
  })
  it.each(['', 'x'.repeat(129), 'a b', 'a/b', 'ü', 'a\n', 7, null, {}])('rejects the id %j', (id) => {
    expect(issuesIn({ id })).toEqual([
      expect.stringMatching(/^id: must be 1 to 128 characters \(letters, .*\); received /),
    ])
  })

  it('has a name and a description', () => {
    expect(ruleOf({ name: 'Ünï', description: 'two\nlines' })).toMatchObject({ name: 'Ünï', description: 'two\nlines' })
    expectIssue({ name: 7 }, 'name', 'must be a string; received 7')
    expectIssue({ description: ['x'] }, 'description', 'must be a string; received a list of 1 item')
  })

  it('can be disabled', () => {
    expect(ruleOf({ enabled: false }).enabled).toBe(false)
    expectIssue({ enabled: 'false' }, 'enabled', 'must be true or false; received "false". Remove the quotes')
    expectIssue({ enabled: 0 }, 'enabled', 'must be true or false; received 0')
  })

  it('has a priority, which may be negative', () => {
    expect(ruleOf({ priority: -5 }).priority).toBe(-5)
    expect(ruleOf({ priority: 1_000_000_000 }).priority).toBe(1_000_000_000)
    const expected = 'must be an integer from -1000000000 to 1000000000'
    expectIssue({ priority: 1.5 }, 'priority', `${expected}; received 1.5`)
    expectIssue({ priority: '1' }, 'priority', `${expected}; received "1". Remove the quotes`)
    expectIssue({ priority: '00' }, 'priority', `${expected}; received "00"`)
    expectIssue({ priority: 1_000_000_001 }, 'priority', `${expected}; received 1000000001`)
    expectIssue({ priority: Number.NaN }, 'priority', `${expected}; received NaN`)
  })

  it.each([
    '/',
    '/**',
    '/api/*/items?',
    '/users/{id}/orders/{order-id}',
    '/files/{name}.json',
    `/${'a'.repeat(1_023)}`,
  ])('accepts the path %s', (path) => {
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
  ])('rejects the path %j', (path) => {
    expect(issuesIn({ path })).toEqual([
      expect.stringMatching(/^path: must be a pattern of at most 1024 .*; received /),
    ])
  })
  it('rejects a path of 1025 characters and truncates it in the message', () => {
    const [issue] = issuesIn({ path: `/${'a'.repeat(1_024)}` })
    expect(issue).toMatch(/must be a pattern .*; received "\/a{59}…"$/)
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
  ])('accepts the method %j', (method, methods) => {
    expect(ruleOf({ method }).methods).toEqual(methods)
  })
  it('rejects invalid methods', () => {
    const expected = 'must be an HTTP method such as GET, a list of methods, or *'
    expectIssue({ method: 'GET,HEAD' }, 'method', `${expected}; received "GET,HEAD"`)
    expectIssue({ method: 7 }, 'method', `${expected}; received 7`)
    expectIssue({ method: '' }, 'method', `${expected}; received ""`)
    expectIssue({ method: ['GET', 7] }, 'method[1]', `${expected}; received 7`)
    expect(issuesIn({ method: [] })[0]).toMatch(
      /^method: must be a list of 1 to 64 items, each .*; received an empty list$/,
    )
  })

  it.each([
    ['GLOBAL', 'GLOBAL'],
    ['IP', 'IP'],
    ['USER_ID', 'USER_ID'],
    ['API_KEY', 'API_KEY'],
    ['PER_IP', 'IP'],
    ['PER_USER', 'USER_ID'],
    ['PER_API_KEY', 'API_KEY'],
  ])('accepts the scope %s', (given, limitScope) => {
    expect(ruleOf({ limitScope: given })).toMatchObject({ limitScope })
    expect(ruleOf({ scope: given })).toMatchObject({ limitScope })
  })
  it('rejects an invalid scope, and limitScope together with scope', () => {
    const expected = 'must be one of GLOBAL, IP, USER_ID, API_KEY, COMPOSITE, CUSTOM'
    expectIssue({ limitScope: 'USER' }, 'limitScope', `${expected}; received "USER"`)
    expectIssue({ scope: 'ip' }, 'scope', `${expected}; received "ip"`)
    expectIssue(
      { limitScope: 'IP', scope: 'IP' },
      'scope',
      'must not be combined with limitScope, which means the same; use only one of limitScope, scope',
    )
  })

  it('accepts composite keys', () => {
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
    const composite = (fields: unknown) => issuesIn({ limitScope: 'COMPOSITE', compositeKeyFields: fields })
    const names = 'one of IP, USER_ID, API_KEY, METHOD, PATH, attributes.x, header.x, path.x'
    const list = `must be a list of 1 to 16 items, each ${names}`
    expect(composite(undefined)).toEqual([`compositeKeyFields: ${list}; received nothing`])
    expect(composite([])).toEqual([`compositeKeyFields: ${list}; received an empty list`])
    expect(composite('IP')).toEqual([`compositeKeyFields: ${list}; received "IP"`])
    expect(composite(['IP', 'ip', 7, 'header.', 'header.a b'])).toEqual([
      `compositeKeyFields[1]: must be ${names}; received "ip"`,
      `compositeKeyFields[2]: must be ${names}; received 7`,
      `compositeKeyFields[3]: must be ${names}; received "header."`,
      `compositeKeyFields[4]: must be ${names}; received "header.a b"`,
    ])
    expect(composite(['header.A', 'header.a'])).toEqual([
      'compositeKeyFields: must not contain duplicates; received "header.a" twice',
    ])
    expect(composite(Array.from({ length: 16 }, (_, index) => `path.${index}`))).toEqual([])
    expect(composite(Array.from({ length: 17 }, (_, index) => `path.${index}`))).toEqual([
      `compositeKeyFields: ${list}; received a list of 17 items`,
    ])
    expectIssue(
      { compositeKeyFields: ['IP'] },
      'compositeKeyFields',
      'must be omitted with limitScope IP; it requires COMPOSITE',
    )
    expect(ruleOf({ compositeKeyFields: [] }).compositeKeyFields).toEqual([])
  })

  it('accepts custom keys by field or resolver', () => {
    expect(ruleOf({ limitScope: 'CUSTOM', keyField: 'header.X-Tenant' }).keyField).toBe('header.x-tenant')
    expect(ruleOf({ limitScope: 'CUSTOM', keyResolver: 'tenant' }).keyResolver).toBe('tenant')
    expectIssue(
      { limitScope: 'CUSTOM' },
      'keyField',
      'must be given with limitScope CUSTOM, unless keyResolver is; received neither',
    )
    expectIssue(
      { limitScope: 'CUSTOM', keyField: 'IP', keyResolver: 'tenant' },
      'keyResolver',
      'must not be combined with keyField; use only one of keyField and keyResolver',
    )
    expectIssue({ keyResolver: 'tenant' }, 'keyResolver', 'must be omitted with limitScope IP; it requires CUSTOM')
    expect(issuesIn({ limitScope: 'CUSTOM', keyField: 'cookie.x' })[0]).toMatch(
      /^keyField: must be one of IP, .*; received "cookie\.x"$/,
    )
    expect(issuesIn({ limitScope: 'CUSTOM', keyResolver: 'a b' })[0]).toMatch(
      /^keyResolver: must be 1 to .*; received "a b"$/,
    )
  })

  it.each([
    ['onMissingKey', ['ANONYMOUS', 'SKIP', 'DENY'], 'onMissingKey'],
    ['onLimitExceed', ['REJECT', 'WAIT_FOR_REFILL'], 'policy'],
    ['onLimitExceedPolicy', ['REJECT', 'WAIT_FOR_REFILL'], 'policy'],
    ['mode', ['ENFORCE', 'SHADOW'], 'mode'],
    ['consistency', ['EXACT', 'LEASED'], 'consistency'],
    ['onStoreFailure', ['LOCAL', 'ALLOW', 'DENY'], 'onStoreFailure'],
  ])('accepts %s: %j', (name, values, property) => {
    for (const value of values) expect(ruleOf({ [name]: value })).toHaveProperty(property, value)
    expectIssue({ [name]: 'reject' }, name, `must be one of ${values.join(', ')}; received "reject"`)
    expectIssue({ [name]: null }, name, `must be one of ${values.join(', ')}; received null`)
  })
  it('accepts REJECT_REQUEST as REJECT, and rejects two policies', () => {
    expect(ruleOf({ onLimitExceed: 'REJECT_REQUEST' }).policy).toBe('REJECT')
    expect(issuesIn({ onLimitExceed: 'REJECT', onLimitExceedPolicy: 'REJECT' })).toEqual([
      'onLimitExceedPolicy: must not be combined with onLimitExceed, which means the same; use only one of onLimitExceed, onLimitExceedPolicy',
    ])
  })

  it.each(['TOKEN_BUCKET', 'token-bucket', 'tokenBucket', 'Token_Bucket'])('accepts the algorithm %s', (algorithm) => {
    expect(ruleOf({ algorithm }).bands[0]?.algorithm).toBe('TOKEN_BUCKET')
  })
  it('reports an invalid algorithm once for any number of bands', () => {
    expect(issuesIn({ algorithm: 'GCRA', bands: [...bands, { capacity: 5, window: '1m' }] })).toEqual([
      'algorithm: must be one of TOKEN_BUCKET, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_WINDOW_LOG, SLIDING_WINDOW_COUNTER, CONCURRENCY; received "GCRA"',
    ])
  })

  it('accepts LEASED only with TOKEN_BUCKET and FIXED_WINDOW', () => {
    expect(ruleOf({ consistency: 'LEASED' }).consistency).toBe('LEASED')
    expect(ruleOf({ consistency: 'LEASED', algorithm: 'FIXED_WINDOW' }).consistency).toBe('LEASED')
    const required = 'LEASED requires TOKEN_BUCKET or FIXED_WINDOW'
    for (const algorithm of ['LEAKY_BUCKET', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER']) {
      expectIssue({ consistency: 'LEASED', algorithm }, 'consistency', `must be EXACT with ${algorithm}; ${required}`)
    }
    const mixed = [...bands, { capacity: 1, window: '1s', algorithm: 'leaky-bucket' }]
    expectIssue({ consistency: 'LEASED', bands: mixed }, 'consistency', `must be EXACT with LEAKY_BUCKET; ${required}`)
  })

  it.each([
    ['permits', 1, 1_000_000_000],
    ['maxWaitMs', 0, 31_622_400_000],
    ['version', 0, Number.MAX_SAFE_INTEGER],
  ])('accepts %s from %d to %d', (name, min, max) => {
    for (const value of [min, max]) expect(ruleOf({ [name]: value })).toHaveProperty(name, value)
    for (const value of [min - 1, max + 1, min + 0.5, '5', null]) {
      expect(issuesIn({ [name]: value })).toEqual([expect.stringMatching(`^${name}: must be an integer .*; received `)])
    }
  })

  it('enables overrides', () => {
    expect(ruleOf({ overrides: true }).overrides).toBe(true)
    expectIssue({ overrides: [] }, 'overrides', 'must be true or false; received an empty list')
  })

  it('accepts timestamps of the store', () => {
    const createdAt = '2026-01-31T12:00:00.5Z'
    expect(ruleOf({ createdAt, updatedAt: new Date(0) })).toMatchObject({
      createdAt,
      updatedAt: '1970-01-01T00:00:00.000Z',
    })
    for (const wrong of ['yesterday', 5, '2026-13-01', new Date(Number.NaN)]) {
      expect(issuesIn({ createdAt: wrong })).toEqual([
        expect.stringMatching(/^createdAt: must be a date and time .*; received /),
      ])
    }
  })
})
