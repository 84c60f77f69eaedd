import { describe, expect, it } from 'vitest'
import { maskPlaceholders, scalarOf, substitute, unmaskPlaceholders } from './placeholders.js'

const environment = { HOST: 'example.org', EMPTY: '', PORT: '9090' }
const filled = (text: string): string => substitute(text, environment).text

describe('placeholders', () => {
  it('are replaced anywhere in a string', () => {
    expect(filled(`http://\${HOST}:\${PORT}/`)).toBe('http://example.org:9090/')
  })

  it.each([
    [`\${MISSING:a:b}`, 'a:b'],
    [`\${EMPTY:x}`, 'x'],
    [`\${HOST:x}`, 'example.org'],
    [`\${MISSING:}`, ''],
    [`a\${MISSING:}b`, 'ab'],
  ])('%s falls back to its default if the variable is unset or empty', (text, result) => {
    expect(substitute(text, environment)).toMatchObject({ text: result, issues: [] })
  })

  it('are escaped by a second dollar sign', () => {
    expect(filled(`$\${HOST} $5 \${HOST}`)).toBe(`\${HOST} $5 example.org`)
  })

  it.each([`\${MISSING}`, `\${EMPTY}`])('%s without a default is an error that names the variable', (text) => {
    const name = text.slice(2, -1)
    expect(substitute(`x\${HOST}${text}`, environment).issues).toEqual([
      `environment variable ${name} is not set; set it, or add a default: \${${name}:default}`,
    ])
  })

  it.each([`\${}`, `\${HOST`, `\${not a name}`, `\${:x}`, `\${a.b}`])('%s is invalid', (text) => {
    expect(substitute(text, environment).issues).toHaveLength(1)
  })

  it('ignore inherited properties', () => {
    expect(substitute(`\${constructor}`, environment).issues).toHaveLength(1)
  })

  it.each([
    [`\${PORT}`, true],
    [`\${PORT:8080}`, true],
    [` \${PORT}`, false],
    [`\${PORT}\${PORT}`, false],
    [`$\${PORT}`, false],
  ])('%s is a single placeholder: %s', (text, isWhole) => {
    expect(substitute(text, environment).isWhole).toBe(isWhole)
  })
})

describe('scalarOf', () => {
  it.each([
    ['8080', 8080],
    ['0.5', 0.5],
    ['-1', -1],
    ['true', true],
    ['false', false],
    ['yes', 'yes'],
    ['1e3', '1e3'],
    ['', ''],
  ])('converts %j to %j', (text, value) => expect(scalarOf(text)).toBe(value))
})

describe('masking', () => {
  it('keeps the position of every character and is reversible', () => {
    const text = `a: { b: \${X:[1, 2] # c}, d: $\${Y} }`
    const masked = maskPlaceholders(text)
    expect(masked).toHaveLength(text.length)
    expect(masked.replaceAll(/[^{}[\],:#]/g, '')).toBe(':{:,:}')
    expect(unmaskPlaceholders(masked)).toBe(text)
  })
})
