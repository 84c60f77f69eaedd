import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../rules/document/document.js'
import { noIssues } from '../../validation/issues.js'
import { filterNotations } from './filter-notations.js'
import { predicateNotations } from './predicate-notations.js'
import { type RouteDefinition, readRoutes } from './route-schema.js'

function read(...routes: unknown[]): readonly RouteDefinition[] {
  const issues = noIssues()
  const result = readRoutes(routes, 'gateway.routes', issues)
  expect(issues.kept).toEqual([])
  return result ?? []
}

function issuesOf(...routes: unknown[]): string[] {
  const issues = noIssues()
  readRoutes(routes, 'gateway.routes', issues)
  return issues.kept.map(({ path, message }) => `${path}: ${message}`)
}

const base = { id: 'api', uri: 'http://127.0.0.1:3000' }
const withFilter = (filter: unknown) => ({ ...base, filters: [filter] })

describe('the uri of a route', () => {
  it.each([
    ['http://localhost', { isSecure: false, hostname: 'localhost', port: 80, authority: 'localhost' }],
    ['https://[::1]:8443/', { isSecure: true, hostname: '::1', port: 8443, authority: '[::1]:8443' }],
    ['wss://Example.org', { isSecure: true, hostname: 'example.org', port: 443, authority: 'example.org' }],
  ])('accepts %s', (uri, origin) => {
    expect(read({ id: 'x', uri })[0]?.origin).toEqual(origin)
  })

  it.each(['localhost:80', 'lb://service', 'http://a/path', 'http://u:secret@a', 'http://a?q', ''])(
    'rejects %j without showing it',
    (uri) => {
      expect(issuesOf({ id: 'x', uri })).toEqual([
        'gateway.routes[0].uri: must be http://host:port or https://host:port without a path; the received value is hidden',
      ])
    },
  )
})

describe('timeouts of a route', () => {
  it.each([
    [undefined, undefined],
    [
      { 'connect-timeout': 200, responseTimeout: '1.5s' },
      { connectTimeoutMs: 200, responseTimeoutMs: 1_500 },
    ],
    [{ 'response-timeout': '1d' }, { responseTimeoutMs: 86_400_000 }],
  ])('are read from %j', (metadata, timeouts) => {
    expect(read({ ...base, metadata })[0]?.timeouts).toEqual(timeouts)
  })

  it('are rejected if they are out of range', () => {
    const allowed = 'must be an integer number of milliseconds, or a duration such as 500ms, 1.5s, 1m, from 1ms to 1d'
    expect(issuesOf({ ...base, metadata: { 'connect-timeout': 0, 'response-timeout': '2d' } })).toEqual([
      `gateway.routes[0].metadata.connectTimeout: ${allowed}; received 0`,
      `gateway.routes[0].metadata.responseTimeout: ${allowed}; received "2d"`,
    ])
    expect(issuesOf({ ...base, metadata: { timeout: 1 } })).toHaveLength(1)
  })
})

describe('path filters', () => {
  const changed = (filter: unknown, path: string): string | undefined =>
    read(withFilter(filter))[0]?.pathChanges.reduce((before, change) => change(before), path)

  it.each([
    ['StripPrefix=1', '/api/users', '/users'],
    ['StripPrefix=2', '/api/v1/users/', '/users/'],
    ['StripPrefix=1', '//api//users', '//users'],
    ['StripPrefix=1', '/api', '/'],
    ['StripPrefix=3', '/api', '/'],
    [{ name: 'StripPrefix', args: { parts: 2 } }, '/a/b/c', '/c'],
    ['RewritePath=/red/?(?<segment>.*), /$\\{segment}', '/red/blue', '/blue'],
    ['RewritePath=/red/?(?<segment>.*), /$\\{segment}', '/red', '/'],
    ['RewritePath=^/v(\\d+)/, /api/$1/', '/v2/x', '/api/2/x'],
    ['RewritePath=/a, b', '/a', '/b'],
    ['RewritePath=x, y', '/x/x', '/y/y'],
    [{ name: 'RewritePath', args: { regexp: '^/old', replacement: '/\\$new' } }, '/old/1', '/$new/1'],
    [{ name: 'RewritePath', args: { regexp: '/(a{1,2})', replacement: '/-$1$2-' } }, '/aa', '/-aa-'],
  ])('%j rewrites %s to %s', (filter, path, expected) => {
    expect(changed(filter, path)).toBe(expected)
  })
})

describe('RateLimiter filter', () => {
  const limitsOf = (filter: unknown) => read(withFilter(filter))[0]?.limits

  it('references a rule set', () => {
    const place = 'gateway.routes[0].filters[0]'
    expect(limitsOf('RateLimiter=gold')).toEqual([{ kind: 'RULE_SET', ruleSetId: 'gold', place: `${place}.ruleSet` }])
    expect(limitsOf({ name: 'RateLimiter', args: { ruleSet: 'gold', permits: 2 } })).toEqual([
      { kind: 'RULE_SET', ruleSetId: 'gold', permits: 2, place: `${place}.args.ruleSet` },
    ])
  })

  it.each([
    [undefined, { limitScope: 'IP' }],
    ['ip', { limitScope: 'IP' }],
    ['user', { limitScope: 'USER_ID' }],
    ['apiKey', { limitScope: 'API_KEY' }],
    ['header.X-Tenant', { limitScope: 'CUSTOM', keyField: 'header.x-tenant' }],
  ])('accepts an inline rule with key resolver %s', (keyResolver, keys) => {
    const args = { algorithm: 'sliding-window-log', bands: [{ capacity: 5, window: '1m' }], keyResolver }
    expect(limitsOf({ name: 'RateLimiter', args })).toMatchObject([
      { kind: 'RULE', rule: { ...keys, bands: [{ algorithm: 'SLIDING_WINDOW_LOG', capacity: 5 }] } },
    ])
  })

  it('accepts kebab-case names and a single band', () => {
    const args = {
      capacity: 3,
      'refill-tokens': 1,
      window: '1s',
      'key-resolver': 'user',
      'on-limit-exceed': 'WAIT_FOR_REFILL',
    }
    expect(limitsOf({ name: 'RateLimiter', args })).toMatchObject([
      { rule: { limitScope: 'USER_ID', policy: 'WAIT_FOR_REFILL', bands: [{ capacity: 3, refillTokens: 1 }] } },
    ])
  })
})

describe('validation errors', () => {
  it('are reported all at once, each with its path', () => {
    const issues = issuesOf(
      {
        id: 'a b',
        uri: 7,
        predicates: [
          'Pfad=/x',
          'Path=x',
          { name: 'Method', args: { methods: ['GET', '?'] } },
          5,
          'Header=, x',
          'Query=a, (',
        ],
        filters: [
          'StripPrefix=none',
          { name: 'RewritePath', args: { regexp: '(', replacment: '/' } },
          { name: 'AddRequestHeader', args: { name: 'Connection', value: 'secret\n' } },
          { name: 'RateLimiter', args: { bands: [{ capacity: -1, window: '1m' }], keyResolver: 'cookie' } },
          { name: 'RateLimiter', args: { ruleSet: 'x', capacity: 5 } },
          'RateLimiter',
        ],
        order: 1,
      },
      { ...base, predicates: { Path: '/x' } },
      { ...base, predicates: ['RemoteAddr=10.0.0.0/99', 'Host=a b'] },
      base,
      base,
    )
    const at = 'gateway.routes[0]'
    expect(issues).toEqual([
      `${at}.order: unknown field "order"; allowed: id, uri, predicates, filters, metadata`,
      `${at}.id: must be 1 to 128 characters (letters, digits, . _ - :); received "a b"`,
      `${at}.uri: must be http://host:port or https://host:port without a path; the received value is hidden`,
      `${at}.predicates[0]: unknown name "Pfad"; allowed: Path, Method, Host, Header, Query, RemoteAddr`,
      expect.stringMatching(
        /^gateway\.routes\[0\]\.predicates\[1\]\.patterns\[0\]: must be a pattern .*; received "x"$/,
      ),
      `${at}.predicates[2].args.methods[1]: must be an HTTP method such as GET; received "?"`,
      `${at}.predicates[3]: must be a string such as Path=…, or { name, args }; received 5`,
      `${at}.predicates[4].header: must be a header name; received ""`,
      `${at}.predicates[5].regexp: must be a regular expression; received "("`,
      `${at}.filters[0].parts: must be an integer from 1 to 100; received "none"`,
      `${at}.filters[1].args.replacment: unknown field "replacment"; did you mean replacement?`,
      `${at}.filters[1].args.regexp: must be a regular expression; received "("`,
      expect.stringMatching(/filters\[1\]\.args\.replacement: must be .*; received nothing$/),
      expect.stringMatching(/filters\[2\]\.args\.name: must be .*; received "Connection"$/),
      `${at}.filters[2].args.value: must be a string of at most 8192 printable characters; the received value is hidden`,
      `${at}.filters[3].args.keyResolver: must be ip, user, apiKey or header.<name>; received "cookie"`,
      `${at}.filters[3].args.bands[0].capacity: must be an integer from 0 to 1000000000; received -1`,
      `${at}.filters[4].args.capacity: must not be combined with ruleSet; set it in a rule of that rule set`,
      `${at}.filters[5].ruleSet: must be 1 to 128 characters (letters, digits, . _ - :); received ""`,
      'gateway.routes[1].predicates: must be a list; received an object',
      expect.stringMatching(
        /^gateway\.routes\[2\]\.predicates\[0\]\.sources\[0\]: must be .*; received "10\.0\.0\.0\/99"$/,
      ),
      expect.stringMatching(/^gateway\.routes\[2\]\.predicates\[1\]\.patterns\[0\]: must be .*; received "a b"$/),
      'gateway.routes[4].id: must be unique; "api" is also the id of gateway.routes[3]',
    ])
  })

  it.each([{ routes: [] }, 'x', 7, null])('reject %j as routes', (value) => {
    const issues = noIssues()
    expect(readRoutes(value, 'gateway.routes', issues)).toBeUndefined()
    expect(issues.kept[0]?.message).toContain('must be a list of routes')
  })
})

it.each(['gateway.md', 'migrating.md'])('parses the examples in %s', (name) => {
  const page = readFileSync(new URL(`../../../docs/guide/${name}`, import.meta.url), 'utf8')
  const examples = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => parseDocument(text, 'yaml'))
  const routes = examples.flatMap((example) => (example as { gateway?: { routes?: unknown } }).gateway?.routes ?? [])
  expect(read(...routes)).not.toEqual([])
})

it('documents exactly the existing predicates and filters in the guide', () => {
  const page = readFileSync(new URL('../../../docs/guide/gateway.md', import.meta.url), 'utf8')
  const namesUnder = (title: string): string[] => {
    const [, table = ''] = page.split(`\n| ${title} | long form | `)
    const [rows = ''] = table.split('\n\n')
    return [...rows.matchAll(/^\| `([A-Za-z]+)[=`]/gm)].map(([, name = '']) => name)
  }
  expect(namesUnder('predicate')).toEqual(Object.keys(predicateNotations))
  expect(namesUnder('filter')).toEqual(Object.keys(filterNotations))
})
