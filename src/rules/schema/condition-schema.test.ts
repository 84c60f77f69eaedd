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

describe('when', () => {
  it('turns every value into text, and lists into alternatives', () => {
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
  ])('refuses the address %j', (clientIp) => {
    expect(mistakesIn({ when: { clientIp } })).toEqual([
      expect.stringMatching(/^when\.clientIp: found .*; allowed: an IP address, or a range such as 10\.0\.0\.0\/8/),
    ])
  })
  it.each(['10.0.0.0/32', '0.0.0.0/0', '2001:db8::/128', '::/0', '::ffff:10.0.0.1'])(
    'takes the address %s',
    (clientIp) => {
      expect(ruleOf({ when: { clientIp } }).when).toEqual([{ field: 'clientIp', values: [clientIp] }])
    },
  )

  it('says which condition is wrong, and how', () => {
    const fields = 'attributes.x, header.x, path.x, clientIp, userId, apiKey, method'
    const value = 'text of at most 1024 characters, a number, true or false'
    expect(
      mistakesIn({
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
      `when.tier: unknown condition; allowed: ${fields}`,
      `when["attributes."]: unknown condition; allowed: ${fields}`,
      `when["attributes.tier"]: found null; allowed: ${value}`,
      `when["attributes.plan"][1]: found an object; allowed: ${value}`,
      `when["attributes.plan"][2]: found NaN; allowed: ${value}`,
      `when["attributes.none"]: found an empty list; allowed: a list of 1 to 1000 of these: ${value}`,
      `when["attributes.long"]: found "${'x'.repeat(60)}…"; allowed: ${value}`,
      'when["header.A"]: a duplicate of header.a; allowed: each field once',
      `when.__proto__: unknown condition; allowed: ${fields}`,
    ])
    refuses({ when: ['x'] }, 'when', `found a list of 1; allowed: a map from ${fields} to a value or a list of values`)
    expect(ruleOf({ when: {} }).when).toEqual([])
  })
})
