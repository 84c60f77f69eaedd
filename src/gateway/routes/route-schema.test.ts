import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../rules/document/document.js'
import { noMistakes } from '../../validation/issues.js'
import { filterForms } from './filters.js'
import { predicateForms } from './predicate-schema.js'
import { type RouteDefinition, readRoutes } from './route-schema.js'

function read(...routes: unknown[]): readonly RouteDefinition[] {
  const mistakes = noMistakes()
  const result = readRoutes(routes, 'gateway.routes', mistakes)
  expect(mistakes.kept).toEqual([])
  return result ?? []
}

function mistakesOf(...routes: unknown[]): string[] {
  const mistakes = noMistakes()
  readRoutes(routes, 'gateway.routes', mistakes)
  return mistakes.kept.map(({ path, message }) => `${path}: ${message}`)
}

const base = { id: 'api', uri: 'http://127.0.0.1:3000' }
const withFilter = (filter: unknown) => ({ ...base, filters: [filter] })

describe('where a route leads', () => {
  it.each([
    ['http://localhost', { isSecure: false, hostname: 'localhost', port: 80, authority: 'localhost' }],
    ['https://[::1]:8443/', { isSecure: true, hostname: '::1', port: 8443, authority: '[::1]:8443' }],
    ['wss://Example.org', { isSecure: true, hostname: 'example.org', port: 443, authority: 'example.org' }],
  ])('is read from %s', (uri, origin) => {
    expect(read({ id: 'x', uri })[0]?.origin).toEqual(origin)
  })

  it.each(['localhost:80', 'lb://service', 'http://a/path', 'http://u:secret@a', 'http://a?q', ''])(
    'is not %j, and nothing of it is shown',
    (uri) => {
      expect(mistakesOf({ id: 'x', uri })).toEqual([
        'gateway.routes[0].uri: not understood; allowed: http://host:port or https://host:port, without a path',
      ])
    },
  )
})

describe('time-outs of a route', () => {
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

  it('are told to be mistaken', () => {
    const allowed = 'allowed: a whole number of milliseconds, or text such as 500ms, 1.5s, 1m, from 1 ms to 1 d'
    expect(mistakesOf({ ...base, metadata: { 'connect-timeout': 0, 'response-timeout': '2d' } })).toEqual([
      `gateway.routes[0].metadata.connectTimeout: found 0; ${allowed}`,
      `gateway.routes[0].metadata.responseTimeout: found "2d"; ${allowed}`,
    ])
    expect(mistakesOf({ ...base, metadata: { timeout: 1 } })).toHaveLength(1)
  })
})

describe('paths', () => {
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
  ])('%j makes of %s %s', (filter, path, expected) => {
    expect(changed(filter, path)).toBe(expected)
  })
})

describe('a RateLimiter', () => {
  const limitsOf = (filter: unknown) => read(withFilter(filter))[0]?.limits

  it('names a rule set', () => {
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
  ])('has a rule of its own, counted by %s', (keyResolver, keys) => {
    const args = { algorithm: 'sliding-window-log', bands: [{ capacity: 5, window: '1m' }], keyResolver }
    expect(limitsOf({ name: 'RateLimiter', args })).toMatchObject([
      { kind: 'RULE', rule: { ...keys, bands: [{ algorithm: 'SLIDING_WINDOW_LOG', capacity: 5 }] } },
    ])
  })

  it('may be spelt in kebab-case, and with a single band', () => {
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

describe('mistakes', () => {
  it('are told all at once, each with its place', () => {
    const found = mistakesOf(
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
          { name: 'RateLimiter', args: { bands: [{ capacity: 0, window: '1m' }], keyResolver: 'cookie' } },
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
    expect(found).toEqual([
      `${at}.order: unknown field "order"; allowed: id, uri, predicates, filters, metadata`,
      `${at}.id: found "a b"; allowed: 1 to 128 of letters, digits, . _ - :`,
      `${at}.uri: found 7; allowed: http://host:port or https://host:port, without a path`,
      `${at}.predicates[0]: found "Pfad"; allowed: Path, Method, Host, Header, Query, RemoteAddr`,
      expect.stringMatching(/^gateway\.routes\[0\]\.predicates\[1\]\.patterns\[0\]: found "x"; allowed: a pattern/),
      `${at}.predicates[2].args.methods[1]: found "?"; allowed: an HTTP method such as GET`,
      `${at}.predicates[3]: found 5; allowed: text such as Path=…, or { name, args }`,
      `${at}.predicates[4].header: found ""; allowed: the name of a header`,
      `${at}.predicates[5].regexp: found "("; allowed: a regular expression`,
      `${at}.filters[0].parts: found "none"; allowed: a whole number from 1 to 100`,
      `${at}.filters[1].args.replacment: unknown field "replacment"; did you mean replacement?`,
      `${at}.filters[1].args.regexp: found "("; allowed: a regular expression`,
      expect.stringContaining(`${at}.filters[1].args.replacement: found nothing; allowed: `),
      expect.stringContaining(`${at}.filters[2].args.name: found "Connection"; allowed: `),
      `${at}.filters[2].args.value: not understood; allowed: text of printable characters, at most 8192`,
      `${at}.filters[3].args.keyResolver: found "cookie"; allowed: ip, user, apiKey, or header.x`,
      `${at}.filters[3].args.bands[0].capacity: found 0; allowed: a whole number from 1 to 1000000000`,
      `${at}.filters[4].args.capacity: found beside ruleSet; allowed: in a rule of that set`,
      `${at}.filters[5].ruleSet: found ""; allowed: 1 to 128 of letters, digits, . _ - :`,
      'gateway.routes[1].predicates: found an object; allowed: a list',
      expect.stringContaining('gateway.routes[2].predicates[0].sources[0]: found "10.0.0.0/99"; allowed: '),
      expect.stringContaining('gateway.routes[2].predicates[1].patterns[0]: found "a b"; allowed: '),
      'gateway.routes[4].id: found "api", a duplicate of gateway.routes[3]; allowed: unique ids',
    ])
  })

  it.each([{ routes: [] }, 'x', 7, null])('are routes that are %j', (value) => {
    const mistakes = noMistakes()
    expect(readRoutes(value, 'gateway.routes', mistakes)).toBeUndefined()
    expect(mistakes.kept[0]?.message).toContain('allowed: a list of routes')
  })
})

it.each(['gateway.md', 'migrating.md'])('has examples in %s that can be read', (name) => {
  const page = readFileSync(new URL(`../../../docs/guide/${name}`, import.meta.url), 'utf8')
  const examples = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => parseDocument(text, 'yaml'))
  const routes = examples.flatMap((example) => (example as { gateway?: { routes?: unknown } }).gateway?.routes ?? [])
  expect(read(...routes)).not.toEqual([])
})

it('has a guide that lists every predicate and every filter, and no other', () => {
  const page = readFileSync(new URL('../../../docs/guide/gateway.md', import.meta.url), 'utf8')
  const namesUnder = (title: string): string[] => {
    const [, table = ''] = page.split(`\n| ${title} | long form | `)
    const [rows = ''] = table.split('\n\n')
    return [...rows.matchAll(/^\| `([A-Za-z]+)[=`]/gm)].map(([, name = '']) => name)
  }
  expect(namesUnder('predicate')).toEqual(Object.keys(predicateForms))
  expect(namesUnder('filter')).toEqual(Object.keys(filterForms))
})
