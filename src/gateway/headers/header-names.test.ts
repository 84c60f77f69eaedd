import { describe, expect, it } from 'vitest'
import { HeaderNames } from './header-names.js'
import { untrustedHeaders } from './untrusted-headers.js'

const headerNames = (): HeaderNames => new HeaderNames(untrustedHeaders('X-Forwarded-For', ['X-User-Id']))

describe('a header name', () => {
  it.each([
    ['Accept', 'accept', false, false],
    ['X-User-Id', 'x-user-id', false, false],
    ['X_User_Id', 'x_user_id', false, true],
    ['x-REAL-ip', 'x-real-ip', false, true],
    ['Transfer-Encoding', 'transfer-encoding', true, false],
    ['__proto__', '__proto__', false, false],
  ])('%s is classified, and keeps its spelling', (name, lower, isStripped, isUntrusted) => {
    const names = headerNames()
    for (let i = 0; i < 2; i++) expect(names.find(name)).toEqual({ name, lower, isStripped, isUntrusted })
  })

  it('is kept for later requests, up to 64 characters and 1000 names', () => {
    const names = headerNames()
    const isKept = (name: string): boolean => {
      const found = names.find(name)
      return names.find(name) === found
    }
    expect([isKept('a'.repeat(64)), isKept('a'.repeat(65))]).toEqual([true, false])
    for (let i = 2; i <= 1_000; i++) names.find(`X-${i}`)
    expect([isKept('X-1000'), isKept('X-1001')]).toEqual([true, false])
    expect(names.find('X_User_Id').isUntrusted).toBe(true)
  })
})
