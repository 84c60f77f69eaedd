import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { checkRuleSets, parseRule } from './schema.js'

const bands = [{ capacity: 10, window: '1s' }]
const document = (rule: object) => ({ ruleSets: [{ id: 's', rules: [{ id: 'r', bands, ...rule }] }] })
const mistakesIn = (rule: object): string[] =>
  checkRuleSets(document(rule)).errors.map(({ path, message }) =>
    `${path}: ${message}`.replace('ruleSets[0].rules[0].', ''),
  )
describe('a rule by itself', () => {
  it('needs no id, and no list for its only band', () => {
    const rule = parseRule({
      algorithm: 'fixed-window',
      capacity: 10,
      refillTokens: 5,
      window: '1m',
      label: 'x',
      permits: 2,
    })
    expect(rule).toMatchObject({ id: 'limiter', permits: 2, limitScope: 'IP' })
    expect(rule.bands).toEqual([
      {
        label: 'x',
        algorithm: 'FIXED_WINDOW',
        refill: 'STEADY',
        capacity: 10,
        refillTokens: 5,
        windowTicks: 60_000_000,
      },
    ])
    expect(parseRule({ id: 'mine', bands })).toMatchObject({ id: 'mine', bands: [{ label: '10-per-1s' }] })
    expect(parseRule({ capacity: 1, windowSeconds: 0.5, refill: 'INTERVAL' }).bands[0]).toMatchObject({
      label: '1-per-500ms',
      refill: 'INTERVAL',
    })
  })

  const errorsOf = (rule: unknown, place?: string) => {
    try {
      parseRule(rule, place)
    } catch (error) {
      expect(error).toBeInstanceOf(FluxGateError)
      return (error as FluxGateError).errors.map(({ path, message }) => `${path}: ${message}`)
    }
    return []
  }

  it('has a band in one place only', () => {
    expect(errorsOf({ bands, capacity: 1, window: 1 })).toEqual([
      'capacity: found beside bands; allowed: in a band, or without bands',
      'window: found beside bands; allowed: in a band, or without bands',
    ])
  })

  it('says where its mistakes are', () => {
    expect(
      errorsOf({ capacity: 'ten', window: 1, consistency: 'LEASED', algorithm: 'LEAKY_BUCKET' }, 'limits.login'),
    ).toEqual([
      'limits.login.capacity: found "ten"; allowed: a whole number from 1 to 1000000000',
      'limits.login.consistency: found LEASED with LEAKY_BUCKET; allowed: LEASED with TOKEN_BUCKET, FIXED_WINDOW only',
    ])
    expect(errorsOf({ capacity: 1, window: 1, burst: 2 })).toEqual([
      expect.stringMatching(/^burst: unknown field "burst"; allowed: id, /),
    ])
    expect(errorsOf(undefined)).toEqual([
      'document: found nothing; allowed: a rule: { capacity, window, … } or { bands, … }',
    ])
  })

  it('refuses what only a rule by itself may say when it stands in a set', () => {
    expect(mistakesIn({ capacity: 5 })).toEqual([expect.stringMatching(/^capacity: unknown field/)])
  })
})
