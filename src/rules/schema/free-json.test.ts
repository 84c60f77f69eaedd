import { describe, expect, it } from 'vitest'
import { jsonText } from '../../core/json/written-json.js'
import type { Rule } from '../../core/rule.js'
import { parseDocument } from '../document/document.js'
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

describe('attributes', () => {
  it('are kept as they are, in their order, and apart from the document', () => {
    const text = '{"z":1,"a":[null,true,"x",{"__proto__":{"b":1.5}}],"constructor":"c"}'
    const attributes = JSON.parse(text)
    const rule = ruleOf({ attributes })
    attributes.a.push('later')
    expect(JSON.stringify(rule.attributes)).toBe(text)
  })

  it('are JSON: what could not be saved is a mistake', () => {
    const attributes = { date: new Date(0), list: [Number.NaN, 1n, () => 1], left: undefined, map: new Map() }
    expect(mistakesIn({ attributes })).toEqual([
      'attributes.date: found an object; allowed: JSON',
      'attributes.list[0]: found NaN; allowed: JSON',
      'attributes.list[1]: found a bigint; allowed: JSON',
      'attributes.list[2]: found a function; allowed: JSON',
      'attributes.map: found an object; allowed: JSON',
    ])
    refuses({ attributes: 'x' }, 'attributes', 'found "x"; allowed: an object of your own')
  })

  it('may hold a number beyond JavaScript, also after a part that is called attributes too', () => {
    const written = '{"attributes":{"n":1.0},"far":[1e400]}'
    const text = `ruleSets: [{ id: s, rules: [{ id: r, attributes: ${written}, bands: [{ capacity: 1, window: 1s }] }] }]`
    const rule = parseRuleSets(parseDocument(text, 'yaml'))[0]?.rules[0]
    expect(jsonText(rule?.attributes)).toBe(written)
  })

  it('are bounded in depth and size, so that an object inside itself is a mistake too', () => {
    const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) })
    expect(mistakesIn({ attributes: nested(100) })).toEqual([])
    expect(mistakesIn({ attributes: nested(101) })).toEqual([
      expect.stringMatching(/found more than 100 levels; allowed: JSON$/),
    ])
    const loop: unknown[] = []
    loop.push(loop, loop)
    expect(mistakesIn({ attributes: { loop } })).toEqual([expect.stringContaining('found more than 100 levels')])
    // The object and its list are values too.
    expect(mistakesIn({ attributes: { list: Array(99_998).fill(0) } })).toEqual([])
    expect(mistakesIn({ attributes: { list: Array(99_999).fill(0) } })).toEqual([
      'attributes.list[99998]: found more than 100000 values; allowed: JSON',
    ])
  })
})
