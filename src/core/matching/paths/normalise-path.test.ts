import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { interpretPath, normalisePath } from './normalise-path.js'

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
  ])('normalises %s to %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

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
  ])('never leaves the root: normalises %s to %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

  it.each([
    ['/.well-known', '/.well-known'],
    ['/...', '/...'],
    ['/a/..b/.c./d..', '/a/..b/.c./d..'],
  ])('keeps dots that are part of a name: %s', (spelling, path) => expect(normalisePath(spelling)).toBe(path))

  it('removes dot segments before it collapses slashes, as URL parsers do', () => {
    expect(normalisePath('/a//../b')).toBe('/a/b')
    expect(new URL('http://h/a//../b').pathname).toBe('/a/b')
  })

  it('decodes characters that are legal in a segment and encodes all others', () => {
    expect(normalisePath('/%41%5a%61%7A%30%39%2d%2E%5f%7e', true)).toBe('/AZaz09-._~')
    expect(normalisePath('/%21%24%26%27%28%29%2b%2c%3b%3d%3a%40')).toBe("/!$&'()+,;=:@")
    expect(normalisePath('/a%2fb%3f%23%20%5b%5d%7b%60%7c%22%00')).toBe('/a%2Fb%3F%23%20%5B%5D%7B%60%7C%22%00')
    expect(normalisePath('/a b[]{}`|"<>^')).toBe('/a%20b%5B%5D%7B%7D%60%7C%22%3C%3E%5E')
    expect(normalisePath('/a%2Fb%5c')).toBe('/a%2Fb%5C')
  })

  it('always encodes an asterisk, so that it differs from a wildcard', () => {
    expect(normalisePath('/a*b')).toBe('/a%2Ab')
    expect(normalisePath('/a%2ab')).toBe('/a%2Ab')
  })

  it('treats a backslash as a slash', () => {
    expect(normalisePath('/a\\..\\b')).toBe('/b')
    expect(normalisePath('/a\\b\\')).toBe('/a/b')
  })

  it('extracts the path of an absolute URL', () => {
    expect(normalisePath('http://host:80/Login?x')).toBe('/login')
    expect(normalisePath('HTTPS://user@host')).toBe('/')
    expect(normalisePath('http://host\\login')).toBe('/login')
  })

  it('ignores letter case unless it is case-sensitive', () => {
    expect(normalisePath('/API/Users%2F%C3%89')).toBe('/api/users%2F%C3%A9')
    expect(normalisePath('/API/Users%2f%C3%89', true)).toBe('/API/Users%2F%C3%89')
    expect(normalisePath('/Login?Next=/A')).toBe('/login')
    expect(normalisePath('/A%20B')).toBe('/a%20b')
  })

  it('folds all letters that an upstream may treat as equal', () => {
    const spellings = [
      ['k', 'K', '\u212a'],
      ['s', 'S', '\u017f'],
      ['i', 'I', '\u0131'],
      ['ß', 'ẞ', 'ss', 'SS'],
      ['ς', 'σ', 'Σ'],
      ['ﬁ', 'fi', 'FI'],
      ['é', 'É'],
    ]
    for (const [first = '', ...others] of spellings)
      for (const other of others) {
        expect(normalisePath(`/x${other}y`), other).toBe(normalisePath(`/x${first}y`))
        expect(normalisePath(`/x${encodeURIComponent(other)}y`), other).toBe(normalisePath(`/x${first}y`))
      }
    expect(normalisePath('/%C3%A9%FF')).toBe('/%C3%A9%FF')
  })

  it('decodes only once, so that an escaped percent sign stays escaped', () => {
    expect(normalisePath('/%2575sers')).toBe('/%2575sers')
    expect(normalisePath('/%252e%252e/a')).toBe('/%252e%252e/a')
  })

  it('encodes a percent sign that starts no escape, even if decoding would complete it', () => {
    expect(normalisePath('/%')).toBe('/%25')
    expect(normalisePath('/100%')).toBe('/100%25')
    expect(normalisePath('/%4')).toBe('/%254')
    expect(normalisePath('/%zz%41')).toBe('/%25zza')
    expect(normalisePath('/%%37%35')).toBe('/%2575')
  })

  it('encodes non-ASCII characters as browsers do', () => {
    expect(normalisePath('/café')).toBe('/caf%C3%A9')
    expect(normalisePath('/caf%c3%a9')).toBe('/caf%C3%A9')
    expect(normalisePath('/😀')).toBe('/%F0%9F%98%80')
    expect(normalisePath('/\ud800')).toBe('/%EF%BF%BD')
  })

  const pieces = [
    '/',
    '//',
    '.',
    '..',
    '/../',
    'a',
    'B7',
    '~',
    '%',
    '%2',
    '%2e',
    '%2F',
    '%2f',
    '%75',
    '%41',
    '%C3%A9',
    '%5C',
    ';',
    '*',
    '%E2%84%AA',
  ]
  const spelling = fc
    .array(fc.oneof(fc.constantFrom(...pieces, '?', '#', '\\', 'é'), fc.string({ maxLength: 3 })), { maxLength: 12 })
    .map((parts) => parts.join(''))

  it('is idempotent', () => {
    fc.assert(
      fc.property(spelling, (text) => {
        for (const caseSensitive of [false, true]) {
          const path = normalisePath(text, caseSensitive)
          expect(normalisePath(path, caseSensitive)).toBe(path)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('agrees with a reference implementation that applies one rule after the other', () => {
    fc.assert(
      fc.property(spelling, (text) => {
        expect(normalisePath(text, true)).toBe(reference(text))
        expect(normalisePath(text)).toBe(folded(reference(text)))
      }),
      { numRuns: 2000 },
    )
  })

  it('handles paths of 256 KiB', () => {
    const times = 1 << 16
    expect(normalisePath('/..'.repeat(times))).toBe('/')
    expect(normalisePath('////'.repeat(times))).toBe('/')
    expect(normalisePath('/%2e%2e'.repeat(times))).toBe('/')
    expect(normalisePath('%%%%'.repeat(times))).toHaveLength(12 * times + 1)
    expect(normalisePath('/a/..'.repeat(times))).toBe('/')
  })
})

describe('interpretPath', () => {
  it.each([
    ['//x/login', '/login'],
    ['///x/login', '/login'],
    ['/\\x/login', '/login'],
    ['http://host//x/login', '/login'],
    ['http:///host/login', '/login'],
    ['http:///host/login', '/host/login'],
    ['HTTP:////host/login', '/login'],
    ['http://\\host\\login', '/login'],
    ['//host/api/@me%2flogin', '/api/@me/login'],
    ['/a\\..\\login', '/login'],
    ['/a%5C..%5clogin', '/login'],
    ['/a%2F..%2flogin', '/login'],
    ['/a/..;/login', '/login'],
    ['/a;x=1/..;y/login;z', '/login'],
    ['/login;x=/y', '/login'],
    ['/login%3Bx', '/login'],
    ['/a//../login', '/login'],
    ['/a//../login', '/a/login'],
    ['/files/../x', '/files/../x'],
    ['/files/%2e%2E/x', '/files/../x'],
    ['/files\\x', '/files%5Cx'],
  ])('also interprets %s as %s', (path, reading) => expect(interpretPath(path)).toContain(reading))

  it.each([
    ['/login', '/login'],
    ['/Login/?a;b\\c', '/login'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a:b@c,d=e', '/a:b@c,d=e'],
    ['/a%20b', '/a%20b'],
    ['/caf%C3%A9/', '/caf%C3%A9'],
    [undefined, '/'],
  ])('has a single interpretation of %s', (path, reading) => expect(interpretPath(path)).toBe(reading))

  it('returns the normalised path first, no duplicates, and a bounded number of interpretations', () => {
    const path = '//h/x;%2F..\\A//./%5C;..//..;/b%2f'.repeat(100)
    const readings = interpretPath(path)
    expect(readings[0]).toBe(normalisePath(path))
    expect(new Set(readings).size).toBe(readings.length)
    expect(readings.length).toBeLessThanOrEqual(25)
    expect(interpretPath(path, true)[0]).toBe(normalisePath(path, true))
  })
})

/** A simple, slow implementation that works character by character and segment by segment. */
function reference(text: string): string {
  const [target = ''] = text.split(/[?#]/)
  const path = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i, '')
  let decoded = ''
  for (let i = 0; i < path.length; ) {
    const triplet = path.slice(i, i + 3)
    const isEscape = /^%[0-9A-Fa-f]{2}$/.test(triplet)
    const character = isEscape
      ? String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
      : String.fromCodePoint(path.codePointAt(i) as number)
    if (/^[\w.~!$&'()+,;=:@-]$/.test(character) || (!isEscape && character === '/')) decoded += character
    else if (isEscape) decoded += triplet.toUpperCase()
    else decoded += character === '\\' ? '/' : encodedCharacter(character)
    i += isEscape ? 3 : character.length
  }
  let segments = decoded.split('/')
  for (let i = segments.findIndex((segment) => /^\.\.?$/.test(segment)); i >= 0; ) {
    const from = segments[i] === '..' ? Math.max(0, i - 1) : i
    segments = [...segments.slice(0, from), ...segments.slice(i + 1)]
    i = segments.findIndex((segment) => /^\.\.?$/.test(segment))
  }
  return `/${segments.filter(Boolean).join('/')}`
}

const encodedCharacter = (character: string): string =>
  `%${Buffer.from(character).toString('hex').toUpperCase().match(/../g)?.join('%')}`

/** Folds letter case by decoding all valid UTF-8 and encoding it again. */
function folded(path: string): string {
  return path.replace(/(?:%[89A-F][0-9A-F])+|%..|[^%]+/g, (run) => {
    if (!run.startsWith('%')) return run.toLowerCase()
    const bytes = Buffer.from(run.replaceAll('%', ''), 'hex')
    const text = bytes.toString()
    if (run < '%8' || Buffer.compare(Buffer.from(text), bytes) !== 0) return run
    return Array.from(text, (character) => {
      const same = character.toLowerCase().toUpperCase().toLowerCase()
      return Array.from(same, (one) => (one <= '\u007f' ? one : encodedCharacter(one))).join('')
    }).join('')
  })
}
