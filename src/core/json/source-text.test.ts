import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finish } from '../scheduling/steps.js'
import { findJsonRanges } from './json-ranges.js'
import { jsonChunksSteps, jsonTextSteps } from './json-steps.js'
import { jsonText, onOneLine, parseJson, sourceTextOf } from './source-text.js'

const odd = '{"b": 1.0,"10":12345678901234567890, "2":"\\u00e9","a":1e400,"e":{},"l":[ ],"x":-0}'

describe('JSON with attributes', () => {
  it('is put on one line in linear time, whatever its white space', () => {
    const spaces = ' '.repeat(500_000)
    expect(onOneLine(`[1,${spaces}2]`)).toBe(`[1,${spaces}2]`)
    expect(onOneLine(`[1,${spaces}\n${spaces}2,\r\n3, 4]`)).toBe('[1, 2, 3, 4]')
  })

  it('is written back unchanged, at any depth', () => {
    for (const text of [
      `{"id":"a","attributes":${odd}}`,
      `{"rules":[{"id":"a"},{"attributes":${odd},"id":"b"}]}`,
      `[{"before":null,"after":{"rules":[{"attributes":${odd}},{"attributes":{"a":1.50}}]}}]`,
      '{"attributes":{\n  "a":  [1.0]\n}}',
    ])
      expect(jsonText(parseJson(text))).toBe(text)
  })

  it('parses like JSON.parse', () => {
    const text = `{ "id": "a\\"", "attributes" : ${odd} }`
    expect(parseJson(text)).toEqual(JSON.parse(text))
    expect(jsonText(parseJson(text))).toBe(`{"id":"a\\"","attributes":${odd}}`)
    expect(jsonText(parseJson(text), '  ')).toBe(`{\n  "id": "a\\"",\n  "attributes": ${odd}\n}`)
  })

  it('drops the source text once the object has changed', () => {
    const value = parseJson('{"attributes":{"a":1.0}}') as { attributes: { a: number } }
    value.attributes.a = 2
    expect(jsonText(value)).toBe('{"attributes":{"a":2}}')
    expect(sourceTextOf(value.attributes)).toBeUndefined()
  })

  it('ignores nested attributes, and attributes that are not objects', () => {
    expect(jsonText(parseJson('{"attributes":1.0,"x":{"attributes":"1.0"}}'))).toBe(
      '{"attributes":1,"x":{"attributes":"1.0"}}',
    )
    const nested = '{"attributes":{"attributes":{"a":1.0},"b":1}}'
    expect(jsonText(parseJson(nested))).toBe(nested)
  })

  it('uses the last value of a duplicate name', () => {
    expect(jsonText(parseJson('{"attributes":{"a":1.0},"attributes":{"a":1}}'))).toBe('{"attributes":{"a":1}}')
    expect(jsonText(parseJson('{"attributes":{"a":1},"attributes":{"a":1.0}}'))).toBe('{"attributes":{"a":1.0}}')
    expect(parseJson('{"b":{"attributes":{}},"b":null}')).toEqual({ b: null })
    expect(parseJson('{"b":[{"attributes":{}}],"b":{}}')).toEqual({ b: {} })
  })

  it('keeps its meaning on one line', () => {
    expect(onOneLine('{\r\n  "a": "b  c",\n\n  "d": 1.0 }')).toBe('{ "a": "b  c", "d": 1.0 }')
  })
})

describe('JSON source ranges', () => {
  it('are found in any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, unit) => {
        const text = JSON.stringify(value, null, unit)
        const places = findJsonRanges(text, (_, path) => path.length === 2)
        const members = Object.entries(typeof value === 'object' ? (value ?? {}) : {})
        const expected = members.flatMap(([, member]) =>
          typeof member === 'object' && member !== null ? Object.values(member) : [],
        )
        expect(places.map(({ start, end }) => JSON.parse(text.slice(start, end)))).toEqual(
          expected.map((one) => JSON.parse(JSON.stringify(one))),
        )
      }),
      { numRuns: 500 },
    )
  })
})

describe('JSON that is written in steps', () => {
  it('equals jsonText, for lists of any length', () => {
    const withText = fc.constant(parseJson(`{"attributes":${odd}}`))
    // A list is written in another way if it has more than 64 members. The same few members are repeated, because generating 64 takes long.
    const listOf = (member: fc.Arbitrary<unknown>) =>
      fc
        .record({ members: fc.array(member, { minLength: 1, maxLength: 3 }), length: fc.integer({ min: 62, max: 67 }) })
        .map(({ members, length }) => Array.from({ length }, (_, i) => members[i % members.length]))
    const member = fc.oneof(fc.jsonValue(), withText, listOf(fc.oneof(fc.jsonValue({ maxDepth: 1 }), withText)))
    fc.assert(
      fc.property(listOf(member), member, (list, value) => {
        const whole = { list, value, nothing: undefined, attributes: parseJson(odd) }
        const text = jsonText(whole)
        expect(finish(jsonTextSteps(whole))).toBe(text)
        expect(Buffer.concat(finish(jsonChunksSteps(whole))).toString()).toBe(text)
      }),
      { numRuns: 50 },
    )
  })

  it('comes in chunks, and a layout is applied to all of them', () => {
    const rules = Array.from({ length: 3_000 }, (_, i) => parseJson(`{"id":"é${i}","attributes":{\n"n":1.0}}`))
    const chunks = finish(jsonChunksSteps({ rules: [...rules, 'x'.repeat(100_000)] }, onOneLine))
    expect(chunks.length).toBeGreaterThan(1)
    const text = Buffer.concat(chunks).toString()
    expect(text).not.toContain('\n')
    expect(JSON.parse(text).rules).toHaveLength(3_001)
  })
})
