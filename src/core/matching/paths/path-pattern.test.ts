import { describe, expect, it } from 'vitest'
import { normalisePath } from './normalise-path.js'
import { compilePathPattern, pathPatternIssue } from './path-pattern.js'
import { capturedFrom, matchesPath } from './tree-search.js'

const matches = (pattern: string, path: string) => matchesPath(compilePathPattern(pattern), normalisePath(path))

function captured(pattern: string, path: string) {
  const compiled = compilePathPattern(pattern)
  if (!matchesPath(compiled, path)) throw new Error(`${pattern} does not match ${path}`)
  return compiled.captures && capturedFrom(compiled.captures, path)
}

describe('path patterns', () => {
  it.each([
    ['/api/**', ['/api', '/api/', '/api/a', '/api/a/b/c'], ['/', '/apis', '/x/api']],
    ['/**', ['/', '/a', '/a/b'], []],
    ['/', ['/', ''], ['/a']],
    ['/*', ['/a', '/a.b'], ['/', '/a/b']],
    ['/*/b', ['/a/b'], ['/b', '/a/a/b', '/a/b/c']],
    ['/**/b', ['/b', '/a/b', '/a/b/b'], ['/', '/b/a', '/ab']],
    ['/a/**/z', ['/a/z', '/a/b/z', '/a/b/c/z', '/a/z/z'], ['/a', '/z', '/a/z/y']],
    ['/a/**/**/z', ['/a/z', '/a/b/z'], ['/a']],
    ['/files/*.json', ['/files/a.json', '/files/.json'], ['/files/a.xml', '/files/a/b.json']],
    ['/v?/x', ['/v1/x'], ['/v/x', '/v10/x', '/v//x']],
    ['/a**b', ['/ab', '/a-b'], ['/a/b']],
    ['/users/{id}', ['/users/7', '/users/{id}'], ['/users', '/users/7/x']],
    ['/files/{id}.json', ['/files/7.json'], ['/files/.json', '/files/7.xml']],
    ['/api/', ['/api', '/api/'], ['/api/a']],
    ['//api/./v1/../%75sers', ['/api/users'], ['/api/v1/users']],
    ['api', ['/api'], []],
    ['/café/*', ['/café/1', '/caf%c3%a9/1'], ['/cafe/1']],
    ['/a%2fb', ['/a%2Fb', '/a%2fb'], ['/a/b']],
    ['/users/:id', ['/users/7', '/users/:id'], ['/users', '/users/7/x']],
    ['/:a/x/:b_2', ['/1/x/2'], ['/1/x']],
    ['/users:batch', ['/users:batch', '/users%3Abatch'], ['/users7']],
    ['/%3Aid', ['/:id', '/%3aid'], ['/7']],
    ['/{id}:cancel', ['/7:cancel', '/7%3Acancel'], ['/7']],
    ['/a%2Ab', ['/a*b', '/a%2ab'], ['/ab', '/aXb']],
    ['/a%3fb', ['/a%3Fb'], ['/aXb']],
    ['/%7Bid%7D', ['/{id}', '/%7bid%7d'], ['/7']],
    ['/@me', ['/@me', '/%40me', '/%40ME'], ['/me']],
    ['/a b|c', ['/a b|c', '/a%20b%7Cc'], ['/abc']],
    ['/Login/*.JSON', ['/login/a.json', '/LOGIN/A.Json'], ['/login/a.xml']],
    ['/CAFÉ/?', ['/café/é', '/caf%C3%89/%C3%89'], ['/cafe/e']],
    ['/kiosk', ['/%E2%84%AAio%C5%BFk'], ['/kiok']],
  ])('%s matches %j but not %j', (pattern, same, different) => {
    for (const path of same) expect(matches(pattern, path), path).toBe(true)
    for (const path of different) expect(matches(pattern, path), path).toBe(false)
  })

  it('captures whole segments and parts of segments', () => {
    expect(captured('/users/{id}', '/users/7')).toEqual({ id: '7' })
    expect(captured('/t/{tenant}/files/v{name}.json', '/t/acme/files/v12.json')).toEqual({ tenant: 'acme', name: '12' })
    expect(captured('/users/*', '/users/7')).toBeUndefined()
  })

  it('captures before and after a double star', () => {
    expect(captured('/{first}/**/{last}', '/a/b')).toEqual({ first: 'a', last: 'b' })
    expect(captured('/{first}/**/{last}', '/a/b/c/d')).toEqual({ first: 'a', last: 'd' })
    expect(captured('/**/users/{id}/**', '/x/users/users/7')).toEqual({ id: 'users' })
    expect(captured('/**/users/{id}', '/users/1/users/2')).toEqual({ id: '2' })
  })

  it('distinguishes letter case if case-sensitive', () => {
    const pattern = compilePathPattern('/Users/:Id', true)
    expect(matchesPath(pattern, normalisePath('/Users/%41b', true))).toBe(true)
    expect(matchesPath(pattern, normalisePath('/users/ab', true))).toBe(false)
    expect(pattern.captures && capturedFrom(pattern.captures, '/Users/Ab')).toEqual({ Id: 'Ab' })
  })

  it('decodes captured values, or returns them unchanged if they cannot be decoded', () => {
    expect(captured('/n/{name}', '/n/a%20b%2Fc')).toEqual({ name: 'a b/c' })
    expect(captured('/n/{name}', normalisePath('/n/100%'))).toEqual({ name: '100%' })
    expect(captured('/n/{name}', '/n/%FF')).toEqual({ name: '%FF' })
  })

  it('gives equivalent patterns the same shape', () => {
    expect(compilePathPattern('/a/{x}/b/').shape).toBe(compilePathPattern('/a/*/b').shape)
    expect(compilePathPattern('/{x}.json').shape).not.toBe(compilePathPattern('/*.json').shape)
  })

  it('describes the issue of an invalid pattern', () => {
    for (const fine of [
      '/:id',
      '/a:b',
      '/%3Aa-b',
      '/',
      '/**',
      '/a/{id}',
      '/a/{id}.json',
      '/{a-b}/{c_d}',
      'api',
      '/a?b*',
    ]) {
      expect(pathPatternIssue(fine), fine).toBeUndefined()
    }
    for (const broken of [
      '/:a-b',
      '/:',
      '/:a.json',
      '/:a{b}',
      '/:__proto__',
      '/:a*',
      '/{',
      '/a}',
      '/{}',
      '/{a}{b}',
      '/{a}*',
      '/{id:[0-9]+}',
      '/{*rest}',
      '/{__proto__}',
      '/{é}',
    ]) {
      expect(pathPatternIssue(broken), broken).toContain('may contain one {name}')
    }
    expect(pathPatternIssue('/:id/x/{id}')).toBe('captures "{id}" twice')
    expect(pathPatternIssue('/{id}/x/{id}')).toBe('captures "{id}" twice')
    expect(pathPatternIssue('/a'.repeat(64))).toBeUndefined()
    expect(pathPatternIssue('/a'.repeat(65))).toBe('must have at most 64 segments')
    expect(pathPatternIssue(`/${'a'.repeat(2047)}`)).toBeUndefined()
    expect(pathPatternIssue(`/${'a'.repeat(2048)}`)).toBe('must have at most 2048 characters')
  })

  it('matches paths of ten thousand segments', () => {
    const path = '/a'.repeat(10_000)
    expect(matches('/**/a/**/b/**', path)).toBe(false)
    expect(matches('/**/a/**/a/**/a/**/b', `${path}/b`)).toBe(true)
    expect(matches('/**/a/a/a/a/a/b/**', path)).toBe(false)
  })
})
