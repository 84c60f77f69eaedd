import { describe, expect, it } from 'vitest'
import type { Band } from '../../core/rule.js'
import { checkRuleSets, parseRuleSets } from './schema.js'

const document = (bands: unknown, rule: object = {}) => ({
  ruleSets: [{ id: 's', rules: [{ id: 'r', ...rule, bands }] }],
})
const bandsOf = (bands: unknown, rule?: object): readonly Band[] =>
  parseRuleSets(document(bands, rule))[0]?.rules[0]?.bands ?? []
const bandOf = (band: unknown, rule?: object) => bandsOf([band], rule)[0]
const mistakesIn = (bands: unknown, rule?: object) =>
  checkRuleSets(document(bands, rule)).errors.map(({ path, message }) => `${path}: ${message}`)
const mistakeIn = (band: unknown, rule?: object) =>
  mistakesIn([band], rule).map((mistake) => mistake.replace('ruleSets[0].rules[0].', ''))

describe('a band', () => {
  it('needs a capacity and a window, and fills in the rest', () => {
    expect(bandOf({ capacity: 100, window: '1h' })).toEqual({
      label: '100-per-1h',
      algorithm: 'TOKEN_BUCKET',
      refill: 'STEADY',
      capacity: 100,
      refillTokens: 100,
      windowTicks: 3_600_000_000,
    })
    expect(mistakeIn({})).toEqual([
      'bands[0].capacity: found nothing; allowed: a whole number from 1 to 1000000000',
      'bands[0].window: found nothing; allowed: a number of seconds, or text such as 500ms, 1.5s, 1m, 2h, 30d, from 1 ms to 366 days in whole microseconds',
    ])
  })

  it.each([
    [{ window: '1m' }, 60_000_000],
    [{ window: 60 }, 60_000_000],
    [{ window: 0.5 }, 500_000],
    [{ window: '500ms' }, 500_000],
    [{ refillSeconds: 60 }, 60_000_000],
    [{ refillSeconds: 0.5 }, 500_000],
    [{ windowSeconds: 60 }, 60_000_000],
    [{ window: '1ms' }, 1_000],
    [{ window: 0.001 }, 1_000],
    [{ window: '1.001ms' }, 1_001],
    [{ window: '366d' }, 31_622_400_000_000],
    [{ refillSeconds: 31_622_400 }, 31_622_400_000_000],
  ])('takes %j as its window', (window, windowTicks) => {
    expect(bandOf({ capacity: 1, ...window })?.windowTicks).toBe(windowTicks)
  })

  it.each([
    ['window', '0.999ms'],
    ['window', 0.000999],
    ['window', 0.0010005],
    ['window', '366.1d'],
    ['window', 31_622_400.000001],
    ['window', 'soon'],
    ['window', '60'],
    ['window', 0],
    ['window', -1],
    ['window', Number.NaN],
    ['window', Number.POSITIVE_INFINITY],
    ['window', null],
    ['refillSeconds', '1m'],
    ['refillSeconds', '60'],
    ['refillSeconds', 0],
    ['windowSeconds', '1m'],
    ['windowSeconds', 31_622_401],
  ])('refuses %s: %s', (name, value) => {
    expect(mistakeIn({ capacity: 1, [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^bands\\[0\\]\\.${name}: found .*; allowed: a number of seconds`)),
    ])
  })

  it('takes its window in one spelling only', () => {
    expect(mistakeIn({ capacity: 1, window: '1s', refillSeconds: 1, windowSeconds: 1 })).toEqual([
      'bands[0].refillSeconds: found beside window, which means the same; allowed: only one of window, refillSeconds, windowSeconds',
      'bands[0].windowSeconds: found beside window, which means the same; allowed: only one of window, refillSeconds, windowSeconds',
    ])
  })

  it.each(['capacity', 'refillTokens'])('takes 1 to 1 000 000 000 as its %s', (name) => {
    const band = (value: unknown) => ({ capacity: 1, window: '1s', [name]: value })
    expect(bandOf(band(1))).toMatchObject({ [name]: 1 })
    expect(bandOf(band(1_000_000_000))).toMatchObject({ [name]: 1_000_000_000 })
    for (const wrong of [
      0,
      1_000_000_001,
      -1,
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
      const [mistake, ...others] = mistakeIn(band(wrong))
      expect(mistake).toMatch(/; allowed: a whole number from 1 to 1000000000$/)
      expect(mistake).toContain(`bands[0].${name}: found `)
      expect(others).toEqual([])
    }
  })

  it('refills as much as it holds unless it says otherwise', () => {
    expect(bandOf({ capacity: 7, window: 1 })?.refillTokens).toBe(7)
    expect(bandOf({ capacity: 7, refillTokens: 2, window: 1 })?.refillTokens).toBe(2)
  })

  it('overrides the algorithm of its rule, in any spelling', () => {
    const bands = [
      { capacity: 1, window: 1 },
      { capacity: 2, window: 1, algorithm: 'sliding-window_LOG' },
      { capacity: 3, window: 1, algorithm: 'leakyBucket' },
    ]
    expect(bandsOf(bands, { algorithm: 'fixed-window' }).map(({ algorithm }) => algorithm)).toEqual([
      'FIXED_WINDOW',
      'SLIDING_WINDOW_LOG',
      'LEAKY_BUCKET',
    ])
    expect(mistakeIn({ capacity: 1, window: 1, algorithm: 'TOKEN_BUKET' })).toEqual([
      'bands[0].algorithm: found "TOKEN_BUKET"; allowed: TOKEN_BUCKET, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_WINDOW_LOG, SLIDING_WINDOW_COUNTER',
    ])
  })

  it('refills at intervals only as a token bucket', () => {
    const band = { capacity: 1, window: 1, refill: 'INTERVAL' }
    expect(bandOf(band)?.refill).toBe('INTERVAL')
    expect(bandOf({ ...band, algorithm: 'TOKEN_BUCKET' }, { algorithm: 'LEAKY_BUCKET' })?.refill).toBe('INTERVAL')
    expect(bandOf({ ...band, refill: 'STEADY' }, { algorithm: 'LEAKY_BUCKET' })?.refill).toBe('STEADY')
    expect(mistakeIn(band, { algorithm: 'LEAKY_BUCKET' })).toEqual([
      'bands[0].refill: found INTERVAL on LEAKY_BUCKET; allowed: INTERVAL on TOKEN_BUCKET only',
    ])
    expect(mistakeIn({ ...band, refill: 'interval' })).toEqual([
      'bands[0].refill: found "interval"; allowed: STEADY, INTERVAL',
    ])
  })

  it('holds at most 100 000 as a sliding log', () => {
    const rule = { algorithm: 'SLIDING_WINDOW_LOG' }
    expect(bandOf({ capacity: 100_000, window: 1 }, rule)?.capacity).toBe(100_000)
    expect(mistakeIn({ capacity: 100_001, window: 1 }, rule)).toEqual([
      'bands[0].capacity: found 100001; allowed: 1 to 100000 on SLIDING_WINDOW_LOG',
    ])
    expect(bandOf({ capacity: 100_001, window: 1 })?.capacity).toBe(100_001)
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET'])(
    'is refused as %s when it would take too long to fill to be exact',
    (algorithm) => {
      // 2²⁸ tokens at one per 2²⁴ µs are 2⁵² µs, the longest fill there is.
      const band = { refillTokens: 1, refillSeconds: 16.777216 }
      expect(bandOf({ ...band, capacity: 268_435_456 }, { algorithm })?.capacity).toBe(268_435_456)
      expect(mistakeIn({ ...band, capacity: 268_435_457 }, { algorithm })).toEqual([
        'bands[0].refillTokens: a band that cannot be exact: 268435457 at 1 per 16777216us take longer than 142 years to fill; allowed: a smaller capacity, more refillTokens or a shorter window',
      ])
      expect(bandOf({ capacity: 1_000_000_000, window: '366d' }, { algorithm })?.capacity).toBe(1_000_000_000)
    },
  )

  it('of a window never takes longer than its window, whatever refillTokens says', () => {
    const band = { capacity: 1_000_000_000, refillTokens: 1, window: '366d', algorithm: 'FIXED_WINDOW' }
    expect(bandOf(band)?.windowTicks).toBe(31_622_400_000_000)
  })
})

describe('the list of bands', () => {
  const distinct = (count: number) => Array.from({ length: count }, (_, index) => ({ capacity: index + 1, window: 1 }))

  it('has 1 to 8 of them', () => {
    expect(bandsOf(distinct(1))).toHaveLength(1)
    expect(bandsOf(distinct(8))).toHaveLength(8)
    expect(mistakesIn(distinct(9))).toEqual([
      'ruleSets[0].rules[0].bands: found a list of 9; allowed: a list of 1 to 8 bands',
    ])
    expect(mistakesIn([])).toEqual(['ruleSets[0].rules[0].bands: found an empty list; allowed: a list of 1 to 8 bands'])
    expect(mistakesIn({ capacity: 1 })).toEqual([
      'ruleSets[0].rules[0].bands: found an object; allowed: a list of 1 to 8 bands',
    ])
    expect(mistakesIn(undefined)).toEqual([
      'ruleSets[0].rules[0].bands: found nothing; allowed: a list of 1 to 8 bands',
    ])
    expect(mistakesIn([10])).toEqual([
      'ruleSets[0].rules[0].bands[0]: found 10; allowed: a band: { capacity, window, … }',
    ])
  })
})

describe('labels', () => {
  const labels = (bands: unknown, rule?: object) => bandsOf(bands, rule).map(({ label }) => label)

  it('are letters, digits, . _ - and :', () => {
    expect(labels([{ capacity: 1, window: 1, label: 'per-Hour_1.a:b' }])).toEqual(['per-Hour_1.a:b'])
    expect(labels([{ capacity: 1, window: 1, label: 'x'.repeat(128) }])).toEqual(['x'.repeat(128)])
    for (const wrong of ['', 'x'.repeat(129), 'a b', 'a/b', 'é', 7, null]) {
      expect(mistakeIn({ capacity: 1, window: 1, label: wrong })).toEqual([
        expect.stringMatching(/^bands\[0\]\.label: found .*; allowed: 1 to 128 of letters, digits, \. _ - :$/),
      ])
    }
  })

  it('left out say what the band is, the same whichever order the bands have', () => {
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

  it('left out tell bands apart that differ in the algorithm alone', () => {
    const bands = [
      { capacity: 5, window: '1s' },
      { capacity: 5, window: 1, algorithm: 'FIXED_WINDOW' },
      { capacity: 5, window: '1000ms', refill: 'INTERVAL' },
    ]
    const expected = ['5-per-1s-token-bucket', '5-per-1s-fixed-window', '5-per-1s-token-bucket-interval']
    expect(labels(bands)).toEqual(expected)
    expect(labels(bands.toReversed())).toEqual(expected.toReversed())
  })

  it('are a mistake when two bands would share them', () => {
    const place = 'ruleSets[0].rules[0].bands'
    const band = { capacity: 5, window: '1s' }
    expect(
      mistakesIn([
        { ...band, label: 'a' },
        { ...band, label: 'b' },
        { capacity: 'x', label: 'a' },
      ]),
    ).toContain(`${place}[2].label: found "a", a duplicate of bands[0]; allowed: labels unique in the rule`)
    expect(mistakesIn([band, { capacity: 5, refillSeconds: 1 }])).toEqual([
      `${place}[1]: a duplicate of bands[0]: without a label of its own it is "5-per-1s" too; allowed: one band per label`,
    ])
    expect(mistakesIn([band, { capacity: 9, window: 1, label: '5-per-1s' }])).toEqual([
      `${place}[0]: a duplicate of bands[1]: without a label of its own it is "5-per-1s" too; allowed: one band per label`,
    ])
    expect(labels([{ ...band, label: 'a' }, band])).toEqual(['a', '5-per-1s'])
  })
})
