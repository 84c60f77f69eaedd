import { Decimal128, Int32, Long, ObjectId } from 'mongodb'
import { describe, expect, it } from 'vitest'
import type { RuleDocument } from '../../../../src/core/contracts/rule-store.js'
import { jsonText, parseJson } from '../../../../src/core/json/source-text.js'
import { digestOf, fromMongo, toMongo } from '../../../../src/rules/mongo/document.js'

describe('a rule as a document', () => {
  it('is restored byte for byte, including the order', () => {
    const text =
      '{"id":"a","when":{"attributes.tier":"x"},"name":"한국어 🎉","attributes":{"2":1,"z":{"$x":[[]]},"n":[0.1,1e-7,null],"":""},"bands":[{"capacity":1}]}'
    const rule = JSON.parse(text) as RuleDocument
    const document = toMongo('api', rule)
    expect(Object.keys(document)).toEqual(['_id', 'ruleSetId', 'id', 'when', 'name', 'attributes', 'bands', 'asJson'])
    expect(JSON.stringify(fromMongo(document))).toBe(text)
  })

  it.each([
    ['a dot in a name', { 'a.b': 1 }],
    ['a name that begins with $', { a: { $set: 1 } }],
    ['__proto__', JSON.parse('{"__proto__":1}')],
    ['a list of lists', { a: [1, [2]] }],
    ['NUL', { a: '\0' }],
    ['NUL in a name', { 'a\0': 1 }],
    ['half a character', { a: ['\ud83c'] }],
    ['what is nested deeply', JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`)],
  ])('keeps as text: %s', (_, attributes) => {
    const document = toMongo('api', { id: 'a', attributes })
    expect(document).toMatchObject({ attributes: null, asJson: { attributes: JSON.stringify(attributes) } })
    expect(JSON.stringify(fromMongo(document).attributes)).toBe(JSON.stringify(attributes))
  })

  it('stores the value and its original notation; external changes of the value win', () => {
    const written = '{"b": 1.0,"10":12345678901234567890}'
    const document = toMongo('api', parseJson(`{"id":"a","attributes":${written}}`) as RuleDocument)
    expect(document).toMatchObject({
      attributes: { b: 1, 10: 12345678901234567000 },
      asJson: { attributes: written },
    })
    const text = (found: typeof document) => jsonText(fromMongo(found).attributes)
    expect(text(document)).toBe(written)
    expect(text({ ...document, attributes: { b: 2 } })).toBe('{"b":2}')
    for (const attributes of ['not JSON', '{"b":2}', 7])
      expect(text({ ...document, asJson: { attributes } })).toBe('{"10":12345678901234567000,"b":1}')
    const endless = toMongo('api', parseJson('{"id":"a","attributes":{"a":1e400}}') as RuleDocument)
    expect(endless).toMatchObject({ attributes: null, asJson: { attributes: '{"a":1e400}' } })
    expect(text(endless)).toBe('{"a":1e400}')
  })

  it('stores everything else unchanged', () => {
    const attributes = { 'a-b c': [{ a: [1] }], 한: '🎉', constructor: null, ' ': 'x$' }
    expect(toMongo('api', { id: 'a', attributes })).toEqual({
      ...{ _id: 'api/a', ruleSetId: 'api', id: 'a' },
      attributes,
    })
  })

  it('written by another program may have no id, and values of types that JSON does not have', () => {
    const numbers = { a: new Int32(1), b: Long.fromNumber(2 ** 40), c: Decimal128.fromString('0.5') }
    const _id = new ObjectId('65a000000000000000000000')
    const document = { _id, ruleSetId: 'api', _class: 'Rule', createdAt: new Date(0), attributes: numbers, name: null }
    expect(fromMongo(document)).toEqual({
      id: '65a000000000000000000000',
      createdAt: '1970-01-01T00:00:00.000Z',
      attributes: { a: 1, b: 2 ** 40, c: 0.5 },
    })
    expect(fromMongo({ _id: 'api/x', ruleSetId: 'api' })).toEqual({ id: 'x' })
    expect(fromMongo({ _id: 'web/x', ruleSetId: 'api' })).toEqual({ id: 'web/x' })
  })

  it("has a digest of the author's fields only, without those of the store", () => {
    const rule = { id: 'a', name: 'x' }
    expect(digestOf({ ...rule, version: 7, updatedAt: 'now' })).toBe(digestOf(rule))
    expect(digestOf({ id: 'a', name: 'y' })).not.toBe(digestOf(rule))
  })
})
