import { describe, expect, it } from 'vitest'
import { decodeHold, encodeHold } from './hold-token.js'

const token = {
  hold: { high: 0x01234567, low: 0xffffffff },
  isLocal: false,
  ruleSetId: 'api',
  maxHoldMs: 60_000,
  buckets: [
    { ruleId: 'slots', key: 'ключ {1}\r\n' },
    { ruleId: 'slots', key: '__proto__' },
  ],
}

describe('a hold id', () => {
  it('names its buckets', () => {
    expect(decodeHold(encodeHold(token))).toEqual(token)
  })

  it('names each bucket once, even if a client repeats it', () => {
    const repeated = Array.from({ length: 2_000 }, () => token.buckets).flat()
    expect(decodeHold(encodeHold({ ...token, buckets: repeated }))).toEqual(token)
  })

  it('is rejected if it is another text', () => {
    for (const text of ['', 's', 's0123456789abcdef.', 's0123456789abcdef.W10', 'x0123456789abcdef.e30', 7, null])
      expect(() => decodeHold(text)).toThrow('holdId must be the holdId of a decision')
  })

  it('is rejected if its maximum hold is longer than that of any rule', () => {
    for (const maxHoldMs of [0, -1, 1e300])
      expect(() => decodeHold(encodeHold({ ...token, maxHoldMs }))).toThrow('received another string')
  })
})
