import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { checkRuleSets, parseRuleSets } from './parse-rules.js'

const rule = { id: 'r', bands: [{ capacity: 10, window: '1s' }] }
const issuesIn = (document: unknown) => checkRuleSets(document).errors.map(({ path, message }) => `${path}: ${message}`)
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

  it.each([null, undefined, 7, 'rules', true])('must not be %j', (document) => {
    expect(issuesIn(document)).toEqual([
      expect.stringMatching(
        /^ruleSets: must be \{ ruleSets: \[\.\.\.\] \}, a list of rule sets, or one rule set; received .*$/,
      ),
    ])
  })

  it('reports the same path for an issue in each of its forms', () => {
    const set = { id: 's', rules: [rule, { id: 'q', bands: [{ capacity: 'ten', window: '1s' }] }] }
    const issue = 'ruleSets[0].rules[1].bands[0].capacity: must be an integer from 0 to 1000000000; received "ten"'
    for (const document of [{ ruleSets: [set] }, [set], set]) expect(issuesIn(document)).toEqual([issue])
  })

  it('reports missing fields and suggests corrections', () => {
    expect(issuesIn({})).toEqual(['ruleSets: must be a list of rule sets; received nothing'])
    expect(issuesIn({ rulesets: [] })).toEqual([
      'rulesets: unknown field "rulesets"; did you mean ruleSets?',
      'ruleSets: must be a list of rule sets; received nothing',
    ])
    expect(issuesIn({ id: 's' })).toEqual(['ruleSets[0].rules: must be a list of rules; received nothing'])
    expect(issuesIn([5, { id: 's', strategy: 'ALL', rules: {}, rule: 1 }])).toEqual([
      'ruleSets[0]: must be a rule set: { id, rules }; received 5',
      'ruleSets[1].rule: unknown field "rule"; did you mean rules?',
      'ruleSets[1].strategy: must be one of all, first; received "ALL"',
      'ruleSets[1].rules: must be a list of rules; received an object',
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
  ])('suggests for %s the field %s', (wrong, right) => {
    expect(issuesIn([{ id: 's', rules: [{ ...rule, [wrong]: 1 }] }])).toEqual([
      `ruleSets[0].rules[0].${wrong}: unknown field "${wrong}"; did you mean ${right}?`,
    ])
  })
  it('accepts any number of globs with one star, and up to 100 other globs with the same start and end', () => {
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
      expect(issuesIn(rulesOf(300, pathOf))).toEqual([])
    expect(issuesIn(rulesOf(100, (i) => `/x/*${i}*`))).toEqual([])
    const [issue, ...others] = issuesIn(rulesOf(101, (i) => `/x/*${i}*`))
    expect(issue).toContain(
      'ruleSets[0].rules[100].path: must be one of at most 100 similar globs; "*100*" exceeds the limit',
    )
    expect(others).toEqual([])
  })
  it('lists the allowed fields if none is similar', () => {
    expect(issuesIn([{ id: 's', rules: [], zzz: 1 }])).toEqual([
      'ruleSets[0].zzz: unknown field "zzz"; allowed: id, description, strategy, caseSensitive, candidateOf, rules, version',
    ])
  })
})

describe('issues', () => {
  it('are all reported at once, including those across fields', () => {
    const document = {
      ruleSets: [
        {
          id: 'a',
          rules: [
            {
              id: 'x',
              limitScope: 'COMPOSITE',
              priority: 'high',
              bands: [{ capacity: -1, window: '1m', refillSeconds: 60 }],
            },
            {
              id: 'x',
              limitScope: 'CUSTOM',
              consistency: 'LEASED',
              algorithm: 'LEAKY_BUCKET',
              bands: [{ capacity: 1, window: '1s', refill: 'INTERVAL', oops: 1 }],
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

  it('include duplicate rule ids in a set and duplicate set ids in a document', () => {
    expect(issuesIn([{ id: 's', rules: [rule, { ...rule, id: 'q' }, rule] }])).toEqual([
      'ruleSets[0].rules[2].id: must be unique in the rule set; received "r", which ruleSets[0].rules[0] already has',
    ])
    expect(
      issuesIn([
        { id: 's', rules: [rule] },
        { id: 't', rules: [rule] },
        { id: 's', rules: [] },
      ]),
    ).toEqual(['ruleSets[2].id: must be unique in the document; received "s", which ruleSets[0] already has'])
  })

  it('are listed in the message, one per line', () => {
    const error = errorOf([{ id: 's', rules: [{ id: 'r' }, { id: '?', bands: 7 }] }])
    expect(error.code).toBe('FLUXGATE_RULES_INVALID')
    expect(error.message).toBe(
      [
        'The rules: 3 errors',
        '  ruleSets[0].rules[0].bands: must be a list of 1 to 8 bands; received nothing',
        '  ruleSets[0].rules[1].id: must be 1 to 128 characters (letters, digits, . _ - :); received "?"',
        '  ruleSets[0].rules[1].bands: must be a list of 1 to 8 bands; received 7',
      ].join('\n'),
    )
    expect(errorOf({}).message).toMatch(/^The rules: 1 error\n/)
  })

  it('are limited to 20 in the message and to 1000 in errors', () => {
    const wrong = (count: number) => [{ id: 's', rules: Array.from({ length: count }, () => 5) }]
    expect(errorOf(wrong(20)).message.split('\n')).toHaveLength(21)
    expect(errorOf(wrong(21)).message).toMatch(/\[19\]: must be [^\n]*; received 5\n {2}… and 1 more$/)
    expect(errorOf(wrong(1_000)).errors).toHaveLength(1_000)
    const error = errorOf(wrong(1_500))
    expect(error.errors).toHaveLength(1_000)
    expect(error.message).toMatch(/^The rules: 1500 errors\n(?:.*\n){20} {2}… and 1480 more$/)
  })

  it('truncate received values and escape control characters', () => {
    const [long] = issuesIn([{ id: 'x'.repeat(1_000_000), rules: [] }])
    expect(long?.length).toBeLessThan(250)
    const [name] = issuesIn([{ id: 's', rules: [], ['y'.repeat(1_000_000)]: 1 }])
    expect(name?.length).toBeLessThan(250)
    const [steering] = issuesIn([{ id: '\u001b[2J\n\u009b1m\u202e\u2028', rules: [] }])
    expect(steering).toContain('received "\\u001b[2J\\n\\u009b1m\\u202e\\u2028"')
  })
})

describe('names with a meaning in JavaScript', () => {
  it('are reported as unknown fields', () => {
    const document = JSON.parse(
      '{"ruleSets":[{"id":"s","__proto__":{"strategy":"first"},"rules":[{"id":"r","constructor":1,"toString":2,"bands":[{"capacity":1,"window":"1s","__proto__":{"label":"x"}}]}]}],"__proto__":1}',
    )
    expect(checkRuleSets(document).errors.map(({ path, message }) => `${path}: ${message.slice(0, 13)}`)).toEqual([
      '__proto__: unknown field',
      'ruleSets[0].__proto__: unknown field',
      'ruleSets[0].rules[0].constructor: unknown field',
      'ruleSets[0].rules[0].toString: unknown field',
      'ruleSets[0].rules[0].bands[0].__proto__: unknown field',
    ])
  })

  it('are not read from inherited properties', () => {
    const inherited = Object.create({ id: 's', rules: [] })
    expect(issuesIn([inherited])).toHaveLength(2)
    expect(parseRuleSets([Object.assign(Object.create(null), { id: 's', rules: [rule] })])).toHaveLength(1)
  })
})
