import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { hashSlot } from '../../redis/client/hash-slot.js'
import { bucketPrefix, Layouts } from './bucket-keys.js'

type Parts = readonly [key: string, ruleSetId: string, ruleId: string, generation: string]

const band = (label: string): Band => ({
  label,
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 1,
  refillTokens: 1,
  windowTicks: 1_000,
})

const groupOf = (ruleSetId: string, ruleId: string, generation: string, ...labels: string[]): BucketGroup => ({
  ruleSetId,
  ruleId,
  generation,
  permits: 1,
  bands: labels.map(band),
})

const nameOf = ([key, ...tuple]: Parts): string =>
  `${bucketPrefix('fluxgate', key)}${new Layouts().of(groupOf(...tuple)).suffix}`

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
const parts: fc.Arbitrary<Parts> = fc.tuple(text, text, text, text)

describe('the Redis key of a bucket', () => {
  it('is <prefix>:{<key>}:<digest of rule set, rule and generation>', () => {
    // The first six characters of the SHA-256 of ["api","login","0.abc"], in base64url.
    expect(nameOf(['203.0.113.7', 'api', 'login', '0.abc'])).toBe('fluxgate:{203.0.113.7}:j7NET2')
  })

  it('takes 30 characters for an IPv4 address of 12 characters, which Redis stores in 32 bytes', () => {
    expect(nameOf(['203.0.113.70', 'api', 'login', '0.abc'])).toHaveLength(30)
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
    expect(nameOf([key, 's', 'r', '1'])).toBe(`fluxgate:{${shown}}:${nameOf(['', 's', 'r', '1']).slice(-6)}`)
  })

  it('is unique for every key, rule set, rule and generation', () => {
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
        const name = nameOf([key, 's', 'r', '1'])
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
    const [, identity] = /\{(.*)\}/.exec(nameOf(['x'.repeat(128), 's', 'r', '1'])) ?? []
    expect(identity).toBe('x'.repeat(128))
    expect(nameOf(['x'.repeat(129), 's', 'r', '1'])).toMatch(/^fluxgate:\{%sha256-[\w-]{43}\}:[\w-]{6}$/)
    // The limit is in bytes: a Hangul syllable has three.
    expect(nameOf(['한'.repeat(42), 's', 'r', '1'])).toContain('한')
    expect(nameOf(['한'.repeat(43), 's', 'r', '1'])).toContain('{%sha256-')
    // Escape sequences do not count.
    expect(nameOf([':'.repeat(128), 's', 'r', '1'])).toContain('%3A'.repeat(128))
  })

  it('distinguishes long keys, lone surrogates, and keys that look like a digest', () => {
    const long = 'x'.repeat(200)
    const names = [`${long}a`, `${long}b`, `${long}\ud800`, `${long}\ud801`, `${long}\ufffd`].map((key) =>
      nameOf([key, 's', 'r', '1']),
    )
    expect(new Set(names).size).toBe(5)
    const [, digest] = /\{(.*)\}/.exec(names[0] as string) ?? []
    expect(nameOf([digest as string, 's', 'r', '1'])).not.toBe(names[0])
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

describe('the ids of the bands of a rule', () => {
  const idsOf = (...labels: string[]) => new Layouts().of(groupOf('api', 'login', '0', ...labels)).ids

  it('stay the same when bands are added, removed or reordered', () => {
    const [a, b, c] = idsOf('a', 'b', 'c')
    expect(idsOf('c', 'a')).toEqual([c, a])
    expect(idsOf('d', 'b', 'a')).toEqual([expect.any(Number), b, a])
  })

  it('differ between rules, rule sets and generations', () => {
    const layouts = new Layouts()
    const tuples = [
      ['api', 'login', '0'],
      ['api', 'login', '1'],
      ['api', 'logout', '0'],
      ['web', 'login', '0'],
    ] as const
    expect(
      new Set(tuples.map(([set, rule, generation]) => layouts.of(groupOf(set, rule, generation, 'a')).ids[0])).size,
    ).toBe(4)
  })

  it('differ even if the digests of the labels do not', () => {
    // Depends only on the length of the label and on the attempt.
    const digest = (text: string) => Buffer.alloc(32, text.length + Number(text.at(-2)))
    const ids = (...labels: string[]) => new Layouts(digest).of(groupOf('api', 'login', '0', ...labels)).ids
    const [a, b, c] = ids('a', 'b', 'c')
    expect(new Set([a, b, c]).size).toBe(3)
    expect(ids('c', 'b', 'a')).toEqual([c, b, a])
  })
})
