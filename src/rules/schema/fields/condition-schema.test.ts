import { describe, expect, it } from 'vitest'
import type { Rule } from '../../../core/rule.js'
import { checkRuleSets, parseRuleSets } from '../parse-rules.js'

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

describe('when', () => {
  it('converts every value to a string, and lists to alternatives', () => {
    const when = {
      'attributes.tier': 'premium',
      'attributes.level': [1, 2.5, true, 1, '1'],
      'header.X-App': ['ios', 'android'],
      'path.id': '7',
      clientIp: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1', '::1'],
      userId: 42,
      apiKey: '',
      method: ['get', 'POST'],
    }
    expect(ruleOf({ when }).when).toEqual([
      { field: 'attributes.tier', values: ['premium'] },
      { field: 'attributes.level', values: ['1', '2.5', 'true'] },
      { field: 'header.x-app', values: ['ios', 'android'] },
      { field: 'path.id', values: ['7'] },
      { field: 'clientIp', values: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1', '::1'] },
      { field: 'userId', values: ['42'] },
      { field: 'apiKey', values: [''] },
      { field: 'method', values: ['GET', 'POST'] },
    ])
  })

  it.each([
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0/8',
    '10.0.0.0/08',
    '10.0.0.0/',
    '/8',
    'fe80::1%eth0',
    'localhost',
    '',
    10,
  ])('rejects the address %j', (clientIp) => {
    expect(issuesIn({ when: { clientIp } })).toEqual([
      expect.stringMatching(
        /^when\.clientIp: must be an IP address, or a range such as 10\.0\.0\.0\/8 or .*; received /,
      ),
    ])
  })
  it.each(['10.0.0.0/32', '0.0.0.0/0', '2001:db8::/128', '::/0', '::ffff:10.0.0.1'])(
    'accepts the address %s',
    (clientIp) => {
      expect(ruleOf({ when: { clientIp } }).when).toEqual([{ field: 'clientIp', values: [clientIp] }])
    },
  )

  it('reports each invalid condition', () => {
    const fields = 'attributes.x, header.x, path.x, clientIp, userId, apiKey, method'
    const value = 'a string of at most 1024 characters, a number, true or false'
    expect(
      issuesIn({
        when: {
          tier: 'premium',
          'attributes.': 'x',
          'attributes.tier': null,
          'attributes.plan': ['a', {}, Number.NaN],
          'attributes.none': [],
          'attributes.long': 'x'.repeat(1_025),
          'header.a': 1,
          'header.A': 1,
          ['__proto__']: 'own!',
        },
      }),
    ).toEqual([
      `when.tier: unknown field "tier"; allowed: ${fields}`,
      `when["attributes."]: unknown field "attributes."; allowed: ${fields}`,
      `when["attributes.tier"]: must be ${value}; received null`,
      `when["attributes.plan"][1]: must be ${value}; received an object`,
      `when["attributes.plan"][2]: must be ${value}; received NaN`,
      `when["attributes.none"]: must be a list of 1 to 1000 items, each ${value}; received an empty list`,
      `when["attributes.long"]: must be ${value}; received "${'x'.repeat(60)}…"`,
      'when["header.A"]: must be unique; header.a is already given with different letter case',
      `when.__proto__: unknown field "__proto__"; allowed: ${fields}`,
    ])
    expectIssue(
      { when: ['x'] },
      'when',
      `must be an object whose keys are ${fields}, and whose values are a value or a list of values; received a list of 1 item`,
    )
    expect(ruleOf({ when: {} }).when).toEqual([])
  })
})
