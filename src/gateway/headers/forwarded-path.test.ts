import { describe, expect, it } from 'vitest'
import { normalisePath } from '../../core/matching/paths/normalise-path.js'
import { seededRandom } from '../../core/seeded-random.js'
import { forwardedPath, hasHiddenDots } from './forwarded-path.js'

describe('forwardedPath', () => {
  it.each([
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/b/', '/a/b/'],
    ['/Case/Kept', '/Case/Kept'],
    ['//x/login', '/x/login'],
    ['/a//b//', '/a/b/'],
    ['/a\\..\\login', '/login'],
    ['/a/./b/../c', '/a/c'],
    ['/a/b/..', '/a/'],
    ['/a/b/%2E%2e', '/a/'],
    ['/a/b/.', '/a/b/'],
    ['/..', '/'],
    ['/../../a', '/a'],
    ['/%61%7E%2d', '/a~-'],
    ['/%40me%3b%2b', '/%40me%3B%2B'],
    ['/a%2fb%5cc', '/a%2Fb%5Cc'],
    ['/%zz%u0061', '/%25zz%25u0061'],
    ['/\u00c3\u00a9"<>', '/%C3%A9%22%3C%3E'],
    ['/.hidden/a.b/...', '/.hidden/a.b/...'],
  ])('of %j is %j', (path, forwarded) => {
    expect(forwardedPath(path)).toBe(forwarded)
  })

  const seed = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 2 ** 31)

  it(`does not change when it is applied twice, nor what is matched (FLUXGATE_TEST_SEED=${seed})`, () => {
    const random = seededRandom(seed)
    const pieces = [
      '/',
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2E',
      '\\',
      '%2F',
      '%5c',
      '%',
      '%zz',
      'a',
      'B',
      '%41',
      '%40',
      '@',
      ';',
      '*',
    ]
    for (let run = 0; run < 5_000; run++) {
      const length = 1 + Math.floor(random() * 8)
      const path = `/${Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]).join('')}`
      const once = forwardedPath(path)
      expect(forwardedPath(once), `seed ${seed}: ${path}`).toBe(once)
      expect(normalisePath(once), `seed ${seed}: ${path}`).toBe(normalisePath(path))
      expect(once, `seed ${seed}: ${path}`).not.toMatch(/\\|\/\/|\/\.\.?(?:\/|$)|%2e/i)
    }
  })
})

describe('hasHiddenDots', () => {
  it.each(['/a%2F..%2Fb', '/a/..%5Cb', '/a/..;/b', '/a/.;x=1', '/%2F.', '/a/..%3B/b'])('of %s', (path) => {
    expect(hasHiddenDots(path)).toBe(true)
  })
  it.each(['/a%2Fb', '/a..%2Fb', '/a/...;x', '/.well-known/a;b', '/a;..'])('not of %s', (path) => {
    expect(hasHiddenDots(path)).toBe(false)
  })
})
