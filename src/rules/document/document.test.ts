import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { type DocumentFormat, formatOf, maxDocumentLength, parseDocument } from './document.js'

const yaml = (text: string) => parseDocument(text, 'yaml')
const json = (text: string) => parseDocument(text, 'json')
const mistakesIn = (text: string, format: DocumentFormat): string[] => {
  try {
    parseDocument(text, format, 'rules.x')
  } catch (error) {
    expect(error).toBeInstanceOf(FluxGateError)
    const { code, message, errors } = error as FluxGateError
    expect(code).toBe('FLUXGATE_RULES_INVALID')
    expect(message).toMatch(/^rules\.x: \d+ mistakes?\n {2}line \d+, column \d+: /)
    return errors.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('YAML', () => {
  it('becomes plain values', () => {
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

  it('is the same under an older version of the language', () => {
    expect(yaml('%YAML 1.1\n---\na: yes\nb: 2026-01-01\nc: 0o17\n')).toEqual({ a: 'yes', b: '2026-01-01', c: 15 })
  })

  it('says where a mistake is', () => {
    expect(mistakesIn('a: 1\nb: [1,\nc: 2\n', 'yaml')[0]).toMatch(/^line 3, column 1: /)
    expect(mistakesIn('a: "x', 'yaml')).toEqual(['line 1, column 6: Missing closing "quote'])
    expect(mistakesIn('a:\r\n\tb: 1', 'yaml')[0]).toMatch(/^line 2, column 1: Tabs/)
    expect(mistakesIn('a: 1\n---\nb: 2\n', 'yaml')).toEqual(['line 2, column 1: a second document; allowed: one'])
  })

  it('never takes the last of two equal names in silence', () => {
    expect(mistakesIn('a: 1\nb:\n  c: 1\n  "c": 2\na: 3\n', 'yaml')).toEqual([
      'line 4, column 3: "c" is given twice',
      'line 5, column 1: "a" is given twice',
    ])
    expect(mistakesIn('[{a: 1}, {a: 1}]', 'yaml')).toEqual([])
  })

  it('refuses tags, whatever they would make', () => {
    for (const tag of ['!env', '!!js/function', '!!binary', '!!set', '!!timestamp', '!<tag:x>']) {
      expect(mistakesIn(`a: ${tag} x`, 'yaml')).toEqual([expect.stringMatching(/^line 1, column 4: /)])
    }
    expect(yaml('a: !!str 10')).toEqual({ a: '10' })
  })

  it('refuses names that are not text', () => {
    expect(mistakesIn('? [a]\n: b', 'yaml')).toEqual([expect.stringMatching(/^line 1, column 3: /)])
    expect(mistakesIn('x: &a k\n*a : b', 'yaml')[0]).toMatch(/^line 2, column 1: /)
  })

  it('follows aliases', () => {
    expect(yaml('a: &a {x: 1}\nb: [*a, *a]')).toEqual({ a: { x: 1 }, b: [{ x: 1 }, { x: 1 }] })
    expect(mistakesIn('a: *b', 'yaml')).toEqual(['line 1, column 4: *b stands before, or inside, what it refers to'])
    expect(mistakesIn('a: &a [*a]', 'yaml')).toEqual([
      'line 1, column 8: *a stands before, or inside, what it refers to',
    ])
  })

  it('refuses aliases of aliases that would grow without bound', () => {
    const uses = (name: string, count: number) => `[${Array(count).fill(`*${name}`).join(', ')}]`
    const laughs = ['a: &a [x]', `b: &b ${uses('a', 99)}`, `c: &c ${uses('b', 99)}`]
    expect(mistakesIn(laughs.join('\n'), 'yaml')).toEqual([])
    expect(mistakesIn([...laughs, `d: ${uses('c', 2)}`].join('\n'), 'yaml')).toEqual([])
    expect(mistakesIn([...laughs, `d: ${uses('c', 3)}`].join('\n'), 'yaml')).toEqual([
      expect.stringMatching(/^line 4, column \d+: aliases add more than 100000 values$/),
    ])
  })
})

describe('JSON', () => {
  it('becomes what JSON.parse makes of it', () => {
    const text = ' {"a":[1,-0.5e+3,true,false,null,""],"b":{"\\u0061\\n\\"":{}},"c":[]}\n'
    expect(json(text)).toEqual(JSON.parse(text))
    expect(json('\ufeff{}')).toEqual({})
  })

  it.each([
    ['', 'line 1, column 1: found the end; expected a value'],
    ['{', 'line 1, column 2: found the end; expected a name in double quotes'],
    ['{\n  "a": 1,\n}', 'line 3, column 1: found "}"; expected a name in double quotes'],
    ['{"a" 1}', 'line 1, column 6: found "1"; expected :'],
    ['{"a": 1 "b": 2}', 'line 1, column 9: found "\\""; expected , or }'],
    ['[1, 2,]', 'line 1, column 7: found "]"; expected a value'],
    ['[1 2]', 'line 1, column 4: found "2"; expected , or ]'],
    ['[01]', 'line 1, column 3: found "1"; expected , or ]'],
    ['[.5]', 'line 1, column 2: found "."; expected a value'],
    ['[NaN]', 'line 1, column 2: found "N"; expected a value'],
    ["{'a': 1}", 'line 1, column 2: found "\'"; expected a name in double quotes'],
    ['{} {}', 'line 1, column 4: found "{" after the end of the document'],
    ['["a]', 'line 1, column 2: text that is not closed, or has a line break or a wrong \\ in it'],
    ['["\\x"]', 'line 1, column 2: text that is not closed, or has a line break or a wrong \\ in it'],
    ['["a\nb"]', 'line 1, column 2: text that is not closed, or has a line break or a wrong \\ in it'],
    ['// no\n{}', 'line 1, column 1: found "/"; expected a value'],
    ['{"a": 1,\r\n "\\u0061": 2}', 'line 2, column 2: "a" is given twice'],
  ])('%j is refused', (text, mistake) => {
    expect(mistakesIn(text, 'json')).toEqual([mistake])
  })
})

describe.each(['yaml', 'json'] as const)('any %s', (format) => {
  it('may be nested 100 levels deep, and no deeper', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(mistakesIn(nested(100), format)).toEqual([])
    for (const levels of [102, 5_000, 1_000_000]) {
      expect(mistakesIn(nested(levels), format)).toEqual([expect.stringMatching(/nested deeper than 100 levels$/)])
    }
    expect(mistakesIn('{"a":'.repeat(1_000), format)).toEqual([expect.stringMatching(/nested deeper than 100 levels$/)])
  })

  it('is bounded in length', () => {
    const max = { yaml: 4_194_304, json: 33_554_432 }[format]
    expect(maxDocumentLength[format]).toBe(max)
    expect(parseDocument(`"${'x'.repeat(max - 2)}"`, format)).toHaveLength(max - 2)
    expect(mistakesIn(`"${'x'.repeat(max - 1)}"`, format)[0]).toContain(
      `line 1, column 1: found ${max + 1} characters of`,
    )
  })

  it('keeps __proto__ a name like any other', () => {
    const value = parseDocument('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}', format)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor'])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})

it('the ending of a file decides how it is read', () => {
  expect(['a.json', 'a.JSON', 'a.yaml', 'a.yml', 'a', 'json'].map(formatOf)).toEqual([
    ...['json', 'json', 'yaml', 'yaml', 'yaml', 'yaml'],
  ])
})
