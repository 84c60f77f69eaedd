import { describe, expect, it } from 'vitest'
import type { Band } from '../../../core/rule.js'
import { checkRuleSets, parseRuleSets } from '../parse-rules.js'

const document = (bands: unknown, rule: object = {}) => ({
  ruleSets: [{ id: 's', rules: [{ id: 'r', ...rule, bands }] }],
})
const bandsOf = (bands: unknown, rule?: object): readonly Band[] =>
  parseRuleSets(document(bands, rule))[0]?.rules[0]?.bands ?? []
const bandOf = (band: unknown, rule?: object) => bandsOf([band], rule)[0]
const issuesIn = (bands: unknown, rule?: object) =>
  checkRuleSets(document(bands, rule)).errors.map(({ path, message }) => `${path}: ${message}`)
const issuesInBand = (band: unknown, rule?: object) =>
  issuesIn([band], rule).map((issue) => issue.replace('ruleSets[0].rules[0].', ''))

describe('a band', () => {
  it('requires a capacity and a window, and applies defaults', () => {
    expect(bandOf({ capacity: 100, window: '1h' })).toEqual({
      label: '100-per-1h',
      algorithm: 'TOKEN_BUCKET',
      refill: 'STEADY',
      capacity: 100,
      refillTokens: 100,
      windowTicks: 3_600_000_000,
    })
    expect(issuesInBand({})).toEqual([
      'bands[0].capacity: must be an integer from 0 to 1000000000; received nothing',
      'bands[0].window: must be a duration from 1ms to 366d in whole microseconds (text with a unit such as 500ms, 1.5s, 1m, 2h, 30d, 1w or 1 minute); received nothing',
    ])
  })

  it.each([
    [{ window: '1m' }, 60_000_000],
    [{ window: '1 minute' }, 60_000_000],
    [{ windowMs: 60_000 }, 60_000_000],
    [{ windowMs: 0.5e3 }, 500_000],
    [{ windowMs: 1.001 }, 1_001],
    [{ window: '500ms' }, 500_000],
    [{ refillSeconds: 60 }, 60_000_000],
    [{ refillSeconds: 0.5 }, 500_000],
    [{ windowSeconds: 60 }, 60_000_000],
    [{ window: '1ms' }, 1_000],
    [{ window: '1w' }, 604_800_000_000],
    [{ window: '1.001ms' }, 1_001],
    [{ window: '366d' }, 31_622_400_000_000],
    [{ refillSeconds: 31_622_400 }, 31_622_400_000_000],
  ])('accepts %j as its window', (window, windowTicks) => {
    expect(bandOf({ capacity: 1, ...window })?.windowTicks).toBe(windowTicks)
  })

  it.each([
    ['window', '0.999ms'],
    ['window', '366.1d'],
    ['window', 'soon'],
    ['windowMs', 0.999],
    ['windowMs', 1.0005],
    ['windowMs', -1],
    ['windowMs', Number.NaN],
    ['windowMs', Number.POSITIVE_INFINITY],
    ['windowMs', '60000'],
    ['windowSeconds', 31_622_400.000001],
    ['window', null],
    ['refillSeconds', '1m'],
    ['refillSeconds', '60'],
    ['refillSeconds', 0],
    ['windowSeconds', '1m'],
    ['windowSeconds', 31_622_401],
  ])('rejects %s: %s', (name, value) => {
    expect(issuesInBand({ capacity: 1, [name]: value })).toEqual([
      expect.stringMatching(
        new RegExp(
          `^bands\\[0\\]\\.${name}: must be a (duration|number of (milli)?seconds) from 1ms to 366d in whole microseconds.*; received `,
        ),
      ),
    ])
  })

  it.each([
    [60_000, 'window: 60s, windowMs: 60000 or windowSeconds: 60'],
    ['60000', 'window: 60s, windowMs: 60000 or windowSeconds: 60'],
    [60, 'window: 60s, windowMs: 60000 or windowSeconds: 60'],
    [1_500, 'window: 1500ms, windowMs: 1500 or windowSeconds: 1.5'],
    [0.5, 'window: 500ms, windowMs: 500 or windowSeconds: 0.5'],
  ])('rejects a window without a unit, and names the spellings of %j that have one', (window, spellings) => {
    expect(issuesInBand({ capacity: 1, window })).toEqual([
      `bands[0].window: must have a unit; received ${JSON.stringify(window)}. Use one of ${spellings}`,
    ])
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e300])('rejects %s as its window', (window) => {
    expect(issuesInBand({ capacity: 1, window })).toEqual([`bands[0].window: must have a unit; received ${window}`])
  })

  it('rejects several aliases of window', () => {
    expect(issuesInBand({ capacity: 1, window: '1s', refillSeconds: 1, windowSeconds: 1 })).toEqual([
      'bands[0].windowSeconds: must not be combined with window, which means the same; use only one of window, windowMs, windowSeconds, refillSeconds',
      'bands[0].refillSeconds: must not be combined with window, which means the same; use only one of window, windowMs, windowSeconds, refillSeconds',
    ])
  })

  it.each([
    ['capacity', 0],
    ['refillTokens', 1],
  ] as const)('accepts integers up to 1 000 000 000 as its %s, from %i', (name, least) => {
    const band = (value: unknown) => ({ capacity: 1, window: '1s', [name]: value })
    expect(bandOf(band(1))).toMatchObject({ [name]: 1 })
    expect(bandOf(band(least))).toMatchObject({ [name]: least })
    expect(bandOf(band(1_000_000_000))).toMatchObject({ [name]: 1_000_000_000 })
    for (const wrong of [
      1_000_000_001,
      least - 1,
      1.5,
      '10',
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 60,
      true,
      null,
      [],
      {},
    ]) {
      const [issue, ...others] = issuesInBand(band(wrong))
      expect(issue).toContain(`: must be an integer from ${least} to 1000000000; received `)
      expect(issue).toContain(`bands[0].${name}: must be `)
      expect(others).toEqual([])
    }
  })

  it('defaults refillTokens to its capacity', () => {
    expect(bandOf({ capacity: 7, window: '1s' })?.refillTokens).toBe(7)
    expect(bandOf({ capacity: 7, refillTokens: 2, window: '1s' })?.refillTokens).toBe(2)
    expect(bandOf({ capacity: 0, window: '1s' })).toMatchObject({ refillTokens: 1, label: '0-per-1s' })
  })

  it('overrides the algorithm of its rule, ignoring case and separators', () => {
    const bands = [
      { capacity: 1, window: '1s' },
      { capacity: 2, window: '1s', algorithm: 'sliding-window_LOG' },
      { capacity: 3, window: '1s', algorithm: 'leakyBucket' },
    ]
    expect(bandsOf(bands, { algorithm: 'fixed-window' }).map(({ algorithm }) => algorithm)).toEqual([
      'FIXED_WINDOW',
      'SLIDING_WINDOW_LOG',
      'LEAKY_BUCKET',
    ])
    expect(issuesInBand({ capacity: 1, window: '1s', algorithm: 'TOKEN_BUKET' })).toEqual([
      'bands[0].algorithm: must be one of TOKEN_BUCKET, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_WINDOW_LOG, SLIDING_WINDOW_COUNTER, CONCURRENCY; received "TOKEN_BUKET"',
    ])
  })

  it('accepts INTERVAL only with TOKEN_BUCKET', () => {
    const band = { capacity: 1, window: '1s', refill: 'INTERVAL' }
    expect(bandOf(band)?.refill).toBe('INTERVAL')
    expect(bandOf({ ...band, algorithm: 'TOKEN_BUCKET' }, { algorithm: 'LEAKY_BUCKET' })?.refill).toBe('INTERVAL')
    expect(bandOf({ ...band, refill: 'STEADY' }, { algorithm: 'LEAKY_BUCKET' })?.refill).toBe('STEADY')
    expect(issuesInBand(band, { algorithm: 'LEAKY_BUCKET' })).toEqual([
      'bands[0].refill: must be STEADY with LEAKY_BUCKET; INTERVAL requires TOKEN_BUCKET',
    ])
    expect(issuesInBand({ ...band, refill: 'interval' })).toEqual([
      'bands[0].refill: must be one of STEADY, INTERVAL; received "interval"',
    ])
  })

  it('limits the capacity of SLIDING_WINDOW_LOG to 100 000', () => {
    const rule = { algorithm: 'SLIDING_WINDOW_LOG' }
    expect(bandOf({ capacity: 100_000, window: '1s' }, rule)?.capacity).toBe(100_000)
    expect(issuesInBand({ capacity: 100_001, window: '1s' }, rule)).toEqual([
      'bands[0].capacity: must be at most 100000 with SLIDING_WINDOW_LOG; received 100001',
    ])
    expect(bandOf({ capacity: 100_001, window: '1s' })?.capacity).toBe(100_001)
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET'])(
    'is rejected as %s if refilling takes too long for exact arithmetic',
    (algorithm) => {
      // 2²⁸ tokens at one per 2²⁴ µs take 2⁵² µs, the longest supported refill time.
      const band = { refillTokens: 1, refillSeconds: 16.777216 }
      expect(bandOf({ ...band, capacity: 268_435_456 }, { algorithm })?.capacity).toBe(268_435_456)
      expect(issuesInBand({ ...band, capacity: 268_435_457 }, { algorithm })).toEqual([
        'bands[0].refillTokens: must allow the bucket to refill within 142 years; received capacity 268435457 at 1 per 16777216us. Use a smaller capacity, more refillTokens or a shorter window',
      ])
      expect(bandOf({ capacity: 1_000_000_000, window: '366d' }, { algorithm })?.capacity).toBe(1_000_000_000)
    },
  )

  it('with a window algorithm has no refill time limit', () => {
    const band = { capacity: 1_000_000_000, refillTokens: 1, window: '366d', algorithm: 'FIXED_WINDOW' }
    expect(bandOf(band)?.windowTicks).toBe(31_622_400_000_000)
  })
})

describe('the list of bands', () => {
  const distinct = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ capacity: index + 1, window: '1s' }))

  it('has 1 to 8 bands', () => {
    expect(bandsOf(distinct(1))).toHaveLength(1)
    expect(bandsOf(distinct(8))).toHaveLength(8)
    expect(issuesIn(distinct(9))).toEqual([
      'ruleSets[0].rules[0].bands: must be a list of 1 to 8 bands; received a list of 9 items',
    ])
    expect(issuesIn([])).toEqual(['ruleSets[0].rules[0].bands: must be a list of 1 to 8 bands; received an empty list'])
    expect(issuesIn({ capacity: 1 })).toEqual([
      'ruleSets[0].rules[0].bands: must be a list of 1 to 8 bands; received an object',
    ])
    expect(issuesIn(undefined)).toEqual([
      'ruleSets[0].rules[0].bands: must be a list of 1 to 8 bands; received nothing',
    ])
    expect(issuesIn([10])).toEqual([
      'ruleSets[0].rules[0].bands[0]: must be a band: { capacity, window, … }; received 10',
    ])
  })
})

describe('labels', () => {
  const labels = (bands: unknown, rule?: object) => bandsOf(bands, rule).map(({ label }) => label)

  it('consist of letters, digits, . _ - and :', () => {
    expect(labels([{ capacity: 1, window: '1s', label: 'per-Hour_1.a:b' }])).toEqual(['per-Hour_1.a:b'])
    expect(labels([{ capacity: 1, window: '1s', label: 'x'.repeat(128) }])).toEqual(['x'.repeat(128)])
    for (const wrong of ['', 'x'.repeat(129), 'a b', 'a/b', 'é', 7, null]) {
      expect(issuesInBand({ capacity: 1, window: '1s', label: wrong })).toEqual([
        expect.stringMatching(
          /^bands\[0\]\.label: must be 1 to 128 characters \(letters, digits, \. _ - :\); received .*$/,
        ),
      ])
    }
  })

  it('default to capacity and window, independent of the order of bands', () => {
    const bands = [
      { capacity: 100, window: '1h' },
      { capacity: 5, window: '1s' },
      { capacity: 5, refillTokens: 1, window: '1s' },
      { capacity: 5, window: '1.5s' },
      { capacity: 5, window: '1.001ms' },
    ]
    const expected = ['100-per-1h', '5-per-1s', '5-refill-1-per-1s', '5-per-1500ms', '5-per-1001us']
    expect(labels(bands)).toEqual(expected)
    expect(labels(bands.toReversed())).toEqual(expected.toReversed())
  })

  it('default to distinct labels for bands that differ only in the algorithm', () => {
    const bands = [
      { capacity: 5, window: '1s' },
      { capacity: 5, window: '1s', algorithm: 'FIXED_WINDOW' },
      { capacity: 5, window: '1000ms', refill: 'INTERVAL' },
    ]
    const expected = ['5-per-1s-token-bucket', '5-per-1s-fixed-window', '5-per-1s-token-bucket-interval']
    expect(labels(bands)).toEqual(expected)
    expect(labels(bands.toReversed())).toEqual(expected.toReversed())
  })

  it('must be unique in a rule', () => {
    const place = 'ruleSets[0].rules[0].bands'
    const band = { capacity: 5, window: '1s' }
    expect(
      issuesIn([
        { ...band, label: 'a' },
        { ...band, label: 'b' },
        { capacity: 'x', label: 'a' },
      ]),
    ).toContain(`${place}[2].label: must be unique in the rule; received "a", which bands[0] already has`)
    expect(issuesIn([band, { capacity: 5, refillSeconds: 1 }])).toEqual([
      `${place}[1]: must have a label of its own: bands[0] already has the default label "5-per-1s"`,
    ])
    expect(issuesIn([band, { capacity: 9, window: '1s', label: '5-per-1s' }])).toEqual([
      `${place}[0]: must have a label of its own: bands[1] already has the default label "5-per-1s"`,
    ])
    expect(labels([{ ...band, label: 'a' }, band])).toEqual(['a', '5-per-1s'])
  })
})
