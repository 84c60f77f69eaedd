import { describe, expect, it } from 'vitest'
import type { BucketGroup, Charge } from '../../core/bucket-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { AlgorithmName, Band } from '../../core/rule.js'
import { band, chargeOf, group } from '../../testing/fixtures.js'
import { Layouts } from './bucket-keys.js'
import { decode, newEdit } from './decode.js'
import { encode } from './encode.js'
import type { Names, Operation } from './operation.js'

const bandOf = (label: string, algorithm: AlgorithmName = 'TOKEN_BUCKET'): Band =>
  band({ label, algorithm, refillTokens: 5 })
const ruleOf = (ruleId: string, ...bands: Band[]): BucketGroup => group(ruleId, bands)
const asked = (rule: BucketGroup, key: string, given: Partial<Charge> = {}): Charge =>
  chargeOf(rule, key, { permits: 2, maxWaitTicks: 3, ...given })
const names: Names = {
  prefix: 'p',
  layouts: new Layouts(),
  calendarSpan: () => ({ from: 0, to: 0 }),
  overrideOf: (rule, key) => ({
    hash: `hash/${rule.ruleId}/${key}`,
    otherwise: key === 'a' ? Buffer.of(2) : Buffer.of(),
  }),
}
const edit = { key: 'last edit', known: 'known' }
const charge = (...items: Charge[]): Operation => ({ type: 'CHARGE', items })

function numbersOf(batch: readonly Operation[], now = 7): { keys: readonly string[]; numbers: number[] } {
  const { keys, args } = encode(batch, names, now, edit)
  return { keys, numbers: JSON.parse(args[0] as string) }
}

/** The Redis key and, per band, the numbers that the script receives. */
const nameOf = (rule: BucketGroup, key: string): string => `p:{${key}}${names.layouts.of(rule).suffix}`
const termsOf = (rule: BucketGroup): readonly number[] => names.layouts.of(rule).terms as readonly number[]

describe('the encoded batch', () => {
  const cell = bandOf('cell')
  const log = bandOf('log', 'SLIDING_WINDOW_LOG')
  const [one, two] = [ruleOf('one', cell), ruleOf('two', log, bandOf('cell2'))]

  it('describes a band by its tag, capacity, tokens and window', () => {
    const [id] = names.layouts.of(one).ids
    expect(termsOf(one)).toEqual([(id as number) * 256 + 1, 10, 5, 1_000_000])
    expect(termsOf(two).map((term) => term % 256)).toEqual([5, 10, 5, 1_000_000 % 256, 1, 10, 5, 1_000_000 % 256])
  })

  it('adds the definition to a band that keeps its used fraction, which may differ from the limits of a call', () => {
    const rule = { ...one, definitions: [cell], bands: [{ ...cell, capacity: 7 }] }
    const [id] = names.layouts.of(rule).ids
    const numbers = [(id as number) * 256 + 65, [7, 10, 5, 1_000_000], 5, 1_000_000]
    expect(names.layouts.of(rule).terms).toEqual(numbers)
  })

  it('combines equal charges of separate keys into one run', () => {
    expect(numbersOf([charge(asked(one, 'a')), charge(asked(one, 'b'))])).toEqual({
      keys: [nameOf(one, 'a'), nameOf(one, 'b')],
      // now, keys without logs, bands, entries; the band; run, decisions, items of each, first key; permits, maxWaitTicks, first band, bands.
      numbers: [7, 2, 1, 1, ...termsOf(one), ...[7, 2, 1, 1], ...[2, 3, 1, 1]],
    })
  })

  it('starts a new run for other permits, waits or rules', () => {
    const three = ruleOf('three', cell, bandOf('cell3'))
    const { keys, numbers } = numbersOf([
      charge(asked(one, 'a')),
      charge(asked(one, 'b', { permits: 1 })),
      charge(asked(one, 'c', { maxWaitTicks: 9 })),
      charge(asked(three, 'd'), asked(one, 'd')),
      charge(asked(three, 'e'), asked(one, 'e')),
      charge(),
    ])
    expect(keys).toHaveLength(7)
    expect(numbers.slice(0, 4 + 12)).toEqual([7, 7, 3, 5, ...termsOf(one), ...termsOf(three)])
    expect(numbers.slice(4 + 12)).toEqual([
      ...[7, 1, 1, 1, ...[2, 3, 1, 1]],
      ...[7, 1, 1, 2, ...[1, 3, 1, 1]],
      ...[7, 1, 1, 3, ...[2, 9, 1, 1]],
      ...[7, 2, 2, 4, ...[2, 3, 2, 2], ...[2, 3, 1, 1]],
      ...[7, 1, 0, 1],
    ])
  })

  it('ends with the lookups if rules have overrides', () => {
    const rule = { ...two, hasOverrides: true }
    const refund = { group: rule, key: 'a', permits: 1 }
    const batch: Operation[] = [
      charge(asked(one, 'a'), asked(rule, 'a')),
      { type: 'REFUND', items: [refund, { ...refund, grantedAt: [1, 1] }] },
    ]
    const { keys, args, lookups } = encode(batch, names, 7, edit)
    expect(keys).toEqual([nameOf(one, 'a'), 'last edit', nameOf(two, 'a'), 'hash/two/a', 'hash/two/a'])
    // Per lookup: operation, item, first band, bands, key. A refund with grantedAt needs none.
    const [, known, looks, ...texts] = args
    expect(known).toBe('known')
    expect(JSON.parse(looks as string)).toEqual([0, ...[1, 2, 2, 2, 3], ...[2, 1, 2, 2, 3]])
    expect(texts).toEqual(['a', 'a', Buffer.of(2), Buffer.of(2)])
    expect(lookups).toEqual([
      { operation: batch[0], item: 1, otherwise: Buffer.of(2) },
      { operation: batch[1], item: 0, otherwise: Buffer.of(2) },
    ])
  })

  it('contains each key once with logs last, and lists shared keys in runs', () => {
    const { keys, numbers } = numbersOf([
      charge(asked(two, 'a')),
      charge(asked(one, 'a')),
      charge(asked(one, 'b'), asked(one, 'a')),
      charge(asked(one, 'c')),
      charge(asked(one, 'a')),
      charge(asked(one, 'd')),
      charge(asked(one, 'e'), asked(one, 'e')),
    ])
    const names = ['a', 'b', 'c', 'd', 'e'].map((key) => nameOf(one, key))
    expect(keys).toEqual([...names, nameOf(two, 'a')])
    expect(numbers.slice(0, 4)).toEqual([7, 5, 3, 6])
    expect(numbers.slice(4 + 12)).toEqual([
      ...[1, 1, ...[2, 3, 0, 6, 1, 2]],
      ...[7, 1, 1, 0, ...[2, 3, 3, 1], 1],
      ...[7, 1, 2, 0, ...[2, 3, 3, 1], ...[2, 3, 3, 1], 2, 1],
      ...[7, 1, 1, 3, ...[2, 3, 3, 1]],
      ...[7, 2, 1, 0, ...[2, 3, 3, 1], 1, 4],
      ...[1, 2, ...[2, 3, 0, 5, 3, 1], ...[2, 3, 0, 5, 3, 1]],
    ])
  })

  it('contains shadow charges, refunds with their grant times, resets, peeks and corrected timestamps', () => {
    const { numbers } = numbersOf([
      charge(asked(one, 'a', { shadow: true })),
      { type: 'REFUND', items: [{ group: one, key: 'b', permits: 4, grantedAt: [99] }] },
      { type: 'REFUND', items: [{ group: one, key: 'c', permits: 4 }] },
      { type: 'RESET', items: [{ group: one, key: 'd' }] },
      { type: 'PEEK', items: [asked(one, 'e', { permits: 0 })] },
      { type: 'BACKDATE', items: [{ group: one, key: 'f', from: 88, instants: [77] }] },
    ])
    expect(numbers.slice(8)).toEqual([
      ...[1, 1, ...[2, 3, 1, 1, 1, 1]],
      ...[3, 1, ...[4, 0, 0, 2, 1, 1], 99],
      ...[3, 1, ...[4, 0, 0, 3, 1, 1], -1],
      ...[6, 1, ...[0, 0, 0, 4, 1, 1]],
      ...[2, 1, ...[0, 3, 0, 5, 1, 1]],
      ...[8, 1, ...[88, 0, 0, 6, 1, 1], 77],
    ])
  })
})

/** A buffer at an unaligned offset, as clients return slices of what they have read. */
function bytes(...numbers: readonly number[]): Buffer {
  const read = Buffer.alloc(1 + numbers.length * 8)
  for (const [i, number] of numbers.entries()) read.writeDoubleLE(number, 1 + i * 8)
  return read.subarray(1)
}

describe('the decoded reply', () => {
  const rule = ruleOf('rule', bandOf('a'), bandOf('b'))

  it('has one result per operation in order, and an error concerns only its own operation', () => {
    const granted = [1, ...[0, 0, 9, 100], ...[0, 0.5, 8, 200]]
    const rejected = [0, ...[-1, 0, 9, 100, 0, 0, 0, 0, 0], ...[40, 0, 0, 200, 4, 1, 2, 3, 4]]
    const reply = [
      bytes(50, ...granted, 2, ...rejected, 1, ...rejected, 1, ...[0, 0, 1, 2], ...[0, 0, 1, 2]),
      Buffer.from('key holds something that is not a bucket'),
    ]
    const [first, second, third, fourth, fifth, sixth] = decode(
      [
        charge(asked(rule, 'a')),
        charge(asked(rule, 'b')),
        charge(asked(rule, 'c')),
        { type: 'RESET', items: [{ group: rule, key: 'd' }] },
        { type: 'PEEK', items: [asked(rule, 'e')] },
        { type: 'PEEK', items: [asked(rule, 'f')] },
      ],
      reply,
    )
    expect(first).toEqual({
      granted: true,
      now: 50,
      bands: [
        { allowed: true, delay: 0, retryAfter: 0, remaining: 9, resetAt: 100 },
        { allowed: true, delay: 0.5, retryAfter: 0, remaining: 8, resetAt: 200 },
      ],
    })
    expect(second).toBeInstanceOf(FluxGateError)
    expect(second).toMatchObject({
      code: 'FLUXGATE_BUCKET_INVALID',
      message: 'The bucket store could not decide: key holds something that is not a bucket.',
    })
    // Each band is followed by its state.
    expect(third).toMatchObject({ granted: false, states: [undefined, [1, 2, 3, 4]] })
    expect(third).toMatchObject({
      bands: [{ allowed: false, retryAfter: Number.POSITIVE_INFINITY }, { retryAfter: 40 }],
    })
    expect(fourth).toEqual({ granted: true, now: 50, bands: [] })
    expect(fifth).toEqual(third)
    expect(sixth).not.toHaveProperty('states')
  })

  it('is only bytes if no operation failed, and has a short form if all bands allow without delay', () => {
    expect(decode([charge(asked(ruleOf('r', bandOf('a')), 'a'))], bytes(50, 3, 9, 100))).toEqual([
      { granted: true, now: 50, bands: [{ allowed: true, delay: 0, retryAfter: 0, remaining: 9, resetAt: 100 }] },
    ])
  })

  it('has one number per band if token buckets or fixed windows allow, from which their results are computed', () => {
    const bands = [bandOf('bucket'), bandOf('window', 'FIXED_WINDOW')]
    const [answer] = decode([charge(asked(ruleOf('r', ...bands), 'a'))], bytes(2_500_000, -2_500_001, -4))
    expect(answer).toEqual({
      granted: true,
      now: 2_500_000,
      bands: [
        // Two and a half permits and one tick are lacking: three are missing, and five are refilled per second.
        { allowed: true, delay: 0, retryAfter: 0, remaining: 7, resetAt: 3_000_001 },
        { allowed: true, delay: 0, retryAfter: 0, remaining: 6, resetAt: 3_000_000 },
      ],
    })
  })

  it.each([
    [-2_000_000, 8],
    [-2_000_001, 7],
    [-1, 9],
    [-10_000_000, 0],
  ])('rounds the missing permits of a token bucket that lacks %d up', (number, remaining) => {
    const [answer] = decode([charge(asked(ruleOf('r', bandOf('a')), 'a'))], bytes(50, number))
    expect(answer).toMatchObject({ bands: [{ remaining, resetAt: 50 + Math.ceil(-number / 5) }] })
  })

  it('has only the buckets of token buckets that deny, from which their results are computed', () => {
    const [answer] = decode([charge(asked(rule, 'a'))], bytes(500_000, 4, ...[1, 0, 400_000], ...[0, 250_000, 500_000]))
    expect(answer).toEqual({
      granted: false,
      now: 500_000,
      bands: [
        // Half a permit has been refilled: one is left, which is not enough for two.
        { allowed: false, delay: 0, retryAfter: 100_000, remaining: 1, resetAt: 2_200_000 },
        { allowed: false, delay: 0, retryAfter: 350_000, remaining: 0, resetAt: 2_450_000 },
      ],
      states: [
        [1, 0, 400_000, 1_000_000],
        [0, 250_000, 500_000, 1_000_000],
      ],
    })
  })

  it('includes the previous timestamp of a bucket after the clock has stepped back', () => {
    const [answer] = decode(
      [charge(asked(ruleOf('r', bandOf('a')), 'a'))],
      bytes(50, 0, ...[9, 0, 0, 60], ...[77, 1, 2, 50, 4]),
    )
    expect(answer).toMatchObject({ states: [[1, 2, 50, 4, 77]] })
  })

  it('has no state for a bucket with leased permits', () => {
    const [answer] = decode(
      [charge(asked(ruleOf('r', bandOf('a')), 'a'))],
      bytes(50, 0, ...[9, 0, 0, 60], ...[-1, 0, 0, 0, 0]),
    )
    expect(answer).toMatchObject({ states: [null] })
  })

  describe('rejects a reply that the script does not return', () => {
    const one = ruleOf('r', bandOf('a'))
    const batch = [charge(asked(one, 'a'))]
    const granted = [50, 3, 9, 100]
    const taken = [50, -1_500_000]
    const rejected = [50, 0, ...[40, 0, 0, 200], ...[4, 1, 2, 3, 4]]
    const replies: Readonly<Record<string, unknown>> = {
      'a string': bytes(...granted).toString('latin1'),
      'a list that begins with a string': [bytes(...granted).toString('latin1')],
      nothing: null,
      'an integer': 1,
      'an object': {},
      'an empty list': [],
      'no bytes': Buffer.alloc(0),
      'part of a number': bytes(...granted).subarray(0, 31),
      'a number too few': bytes(...granted.slice(0, 3)),
      'a number too many': bytes(...granted, 0),
      'results of another decision': bytes(...granted, ...granted.slice(1)),
      'a time that is not a number': bytes(Number.NaN, 3, 9, 100),
      'a time with a fraction': bytes(50.5, 3, 9, 100),
      'an unknown outcome': bytes(50, 5, 9, 100),
      'a denial by a bucket that allows': bytes(50, 4, ...[5, 0, 40]),
      'a denial by a bucket of the future': bytes(50, 4, ...[0, 0, 60]),
      'a denial by a bucket with too large a fraction': bytes(50, 4, ...[0, 1_000_000, 40]),
      'a denial by a bucket that is not a number': bytes(50, 4, ...[Number.NaN, 0, 40]),
      'a denial by part of a bucket': bytes(50, 4, ...[0, 0]),
      'permits below zero': bytes(50, 3, -9, 100),
      'permits with a fraction': bytes(50, 3, 9.5, 100),
      'permits beyond 2⁵³': bytes(50, 3, 2 ** 53, 100),
      'a reset time that is not a number': bytes(50, 3, 9, Number.NaN),
      'a wait that is not a number': bytes(50, 0, ...[Number.NaN, 0, 0, 200], ...[4, 1, 2, 3, 4]),
      'an infinite delay': bytes(50, 1, ...[0, Number.POSITIVE_INFINITY, 0, 200]),
      'more missing permits than the capacity': bytes(50, -10_000_001),
      'missing permits with a fraction': bytes(50, -0.5),
      'a number of missing permits that is infinite': bytes(50, Number.NEGATIVE_INFINITY),
      'a state of another size': bytes(50, 0, ...[40, 0, 0, 200], ...[3, 1, 2, 3, 4]),
      'a state whose previous timestamp has a fraction': bytes(50, 0, ...[40, 0, 0, 200], ...[7.5, 1, 2, 3, 4]),
      'a state that is not a number': bytes(50, 0, ...[40, 0, 0, 200], ...[4, 1, Number.NaN, 3, 4]),
      'an error message without a failed operation': [bytes(...granted), Buffer.from('wrong')],
      'a failed operation without an error message': bytes(50, 2),
      'an error message that is a string': [bytes(50, 2), 'wrong'],
      'overrides that were not looked up': [bytes(...granted), [0, Buffer.of(2)]],
    }
    it.each(Object.entries(replies))('%s', (_, reply) => {
      expect(() => decode(batch, reply)).toThrow(expect.objectContaining({ code: 'FLUXGATE_STORE_FAILED' }))
    })

    it('with a flipped bit, unless the outcome stays the same', () => {
      for (const numbers of [granted, taken, rejected]) {
        const reply = Buffer.from(bytes(...numbers))
        const [truth] = decode(batch, reply)
        for (let bit = 0; bit < reply.length * 8; bit++) {
          const changed = Buffer.from(reply)
          changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
          let answer: unknown
          try {
            ;[answer] = decode(batch, changed)
          } catch {
            continue
          }
          expect(answer, `bit ${bit}`).toMatchObject({ granted: (truth as { granted: boolean }).granted })
        }
      }
    })

    it('with overrides that do not belong to its lookups', () => {
      const operation = charge(asked({ ...one, hasOverrides: true }, 'a'))
      const lookups = [{ operation, item: 0, otherwise: Buffer.of() }]
      const read = (...found: unknown[]) =>
        decode([operation], [bytes(...granted), found], { lookups, namesOverrides: false }, () => one)
      expect(read(0, Buffer.of(2))).toHaveLength(1)
      for (const found of [[0], [0, 'x'], ['0', Buffer.of(2)], [1, Buffer.of(2)], [0, Buffer.of(2), 1, Buffer.of(2)]])
        expect(() => read(...found)).toThrow(expect.objectContaining({ code: 'FLUXGATE_STORE_FAILED' }))
    })
  })

  it('reports a new edit only if it starts with the bytes STALE', () => {
    expect(newEdit([Buffer.from('STALE'), Buffer.from('edit')])).toBe('edit')
    expect(newEdit([Buffer.from('OTHER'), Buffer.from('edit')])).toBeUndefined()
    expect(newEdit(['STALE', 'edit'])).toBeUndefined()
    expect(() => newEdit([Buffer.from('STALE'), 7])).toThrow(FluxGateError)
  })
})
