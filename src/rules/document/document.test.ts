import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { type DocumentFormat, formatOf, maxDocumentLength, parseDocument } from './document.js'

const yaml = (text: string) => parseDocument(text, 'yaml')
const json = (text: string) => parseDocument(text, 'json')
const issuesIn = (text: string, format: DocumentFormat): string[] => {
  try {
    parseDocument(text, format, 'rules.x')
  } catch (error) {
    expect(error).toBeInstanceOf(FluxGateError)
    const { code, message, errors } = error as FluxGateError
    expect(code).toBe('FLUXGATE_RULES_INVALID')
    expect(message).toMatch(/^rules\.x: \d+ errors?\n {2}line \d+, column \d+: /)
    return errors.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('YAML', () => {
  it('parses to plain values', () => {
    expect(yaml('a: [1, 2.5, true, null, text]\nb:\n  c: "7"\n  d: 2026-01-01\n1: one\n? x\n: y\n')).toEqual({
      a: [1, 2.5, true, null, 'text'],
      b: { c: '7', d: '2026-01-01' },
      1: 'one',
      x: 'y',
    })
    expect(yaml('')).toBeNull()
    expect(yaml('# only a comment\n')).toBeNull()
    expect(yaml('{"a": [1, {"b": "\\u00e9"}]}')).toEqual({ a: [1, { b: 'é' }] })
    expect(yaml('\ufeffa: 1')).toEqual({ a: 1 })
  })

  it('ignores a %YAML 1.1 directive', () => {
    expect(yaml('%YAML 1.1\n---\na: yes\nb: 2026-01-01\nc: 0o17\n')).toEqual({ a: 'yes', b: '2026-01-01', c: 15 })
  })

  it('reports the line and column of a syntax error', () => {
    expect(issuesIn('a: 1\nb: [1,\nc: 2\n', 'yaml')[0]).toMatch(/^line 3, column 1: /)
    expect(issuesIn('a: "x', 'yaml')).toEqual(['line 1, column 6: Missing closing "quote'])
    expect(issuesIn('a:\r\n\tb: 1', 'yaml')[0]).toMatch(/^line 2, column 1: Tabs/)
    expect(issuesIn('a: 1\n---\nb: 2\n', 'yaml')).toEqual([
      'line 2, column 1: must be a single document; received a second one',
    ])
  })

  it('reports duplicate keys', () => {
    expect(issuesIn('a: 1\nb:\n  c: 1\n  "c": 2\na: 3\n', 'yaml')).toEqual([
      'line 4, column 3: "c" is given twice',
      'line 5, column 1: "a" is given twice',
    ])
    expect(issuesIn('[{a: 1}, {a: 1}]', 'yaml')).toEqual([])
  })

  it('rejects tags', () => {
    for (const tag of ['!env', '!!js/function', '!!binary', '!!set', '!!timestamp', '!<tag:x>']) {
      expect(issuesIn(`a: ${tag} x`, 'yaml')).toEqual([expect.stringMatching(/^line 1, column 4: /)])
    }
    expect(yaml('a: !!str 10')).toEqual({ a: '10' })
  })

  it('rejects keys that are not strings', () => {
    expect(issuesIn('? [a]\n: b', 'yaml')).toEqual([expect.stringMatching(/^line 1, column 3: /)])
    expect(issuesIn('x: &a k\n*a : b', 'yaml')[0]).toMatch(/^line 2, column 1: /)
  })

  it('resolves aliases', () => {
    expect(yaml('a: &a {x: 1}\nb: [*a, *a]')).toEqual({ a: { x: 1 }, b: [{ x: 1 }, { x: 1 }] })
    expect(issuesIn('a: *b', 'yaml')).toEqual(['line 1, column 4: *b must refer to an anchor before it'])
    expect(issuesIn('a: &a [*a]', 'yaml')).toEqual(['line 1, column 8: *a must refer to an anchor before it'])
  })

  it('limits the number of values that aliases expand to', () => {
    const uses = (name: string, count: number) => `[${Array(count).fill(`*${name}`).join(', ')}]`
    const laughs = ['a: &a [x]', `b: &b ${uses('a', 99)}`, `c: &c ${uses('b', 99)}`]
    expect(issuesIn(laughs.join('\n'), 'yaml')).toEqual([])
    expect(issuesIn([...laughs, `d: ${uses('c', 2)}`].join('\n'), 'yaml')).toEqual([])
    expect(issuesIn([...laughs, `d: ${uses('c', 3)}`].join('\n'), 'yaml')).toEqual([
      expect.stringMatching(/^line 4, column \d+: aliases add more than 100000 values$/),
    ])
  })
})

describe('JSON', () => {
  it('parses to the same value as JSON.parse', () => {
    const text = ' {"a":[1,-0.5e+3,true,false,null,""],"b":{"\\u0061\\n\\"":{}},"c":[]}\n'
    expect(json(text)).toEqual(JSON.parse(text))
    expect(json('\ufeff{}')).toEqual({})
  })

  it.each([
    ['', 'line 1, column 1: unexpected end of input; expected a value'],
    ['{', 'line 1, column 2: unexpected end of input; expected a property name in double quotes'],
    ['{\n  "a": 1,\n}', 'line 3, column 1: unexpected "}"; expected a property name in double quotes'],
    ['{"a" 1}', 'line 1, column 6: unexpected "1"; expected :'],
    ['{"a": 1 "b": 2}', 'line 1, column 9: unexpected "\\""; expected , or }'],
    ['[1, 2,]', 'line 1, column 7: unexpected "]"; expected a value'],
    ['[1 2]', 'line 1, column 4: unexpected "2"; expected , or ]'],
    ['[01]', 'line 1, column 3: unexpected "1"; expected , or ]'],
    ['[.5]', 'line 1, column 2: unexpected "."; expected a value'],
    ['[NaN]', 'line 1, column 2: unexpected "N"; expected a value'],
    ["{'a': 1}", 'line 1, column 2: unexpected "\'"; expected a property name in double quotes'],
    ['{} {}', 'line 1, column 4: unexpected "{" after the end of the document'],
    ['["a]', 'line 1, column 2: invalid string: not closed, or with a line break or an invalid escape'],
    ['["\\x"]', 'line 1, column 2: invalid string: not closed, or with a line break or an invalid escape'],
    ['["a\nb"]', 'line 1, column 2: invalid string: not closed, or with a line break or an invalid escape'],
    ['// no\n{}', 'line 1, column 1: unexpected "/"; expected a value'],
    ['{"a": 1,\r\n "\\u0061": 2}', 'line 2, column 2: "a" is given twice'],
  ])('rejects %j', (text, issue) => {
    expect(issuesIn(text, 'json')).toEqual([issue])
  })
})

describe.each(['yaml', 'json'] as const)('any %s', (format) => {
  it('may be nested at most 100 levels deep', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(issuesIn(nested(100), format)).toEqual([])
    for (const levels of [102, 5_000, 1_000_000]) {
      expect(issuesIn(nested(levels), format)).toEqual([expect.stringMatching(/nested deeper than 100 levels$/)])
    }
    expect(issuesIn('{"a":'.repeat(1_000), format)).toEqual([expect.stringMatching(/nested deeper than 100 levels$/)])
  })

  it('is limited in length', () => {
    const max = { yaml: 4_194_304, json: 33_554_432 }[format]
    expect(maxDocumentLength[format]).toBe(max)
    expect(parseDocument(`"${'x'.repeat(max - 2)}"`, format)).toHaveLength(max - 2)
    expect(issuesIn(`"${'x'.repeat(max - 1)}"`, format)[0]).toContain(
      `line 1, column 1: must have at most ${max} characters of ${format.toUpperCase()}; received ${max + 1}`,
    )
  })

  it('treats __proto__ as an ordinary key', () => {
    const value = parseDocument('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}', format)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor'])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

it('formatOf selects the format by file extension', () => {
  expect(['a.json', 'a.JSON', 'a.yaml', 'a.yml', 'a', 'json'].map(formatOf)).toEqual([
    ...['json', 'json', 'yaml', 'yaml', 'yaml', 'yaml'],
  ])
})
