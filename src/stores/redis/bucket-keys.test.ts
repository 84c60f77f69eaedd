import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { hashSlot } from '../../redis/client/hash-slot.js'
import { addLayout, bucketPrefix } from './bucket-keys.js'

type Parts = readonly [key: string, ruleSetId: string, ruleId: string, generation: string, label: string]

const band = (label: string): Band => ({
  label,
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 1,
  refillTokens: 1,
  windowTicks: 1_000,
})

function nameOf([key, ruleSetId, ruleId, generation, label]: Parts): string {
  const group: BucketGroup = { ruleSetId, ruleId, generation, permits: 1, bands: [band(label)] }
  return `${bucketPrefix('fluxgate', key)}${addLayout(new WeakMap(), group)[0]?.suffix}`
}

/** Strings that could be confused with separators, escapes or empty parts. */
const piece = fc.oneof(
  fc.constantFrom(
    ':',
    '{',
    '}',
    '%',
    '%3A',
    '%25',
    '%u',
    '%uD800',
    '%sha256-',
    ' ',
    '\n',
    '\u0000',
    '\u007f',
    '\u0085',
  ),
  fc.constantFrom('\u00a0', '\u2028', '\ufeff', '\ud800', '\udfff', '\ud83d\ude00', 'ä', '한', 'a', '0', 'A0', 'u'),
  fc.string({ unit: 'binary', maxLength: 3 }),
)
const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
const parts: fc.Arbitrary<Parts> = fc.tuple(text, text, text, text, text)

describe('the Redis key of a bucket', () => {
  it('is <prefix>:{<key>}:<ruleSet>:<rule>:<generation>:<band>', () => {
    expect(nameOf(['203.0.113.7', 'api', 'login', '0.abc', '5-per-1m'])).toBe(
      'fluxgate:{203.0.113.7}:api:login:0.abc:5-per-1m',
    )
  })

  it.each([
    ['2001:db8::1', '2001%3Adb8%3A%3A1'],
    ['{a}', '%7Ba%7D'],
    ['100%', '100%25'],
    ['a b\n', 'a%20b%0A'],
    ['\u0000', '%00'],
    ['\u2028', '%u2028'],
    ['\ud800', '%uD800'],
    ['\ud83d\ude00', '\ud83d\ude00'],
    ['ä한국', 'ä한국'],
    ['', '%'],
  ])('encodes the key %j as %s', (key, shown) => {
    expect(nameOf([key, 's', 'r', '1', 'b'])).toBe(`fluxgate:{${shown}}:s:r:1:b`)
  })

  it('is unique for every prefix, key, rule set, rule, generation and band', () => {
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        expect(nameOf(one) === nameOf(other)).toBe(one.every((part, i) => part === other[i]))
      }),
      { numRuns: 20_000 },
    )
    // Similar strings are more likely to collide than random ones.
    const names = new Map<string, string>()
    fc.assert(
      fc.property(text, (key) => {
        const name = nameOf([key, 's', 'r', '1', 'b'])
        expect(names.get(name) ?? key).toBe(key)
        names.set(name, key)
      }),
      { numRuns: 20_000 },
    )
  })

  it('stays unique when encoded as UTF-8', () => {
    fc.assert(
      fc.property(parts, (one) => {
        const name = nameOf(one)
        expect(Buffer.from(name).toString()).toBe(name)
        expect(name).not.toMatch(/\s/)
      }),
      { numRuns: 5_000 },
    )
  })

  it('contains a key of 128 bytes, and the digest of a key of 129 bytes', () => {
    const [, identity] = /\{(.*)\}/.exec(nameOf(['x'.repeat(128), 's', 'r', '1', 'b'])) ?? []
    expect(identity).toBe('x'.repeat(128))
    expect(nameOf(['x'.repeat(129), 's', 'r', '1', 'b'])).toMatch(/^fluxgate:\{%sha256-[\w-]{43}\}:s:r:1:b$/)
    // The limit is in bytes: a Hangul syllable has three.
    expect(nameOf(['한'.repeat(42), 's', 'r', '1', 'b'])).toContain('한')
    expect(nameOf(['한'.repeat(43), 's', 'r', '1', 'b'])).toContain('{%sha256-')
    // Escape sequences do not count.
    expect(nameOf([':'.repeat(128), 's', 'r', '1', 'b'])).toContain('%3A'.repeat(128))
  })

  it('distinguishes long keys, lone surrogates, and keys that look like a digest', () => {
    const long = 'x'.repeat(200)
    const names = [`${long}a`, `${long}b`, `${long}\ud800`, `${long}\ud801`, `${long}\ufffd`].map((key) =>
      nameOf([key, 's', 'r', '1', 'b']),
    )
    expect(new Set(names).size).toBe(5)
    const [, digest] = /\{(.*)\}/.exec(names[0] as string) ?? []
    expect(nameOf([digest as string, 's', 'r', '1', 'b'])).not.toBe(names[0])
  })

  it('has the same slot for all rules of one key', () => {
    fc.assert(
      fc.property(parts, parts, ([key, ...one], [, ...other]) => {
        expect(hashSlot(nameOf([key, ...one]))).toBe(hashSlot(nameOf([key, ...other])))
      }),
      { numRuns: 2_000 },
    )
  })
})
