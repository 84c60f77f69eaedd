import { describe, expect, it } from 'vitest'
import { jsonText } from '../../../core/json/source-text.js'
import type { Rule } from '../../../core/rule.js'
import { parseDocument } from '../../document/document.js'
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

describe('attributes', () => {
  it('are copied with their order of keys', () => {
    const text = '{"z":1,"a":[null,true,"x",{"__proto__":{"b":1.5}}],"constructor":"c"}'
    const attributes = JSON.parse(text)
    const rule = ruleOf({ attributes })
    attributes.a.push('later')
    expect(JSON.stringify(rule.attributes)).toBe(text)
  })

  it('must be JSON values', () => {
    const attributes = { date: new Date(0), list: [Number.NaN, 1n, () => 1], left: undefined, map: new Map() }
    expect(issuesIn({ attributes })).toEqual([
      'attributes.date: must be a JSON value; received an object',
      'attributes.list[0]: must be a JSON value; received NaN',
      'attributes.list[1]: must be a JSON value; received a bigint',
      'attributes.list[2]: must be a JSON value; received a function',
      'attributes.map: must be a JSON value; received an object',
    ])
    expectIssue({ attributes: 'x' }, 'attributes', 'must be an object; received "x"')
  })

  it('may contain numbers beyond the range of JavaScript, even after a nested attributes object', () => {
    const written = '{"attributes":{"n":1.0},"far":[1e400]}'
    const text = `ruleSets: [{ id: s, rules: [{ id: r, attributes: ${written}, bands: [{ capacity: 1, window: 1s }] }] }]`
    const rule = parseRuleSets(parseDocument(text, 'yaml'))[0]?.rules[0]
    expect(jsonText(rule?.attributes)).toBe(written)
  })

  it('are limited in depth and size, so cyclic objects are rejected', () => {
    const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) })
    expect(issuesIn({ attributes: nested(100) })).toEqual([])
    expect(issuesIn({ attributes: nested(101) })).toEqual([
      expect.stringMatching(/must be a JSON value; received more than 100 levels$/),
    ])
    const loop: unknown[] = []
    loop.push(loop, loop)
    expect(issuesIn({ attributes: { loop } })).toEqual([expect.stringContaining('received more than 100 levels')])
    // The object and its list count as values.
    expect(issuesIn({ attributes: { list: Array(99_998).fill(0) } })).toEqual([])
    expect(issuesIn({ attributes: { list: Array(99_999).fill(0) } })).toEqual([
      'attributes.list[99998]: must be a JSON value; received more than 100000 values',
    ])
  })
})
