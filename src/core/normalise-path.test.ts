import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalisePath } from './normalise-path.js'

describe('normalisePath', () => {
  it.each([
    ['/api/users', '/api/users'],
    ['/api//users', '/api/users'],
    ['/api/./users', '/api/users'],
    ['/api/users/', '/api/users'],
    ['/api/%75sers', '/api/users'],
    ['/api/v1/../users', '/api/users'],
    ['/api/v1/%2e%2E/users', '/api/users'],
    ['api/users', '/api/users'],
    ['/api/users?page=2', '/api/users'],
    ['/api/users/?page=/../x', '/api/users'],
    ['/api/users#top', '/api/users'],
    ['/api/users#top?page=2', '/api/users'],
    ['/api/users/..?page=2', '/api'],
    ['/api/.#top', '/api'],
    ['///api///users///', '/api/users'],
  ])('takes %s for %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

  it.each([
    [undefined, '/'],
    ['', '/'],
    ['/', '/'],
    ['//', '/'],
    ['.', '/'],
    ['/..', '/'],
    ['/../../..', '/'],
    ['?a=/b', '/'],
    ['/?a=/b', '/'],
    ['/#a', '/'],
    ['/.?a', '/'],
    ['//?a', '/'],
    ['/../a', '/a'],
    ['/a/..', '/'],
    ['/a/.', '/a'],
    ['/a/b/../../../c', '/c'],
  ])('never leaves the root: %s is %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

  it.each([
    ['/.well-known', '/.well-known'],
    ['/...', '/...'],
    ['/a/..b/.c./d..', '/a/..b/.c./d..'],
  ])('leaves dots alone that are part of a name: %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

  it('removes dot segments before it collapses slashes, as URL parsers do', () => {
    expect(normalisePath('/a//../b')).toBe('/a/b')
    expect(new URL('http://h/a//../b').pathname).toBe('/a/b')
  })

  it('decodes unreserved characters and no others', () => {
    expect(normalisePath('/%41%5a%61%7A%30%39%2d%2E%5f%7e')).toBe('/AZaz09-._~')
    expect(normalisePath('/a%2fb%3f%23%20%40%5b%7b%60')).toBe('/a%2Fb%3F%23%20%40%5B%7B%60')
    expect(normalisePath('/a%2Fb')).toBe('/a%2Fb')
    expect(normalisePath('/a\\..\\b')).toBe('/a\\..\\b')
  })

  it('decodes once: an escaped percent sign stays one', () => {
    expect(normalisePath('/%2575sers')).toBe('/%2575sers')
    expect(normalisePath('/%252e%252e/a')).toBe('/%252e%252e/a')
  })

  it('leaves a malformed percent sign as it is, also when what follows would complete it', () => {
    for (const path of ['/%', '/%4', '/%zz', '/100%', '/%%37', '/%7%35']) expect(normalisePath(path)).toBe(path)
    expect(normalisePath('/%%37%35')).toBe('/%%375')
    expect(normalisePath('/%zz%41')).toBe('/%zzA')
  })

  it('writes characters beyond ASCII as browsers send them', () => {
    expect(normalisePath('/café')).toBe('/caf%C3%A9')
    expect(normalisePath('/caf%c3%a9')).toBe('/caf%C3%A9')
    expect(normalisePath('/😀')).toBe('/%F0%9F%98%80')
    expect(normalisePath('/\ud800')).toBe('/%EF%BF%BD')
  })

  const pieces = ['/', '//', '.', '..', '/../', 'a', 'B7', '~', '%', '%2', '%2e', '%2F', '%2f', '%75', '%41', '%C3%A9']
  const spelling = fc
    .array(fc.oneof(fc.constantFrom(...pieces, '?', '#', '\\', 'é'), fc.string({ maxLength: 3 })), { maxLength: 12 })
    .map((parts) => parts.join(''))

  it('gives the normal spelling itself back', () => {
    fc.assert(
      fc.property(spelling, (text) => {
        const path = normalisePath(text)
        expect(normalisePath(path)).toBe(path)
      }),
      { numRuns: 2000 },
    )
  })

  it('agrees with the rules applied one after the other', () => {
    fc.assert(
      fc.property(spelling, (text) => {
        expect(normalisePath(text)).toBe(reference(text))
      }),
      { numRuns: 2000 },
    )
  })

  it('copes with a megabyte of anything', () => {
    const times = 1 << 18
    expect(normalisePath('/..'.repeat(times))).toBe('/')
    expect(normalisePath('////'.repeat(times))).toBe('/')
    expect(normalisePath('/%2e%2e'.repeat(times))).toBe('/')
    expect(normalisePath('%%%%'.repeat(times))).toHaveLength(4 * times + 1)
    expect(normalisePath('/a/..'.repeat(times))).toBe('/')
  })
})

/** Character by character and segment by segment, without a thought for speed. */
function reference(text: string): string {
  const [path = ''] = text.split(/[?#]/)
  let decoded = ''
  for (let i = 0; i < path.length; ) {
    const triplet = path.slice(i, i + 3)
    const behindStray = /%[0-9A-Fa-f]?$/.test(path.slice(0, i))
    if (/^%[0-9A-Fa-f]{2}$/.test(triplet) && !behindStray) {
      const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
      decoded += /[\w.~-]/.test(character) ? character : triplet.toUpperCase()
      i += 3
    } else decoded += path[i++]
  }
  const ascii = Array.from(decoded, (character) =>
    character <= '\u007f' ? character : encodeURIComponent(character.replace(/\p{Surrogate}/u, '\ufffd')),
  ).join('')
  let segments = ascii.split('/')
  for (let i = segments.findIndex((segment) => /^\.\.?$/.test(segment)); i >= 0; ) {
    const from = segments[i] === '..' ? Math.max(0, i - 1) : i
    segments = [...segments.slice(0, from), ...segments.slice(i + 1)]
    i = segments.findIndex((segment) => /^\.\.?$/.test(segment))
  }
  return `/${segments.filter(Boolean).join('/')}`
}
