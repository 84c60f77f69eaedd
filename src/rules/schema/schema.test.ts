import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { checkRuleSets, parseRuleSets } from './schema.js'

const rule = { id: 'r', bands: [{ capacity: 10, window: '1s' }] }
const mistakesIn = (document: unknown) =>
  checkRuleSets(document).errors.map(({ path, message }) => `${path}: ${message}`)
const errorOf = (document: unknown): FluxGateError => {
  try {
    parseRuleSets(document)
  } catch (error) {
    expect(error).toBeInstanceOf(FluxGateError)
    return error as FluxGateError
  }
  throw new Error('it parsed')
}

describe('a document', () => {
  it('is { ruleSets }, a list of rule sets, or one rule set', () => {
    const set = { id: 's', description: 'd', strategy: 'first', rules: [rule] }
    for (const document of [{ ruleSets: [set] }, [set], set]) {
      expect(parseRuleSets(document)).toMatchObject([
        { id: 's', description: 'd', strategy: 'first', rules: [{ id: 'r' }] },
      ])
    }
    expect(parseRuleSets({ ruleSets: [] })).toEqual([])
    expect(parseRuleSets([{ id: 's', rules: [] }])).toEqual([{ id: 's', strategy: 'all', rules: [] }])
  })

  it.each([null, undefined, 7, 'rules', true])('is not %j', (document) => {
    expect(mistakesIn(document)).toEqual([
      expect.stringMatching(
        /^ruleSets: found .*; allowed: \{ ruleSets: \[\.\.\.\] \}, a list of rule sets, or one rule set$/,
      ),
    ])
  })

  it('names the place of a mistake in each of its forms', () => {
    const set = { id: 's', rules: [rule, { id: 'q', bands: [{ capacity: 'ten', window: 1 }] }] }
    const mistake = 'ruleSets[0].rules[1].bands[0].capacity: found "ten"; allowed: a whole number from 1 to 1000000000'
    for (const document of [{ ruleSets: [set] }, [set], set]) expect(mistakesIn(document)).toEqual([mistake])
  })

  it('says what is missing, and what was meant', () => {
    expect(mistakesIn({})).toEqual(['ruleSets: found nothing; allowed: a list of rule sets'])
    expect(mistakesIn({ rulesets: [] })).toEqual([
      'rulesets: unknown field "rulesets"; did you mean ruleSets?',
      'ruleSets: found nothing; allowed: a list of rule sets',
    ])
    expect(mistakesIn({ id: 's' })).toEqual(['ruleSets[0].rules: found nothing; allowed: a list of rules'])
    expect(mistakesIn([5, { id: 's', strategy: 'ALL', rules: {}, rule: 1 }])).toEqual([
      'ruleSets[0]: found 5; allowed: a rule set: { id, rules }',
      'ruleSets[1].rule: unknown field "rule"; did you mean rules?',
      'ruleSets[1].strategy: found "ALL"; allowed: all, first',
      'ruleSets[1].rules: found an object; allowed: a list of rules',
    ])
  })

  it.each([
    ['limit_scope', 'limitScope'],
    ['limitscope', 'limitScope'],
    ['priorty', 'priority'],
    ['methods', 'method'],
    ['band', 'bands'],
    ['permit', 'permits'],
    ['on-limit-exceed', 'onLimitExceed'],
  ])('says that %s is probably %s', (wrong, right) => {
    expect(mistakesIn([{ id: 's', rules: [{ ...rule, [wrong]: 1 }] }])).toEqual([
      `ruleSets[0].rules[0].${wrong}: unknown field "${wrong}"; did you mean ${right}?`,
    ])
  })
  it('takes any number of globs with one star, and a hundred of others that start and end alike', () => {
    const rulesOf = (count: number, pathOf: (i: number) => string) => [
      {
        id: 's',
        rules: Array.from({ length: count }, (_, i) => ({
          id: `${i}`,
          path: pathOf(i),
          bands: [{ capacity: 1, window: '1s' }],
        })),
      },
    ]
    for (const pathOf of [
      (i: number) => `/x/a${i}*b`,
      (i: number) => `/x/*b${i}`,
      (i: number) => `/x/${i}?b`,
      (i: number) => `/x/{n${i}}b`,
      (i: number) => `/x${i}/*a*`,
    ])
      expect(mistakesIn(rulesOf(300, pathOf))).toEqual([])
    expect(mistakesIn(rulesOf(100, (i) => `/x/*${i}*`))).toEqual([])
    const [mistake, ...others] = mistakesIn(rulesOf(101, (i) => `/x/*${i}*`))
    expect(mistake).toContain('ruleSets[0].rules[100].path: found more than 100 globs like "*100*" in the same place')
    expect(others).toEqual([])
  })
  it('lists what is allowed when nothing is near', () => {
    expect(mistakesIn([{ id: 's', rules: [], zzz: 1 }])).toEqual([
      'ruleSets[0].zzz: unknown field "zzz"; allowed: id, description, strategy, caseSensitive, rules, version',
    ])
  })
})

describe('mistakes', () => {
  it('are all found at once, across fields too', () => {
    const document = {
      ruleSets: [
        {
          id: 'a',
          rules: [
            {
              id: 'x',
              limitScope: 'COMPOSITE',
              priority: 'high',
              bands: [{ capacity: 0, window: '1m', refillSeconds: 60 }],
            },
            {
              id: 'x',
              limitScope: 'CUSTOM',
              consistency: 'LEASED',
              algorithm: 'LEAKY_BUCKET',
              bands: [{ capacity: 1, window: 1, refill: 'INTERVAL', oops: 1 }],
            },
          ],
        },
        {
          id: 'a',
          rules: [
            { id: 'y', bands: [{ capacity: 1e9, refillTokens: 1, window: '366d', label: 'same' }, { label: 'same' }] },
          ],
        },
      ],
    }
    expect(checkRuleSets(document).errors.map(({ path }) => path)).toEqual([
      'ruleSets[0].rules[0].priority',
      'ruleSets[0].rules[0].compositeKeyFields',
      'ruleSets[0].rules[0].bands[0].capacity',
      'ruleSets[0].rules[0].bands[0].refillSeconds',
      'ruleSets[0].rules[1].keyField',
      'ruleSets[0].rules[1].bands[0].oops',
      'ruleSets[0].rules[1].bands[0].refill',
      'ruleSets[0].rules[1].consistency',
      'ruleSets[0].rules[1].id',
      'ruleSets[1].rules[0].bands[0].refillTokens',
      'ruleSets[1].rules[0].bands[1].capacity',
      'ruleSets[1].rules[0].bands[1].window',
      'ruleSets[1].rules[0].bands[1].label',
      'ruleSets[1].id',
    ])
    expect(checkRuleSets(document).ruleSets).toEqual([])
  })

  it('include ids that are used twice, of a rule in its set and of a set in the document', () => {
    expect(mistakesIn([{ id: 's', rules: [rule, { ...rule, id: 'q' }, rule] }])).toEqual([
      'ruleSets[0].rules[2].id: found "r", a duplicate of ruleSets[0].rules[0]; allowed: ids unique in the rule set',
    ])
    expect(
      mistakesIn([
        { id: 's', rules: [rule] },
        { id: 't', rules: [rule] },
        { id: 's', rules: [] },
      ]),
    ).toEqual(['ruleSets[2].id: found "s", a duplicate of ruleSets[0]; allowed: ids unique in the document'])
  })

  it('read as a sentence with a line for each', () => {
    const error = errorOf([{ id: 's', rules: [{ id: 'r' }, { id: '?', bands: 7 }] }])
    expect(error.code).toBe('FLUXGATE_RULES_INVALID')
    expect(error.message).toBe(
      [
        'The rules: 3 mistakes',
        '  ruleSets[0].rules[0].bands: found nothing; allowed: a list of 1 to 8 bands',
        '  ruleSets[0].rules[1].id: found "?"; allowed: 1 to 128 of letters, digits, . _ - :',
        '  ruleSets[0].rules[1].bands: found 7; allowed: a list of 1 to 8 bands',
      ].join('\n'),
    )
    expect(errorOf({}).message).toMatch(/^The rules: 1 mistake\n/)
  })

  it('are shown to the twentieth, and kept to the thousandth', () => {
    const wrong = (count: number) => [{ id: 's', rules: Array.from({ length: count }, () => 5) }]
    expect(errorOf(wrong(20)).message.split('\n')).toHaveLength(21)
    expect(errorOf(wrong(21)).message).toMatch(/\[19\]: found 5; [^\n]*\n {2}… and 1 more$/)
    expect(errorOf(wrong(1_000)).errors).toHaveLength(1_000)
    const error = errorOf(wrong(1_500))
    expect(error.errors).toHaveLength(1_000)
    expect(error.message).toMatch(/^The rules: 1500 mistakes\n(?:.*\n){20} {2}… and 1480 more$/)
  })

  it('never repeat more than a little of what was found, nor let it steer a terminal', () => {
    const [long] = mistakesIn([{ id: 'x'.repeat(1_000_000), rules: [] }])
    expect(long?.length).toBeLessThan(250)
    const [name] = mistakesIn([{ id: 's', rules: [], ['y'.repeat(1_000_000)]: 1 }])
    expect(name?.length).toBeLessThan(250)
    const [steering] = mistakesIn([{ id: '\u001b[2J\n\u009b1m\u202e\u2028', rules: [] }])
    expect(steering).toContain('found "\\u001b[2J\\n\\u009b1m\\u202e\\u2028"')
  })
})

describe('names that mean something to JavaScript', () => {
  it('are unknown fields like any other', () => {
    const document = JSON.parse(
      '{"ruleSets":[{"id":"s","__proto__":{"strategy":"first"},"rules":[{"id":"r","constructor":1,"toString":2,"bands":[{"capacity":1,"window":1,"__proto__":{"label":"x"}}]}]}],"__proto__":1}',
    )
    expect(checkRuleSets(document).errors.map(({ path, message }) => `${path}: ${message.slice(0, 13)}`)).toEqual([
      '__proto__: unknown field',
      'ruleSets[0].__proto__: unknown field',
      'ruleSets[0].rules[0].constructor: unknown field',
      'ruleSets[0].rules[0].toString: unknown field',
      'ruleSets[0].rules[0].bands[0].__proto__: unknown field',
    ])
  })

  it('are not found on what an object inherits', () => {
    const inherited = Object.create({ id: 's', rules: [] })
    expect(mistakesIn([inherited])).toHaveLength(2)
    expect(parseRuleSets([Object.assign(Object.create(null), { id: 's', rules: [rule] })])).toHaveLength(1)
  })
})
