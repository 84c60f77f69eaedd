import { describe, expect, it } from 'vitest'
import type { BucketGroup, Demand } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { Band } from '../core/rule.js'
import { decode } from './decode-work.js'
import type { Work } from './redis-work.js'

const band = (label: string): Band => ({
  label,
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 10,
  refillTokens: 5,
  windowTicks: 1_000_000,
})
const group = (ruleId: string, ...bands: Band[]): BucketGroup => ({
  ruleSetId: 'set',
  ruleId,
  generation: '1',
  permits: 1,
  bands,
})
const demand = (rule: BucketGroup, key: string, given: Partial<Demand> = {}): Demand => ({
  group: rule,
  key,
  permits: 2,
  patience: 3,
  policy: 'REJECT',
  shadow: false,
  ...given,
})
const charge = (...claims: Demand[]): Work => ({ what: 'CHARGE', claims })

/** As a client has them: somewhere in what it has read, so that they begin anywhere. */
function bytes(...numbers: readonly number[]): Buffer {
  const read = Buffer.alloc(1 + numbers.length * 8)
  for (const [i, number] of numbers.entries()) read.writeDoubleLE(number, 1 + i * 8)
  return read.subarray(1)
}

describe('what the script answers', () => {
  const rule = group('rule', band('a'), band('b'))

  it('is one answer for each, in its order, and an error is about its own alone', () => {
    const granted = [1, ...[0, 0.5, 8, 200], ...[0, 0, 9, 100]]
    const refused = [0, ...[40, 0, 0, 200, 4, 1, 2, 3, 4], ...[-1, 0, 9, 100, 0, 0, 0, 0, 0]]
    const reply = [
      bytes(50, ...granted, 2, ...refused, 1, 0, ...[0, 0, 1, 2], ...[5, 0, 1, 2]),
      Buffer.from('key holds something that is not a bucket'),
    ]
    const [first, second, third, fourth, fifth] = decode(
      [
        charge(demand(rule, 'a')),
        charge(demand(rule, 'b')),
        charge(demand(rule, 'c')),
        { what: 'RESET', claims: [{ group: rule, key: 'd' }] },
        { what: 'PEEK', claims: [demand(rule, 'e')] },
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
    // Bands come from the last to the first, each with its state.
    expect(third).toMatchObject({ granted: false, states: [undefined, [1, 2, 3, 4]] })
    expect(third).toMatchObject({
      bands: [{ allowed: false, retryAfter: Number.POSITIVE_INFINITY }, { retryAfter: 40 }],
    })
    expect(fourth).toEqual({ granted: true, now: 50, bands: [] })
    expect(fifth).not.toHaveProperty('states')
  })

  it('is bytes alone if all could be decided, and short where every band allows at once', () => {
    expect(decode([charge(demand(group('r', band('a')), 'a'))], bytes(50, 3, 9, 100))).toEqual([
      { granted: true, now: 50, bands: [{ allowed: true, delay: 0, retryAfter: 0, remaining: 9, resetAt: 100 }] },
    ])
  })

  it('does not tell the state of a bucket of which permits are held', () => {
    const [answer] = decode(
      [charge(demand(group('r', band('a')), 'a'))],
      bytes(50, 0, ...[9, 0, 0, 60], ...[-1, 0, 0, 0, 0]),
    )
    expect(answer).toMatchObject({ states: [null] })
  })
})
