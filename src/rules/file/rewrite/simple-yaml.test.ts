import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../../core/json/source-text.js'
import { parseDocumentNodes } from '../../document/document.js'
import { blockYaml } from './render-value.js'
import { simpleYaml } from './simple-yaml.js'

const rule = {
  id: 'orders-1',
  path: '/api/{version}/orders/**',
  method: ['GET', 'POST'],
  enabled: false,
  priority: -5,
  bands: [
    { capacity: 10, window: '1h' },
    { label: 'burst', capacity: 3, window: '500ms' },
  ],
  attributes: { owner: { team: 'shop' } },
}

const words = [
  'null',
  'True',
  'FALSE',
  'yes',
  'no',
  'on',
  'off',
  'y',
  'NaN',
  '.inf',
  '1e5',
  '0x1f',
  '0o7',
  '12h',
  '~',
  '',
]
const scalar = fc.oneof(
  { arbitrary: fc.stringMatching(/^[A-Za-z/][A-Za-z0-9/_.*{}-]{0,6}$/), weight: 6 },
  { arbitrary: fc.oneof(fc.integer(), fc.boolean()), weight: 3 },
  fc.stringMatching(/^[.{*&!%@-]?[A-Za-z0-9/_.*{}:#-]{0,6}$/),
  fc.constantFrom(...words, null, -0, 0.5, 1e300),
)
const name = fc.oneof(
  { arbitrary: fc.stringMatching(/^[a-z_][a-z0-9_]{0,4}$/), weight: 20 },
  fc.constantFrom(...words, '1', '__proto__', 'a b'),
)
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
    fc.dictionary(name, tie('value'), { minKeys: 1, maxKeys: 3 }),
  ),
}))

describe('YAML of simple values', () => {
  it('has a line for each, as a rules file has', () => {
    expect(simpleYaml(rule)).toBe(`id: orders-1
path: /api/{version}/orders/**
method:
  - GET
  - POST
enabled: false
priority: -5
bands:
  - capacity: 10
    window: 1h
  - label: burst
    capacity: 3
    window: 500ms
attributes:
  owner:
    team: shop`)
  })

  it('equals the output of the yaml package and parses back to the value', () => {
    let simple = 0
    fc.assert(
      fc.property(
        fc.oneof(fc.dictionary(name, anything, { maxKeys: 4 }), fc.array(anything, { maxLength: 4 })),
        (value) => {
          const text = simpleYaml(value, '    ')
          if (text === undefined) return
          simple += 1
          expect(text).toBe(blockYaml(value, '    '))
          expect(parseDocumentNodes(`    ${text}\n`, 'yaml').value).toEqual(value)
        },
      ),
      { numRuns: 3_000 },
    )
    expect(simple).toBeGreaterThan(100)
  })

  it.each<[string, unknown]>([
    ['text that needs quotes', { id: 'a: b' }],
    ['text that looks like a number', { id: '1e5' }],
    ['a word of YAML', { id: 'null' }],
    ['an empty list', { list: [] }],
    ['an empty object', { object: {} }],
    ['null', { nothing: null }],
    ['a fraction', { number: 0.5 }],
    ['attributes that are kept as they were written', parseJson('{"attributes":{"n": 1.0}}')],
  ])('is left to the yaml package for %s', (_, value) => {
    expect(simpleYaml(value)).toBeUndefined()
  })
})
