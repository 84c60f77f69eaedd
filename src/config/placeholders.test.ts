import { describe, expect, it } from 'vitest'
import { fillIn, maskPlaceholders, scalarOf, unmaskPlaceholders } from './placeholders.js'

const environment = { HOST: 'example.org', EMPTY: '', PORT: '9090' }
const filled = (text: string): string => fillIn(text, environment).text

describe('placeholders', () => {
  it('stand for variables, anywhere in a text', () => {
    expect(filled(`http://\${HOST}:\${PORT}/`)).toBe('http://example.org:9090/')
  })

  it.each([
    [`\${MISSING:a:b}`, 'a:b'],
    [`\${EMPTY:x}`, 'x'],
    [`\${HOST:x}`, 'example.org'],
    [`\${MISSING:}`, ''],
    [`a\${MISSING:}b`, 'ab'],
  ])('%s has a default for when the variable is not set or empty', (text, result) => {
    expect(fillIn(text, environment)).toMatchObject({ text: result, mistakes: [] })
  })

  it('are left as they are after a second dollar', () => {
    expect(filled(`$\${HOST} $5 \${HOST}`)).toBe(`\${HOST} $5 example.org`)
  })

  it.each([`\${MISSING}`, `\${EMPTY}`])('%s without a default is a mistake that names the variable', (text) => {
    const name = text.slice(2, -1)
    expect(fillIn(`x\${HOST}${text}`, environment).mistakes).toEqual([
      `the environment variable ${name} is not set; set it, or give a default: \${${name}:default}`,
    ])
  })

  it.each([`\${}`, `\${HOST`, `\${not a name}`, `\${:x}`, `\${a.b}`])('%s is a mistake', (text) => {
    expect(fillIn(text, environment).mistakes).toHaveLength(1)
  })

  it('never reach what an object inherits', () => {
    expect(fillIn(`\${constructor}`, environment).mistakes).toHaveLength(1)
  })

  it.each([
    [`\${PORT}`, true],
    [`\${PORT:8080}`, true],
    [` \${PORT}`, false],
    [`\${PORT}\${PORT}`, false],
    [`$\${PORT}`, false],
  ])('%s being a whole value is %s', (text, isWhole) => {
    expect(fillIn(text, environment).isWhole).toBe(isWhole)
  })
})

describe('text from outside', () => {
  it.each([
    ['8080', 8080],
    ['0.5', 0.5],
    ['-1', -1],
    ['true', true],
    ['false', false],
    ['yes', 'yes'],
    ['1e3', '1e3'],
    ['', ''],
  ])('%j may mean %j', (text, value) => expect(scalarOf(text)).toBe(value))
})

describe('masking', () => {
  it('keeps every character in its place, and can be undone', () => {
    const text = `a: { b: \${X:[1, 2] # c}, d: $\${Y} }`
    const masked = maskPlaceholders(text)
    expect(masked).toHaveLength(text.length)
    expect(masked.replaceAll(/[^{}[\],:#]/g, '')).toBe(':{:,:}')
    expect(unmaskPlaceholders(masked)).toBe(text)
  })
})
