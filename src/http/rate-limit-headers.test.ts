import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
import type { HeaderChoice } from './header-dialects.js'
import { headerChoice } from './option-kinds.js'
import { earlierHeaders, mergeHeaders, RateLimitHeaders } from './rate-limit-headers.js'

const rateLimitHeaders = (decision: Decision, choice: HeaderChoice, nowMs: number): Record<string, string> =>
  new RateLimitHeaders(choice).of(decision, nowMs)

const now = 1_700_000_000_250

const burst: BandDecision = {
  ruleId: 'api',
  label: 'burst',
  key: 'ip:203.0.113.7',
  limit: 5,
  remaining: 3,
  resetAt: now + 400,
  retryAfterMs: 0,
  allowed: true,
  shadow: false,
  windowMs: 1_000,
}
const hourly: BandDecision = {
  ...burst,
  label: '100-per-1h',
  limit: 100,
  remaining: 2,
  resetAt: now + 90_001,
  windowMs: 3_600_000,
}

const allowed: Decision = {
  allowed: true,
  delayMs: 0,
  reason: 'ALLOWED',
  ruleSetId: 'default',
  ruleId: 'api',
  band: '100-per-1h',
  key: 'ip:203.0.113.7',
  limit: 100,
  remaining: 2,
  retryAfterMs: 0,
  resetAt: now + 90_001,
  policy: 'REJECT',
  decidedAt: 0,
  degraded: false,
  bands: [burst, hourly],
}
const rejected: Decision = {
  ...allowed,
  allowed: false,
  reason: 'LIMITED',
  remaining: 0,
  retryAfterMs: 35_100,
  bands: [burst, { ...hourly, allowed: false, remaining: 0, retryAfterMs: 35_100 }],
}

describe('headers of an allowed request', () => {
  it('list all policies, and describe the deciding band', () => {
    expect(rateLimitHeaders(allowed, 'both', now)).toEqual({
      'RateLimit-Policy': '"api.burst";q=5;w=1, "api.100-per-1h";q=100;w=3600',
      RateLimit: '"api.100-per-1h";r=2;t=91',
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '2',
      'X-RateLimit-Reset': '1700000091',
    })
  })

  it('are limited to the chosen kind', () => {
    expect(Object.keys(rateLimitHeaders(allowed, 'standard', now))).toEqual(['RateLimit-Policy', 'RateLimit'])
    expect(Object.keys(rateLimitHeaders(allowed, 'legacy', now))).toEqual([
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
    ])
    expect(rateLimitHeaders(allowed, false, now)).toEqual({})
  })

  it.each<[HeaderChoice, Record<string, string>]>([
    [
      'draft-6',
      {
        'RateLimit-Policy': '5;w=1, 100;w=3600',
        'RateLimit-Limit': '100',
        'RateLimit-Remaining': '2',
        'RateLimit-Reset': '91',
      },
    ],
    [
      ['draft-7', 'legacy'],
      {
        'RateLimit-Policy': '5;w=1, 100;w=3600',
        RateLimit: 'limit=100, remaining=2, reset=91',
        'X-RateLimit-Limit': '100',
        'X-RateLimit-Remaining': '2',
        'X-RateLimit-Reset': '1700000091',
      },
    ],
    ['legacy-seconds', { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '2', 'X-RateLimit-Reset': '91' }],
  ])('follow the dialect %j', (choice, headers) => {
    expect(rateLimitHeaders(allowed, choice, now)).toEqual(headers)
    const { 'Retry-After': retryAfter, ...others } = rateLimitHeaders(rejected, choice, now)
    expect([retryAfter, Object.keys(others)]).toEqual(['36', Object.keys(headers)])
  })

  it.each<HeaderChoice>(['both', ['standard', 'legacy']])('are the same for %j', (choice) => {
    expect(rateLimitHeaders(allowed, choice, now)).toEqual(rateLimitHeaders(allowed, 'both', now))
  })

  it.each([
    [90_000, 't=90', '1700000091'],
    [89_750, 't=90', '1700000090'],
    [89_751, 't=90', '1700000091'],
    [1, 't=1', '1700000001'],
    [0, 't=0', '1700000001'],
    [-5_000, 't=0', '1699999996'],
  ])('round up what is %d ms away', (ms, t, reset) => {
    const headers = rateLimitHeaders({ ...allowed, resetAt: now + ms }, 'both', now)
    expect([headers.RateLimit?.split(';').at(-1), headers['X-RateLimit-Reset']]).toEqual([t, reset])
  })

  it('do not add a second for a time that was rounded up to the next millisecond', () => {
    const resetAt = Math.ceil(now + 0.3 + 2_000)
    expect(rateLimitHeaders({ ...allowed, resetAt }, 'standard', now + 0.3).RateLimit).toMatch(/;t=2$/)
    expect(rateLimitHeaders({ ...rejected, retryAfterMs: 2_000 }, 'standard', now + 0.3).RateLimit).toMatch(/;t=2$/)
  })

  it('round up windows that are not whole seconds', () => {
    const bands = [
      { ...burst, windowMs: 500 },
      { ...hourly, windowMs: 1_001 },
    ]
    expect(rateLimitHeaders({ ...allowed, bands }, 'standard', now)['RateLimit-Policy']).toBe(
      '"api.burst";q=5;w=1, "api.100-per-1h";q=100;w=2',
    )
  })

  it('do not list shadow bands', () => {
    const bands = [{ ...burst, shadow: true }, hourly]
    expect(rateLimitHeaders({ ...allowed, bands }, 'standard', now)['RateLimit-Policy']).toBe(
      '"api.100-per-1h";q=100;w=3600',
    )
  })

  it('are absent where no band applied', () => {
    expect(rateLimitHeaders(unmeteredDecision(true, 'NO_RULE', now), 'both', now)).toEqual({})
    const shadows = { ...allowed, ruleId: null, band: null, key: null, limit: -1, remaining: -1 }
    expect(rateLimitHeaders({ ...shadows, bands: [{ ...burst, shadow: true }] }, 'both', now)).toEqual({})
  })

  it('are valid for any rule name', () => {
    const decision = {
      ...allowed,
      ruleId: 'a"b\\c',
      band: 'é\n€',
      bands: [{ ...hourly, ruleId: 'a"b\\c', label: 'é\n€' }],
    }
    const headers = rateLimitHeaders(decision, 'standard', now)
    expect(headers.RateLimit).toBe('"a\\"b\\\\c.%C3%A9%0A%E2%82%AC";r=2;t=91')
    expect(headers['RateLimit-Policy']).toBe('"a\\"b\\\\c.%C3%A9%0A%E2%82%AC";q=100;w=3600')
  })
})

describe('headers of a rejected request', () => {
  it('agree on the time after which a retry is allowed', () => {
    expect(rateLimitHeaders(rejected, 'both', now)).toEqual({
      'RateLimit-Policy': '"api.burst";q=5;w=1, "api.100-per-1h";q=100;w=3600',
      RateLimit: '"api.100-per-1h";r=0;t=36',
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': '1700000036',
      'Retry-After': '36',
    })
  })

  it.each([
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [0, '1'],
  ])('with %d ms to wait, set Retry-After to %s s', (retryAfterMs, seconds) => {
    expect(rateLimitHeaders({ ...rejected, retryAfterMs }, 'both', now)['Retry-After']).toBe(seconds)
  })

  it.each([
    [0, '1700000060', 't=60'],
    [100, '1700000060', 't=60'],
    [101, '1700000061', 't=60'],
  ])('name the end of the window if they are written %d ms after the decision', (ageMs, reset, t) => {
    const decision = { ...rejected, resetAt: 1_700_000_060_000, retryAfterMs: 59_750 }
    const headers = rateLimitHeaders(decision, 'both', now + ageMs)
    expect([headers['X-RateLimit-Reset'], headers.RateLimit?.split(';').at(-1)]).toEqual([reset, t])
    expect(headers['Retry-After']).toBe('60')
  })

  it('have no Retry-After for a request that can never succeed', () => {
    const headers = rateLimitHeaders({ ...rejected, reason: 'IMPOSSIBLE', retryAfterMs: null }, 'both', now)
    expect(headers).toMatchObject({ RateLimit: '"api.100-per-1h";r=0;t=91', 'X-RateLimit-Reset': '1700000091' })
    expect(headers).not.toHaveProperty('Retry-After')
  })

  it('include Retry-After if rate limit headers are off, or no band was charged', () => {
    expect(rateLimitHeaders(rejected, false, now)).toEqual({ 'Retry-After': '36' })
    const failing = unmeteredDecision(false, 'STORE_FAILURE', now, { retryAfterMs: 1_000 })
    expect(rateLimitHeaders(failing, 'both', now)).toEqual({ 'Retry-After': '1' })
  })
})

describe('headers of several limits', () => {
  const merged = (choice: HeaderChoice, first: number, second: number) => {
    const [one, other] = [first, second].map((remaining) => rateLimitHeaders({ ...allowed, remaining }, choice, now))
    return { ...one, ...mergeHeaders(other ?? {}, earlierHeaders(one ?? {}), false) }
  }

  it.each<[HeaderChoice, string]>([
    ['standard', 'RateLimit'],
    ['draft-7', 'RateLimit'],
    ['draft-6', 'RateLimit-Remaining'],
    ['legacy', 'X-RateLimit-Remaining'],
    ['legacy-seconds', 'X-RateLimit-Remaining'],
  ])('describe the one with the fewest remaining permits: %s', (choice, name) => {
    const fewest = rateLimitHeaders({ ...allowed, remaining: 1 }, choice, now)[name]
    expect([merged(choice, 1, 2)[name], merged(choice, 2, 1)[name]]).toEqual([fewest, fewest])
  })
})

describe('a choice of headers', () => {
  it.each(['both', false, 'draft-6', 'legacy-seconds', ['draft-7'], ['standard', 'legacy']])(
    '%j is valid',
    (choice) => {
      expect(headerChoice.parse(choice)).toEqual(choice)
    },
  )

  it.each([
    true,
    'draft-8',
    [],
    ['both'],
    ['standard', 'draft-6'],
    ['legacy', 'legacy-seconds'],
    'legacy,draft-5',
    null,
  ])('%j is not valid', (choice) => {
    expect(headerChoice.parse(choice)).toBeUndefined()
  })

  it('may be a list in an environment variable', () => {
    expect(headerChoice.parse('draft-6, legacy')).toEqual(['draft-6', 'legacy'])
  })
})

it('are written for each policy of a rule whose bands change, and again after a change back', () => {
  const headers = new RateLimitHeaders('standard')
  const changed = { ...allowed, limit: 50, bands: [burst, { ...hourly, limit: 50 }] }
  for (let i = 0; i < 2; i++) {
    expect(headers.of(allowed, now)['RateLimit-Policy']).toBe('"api.burst";q=5;w=1, "api.100-per-1h";q=100;w=3600')
    expect(headers.of(changed, now)['RateLimit-Policy']).toBe('"api.burst";q=5;w=1, "api.100-per-1h";q=50;w=3600')
  }
})

it('are correct for more policies than are cached', () => {
  const headers = new RateLimitHeaders('standard')
  const nameOf = (i: number) => headers.of({ ...allowed, ruleId: `rule-${i}` }, now).RateLimit
  for (let i = 0; i < 2_500; i++) expect(nameOf(i)).toBe(`"rule-${i}.100-per-1h";r=2;t=91`)
  expect(nameOf(0)).toBe('"rule-0.100-per-1h";r=2;t=91')
})
