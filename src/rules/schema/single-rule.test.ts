import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { checkRuleSets, parseRule } from './parse-rules.js'

const bands = [{ capacity: 10, window: '1s' }]
const document = (rule: object) => ({ ruleSets: [{ id: 's', rules: [{ id: 'r', bands, ...rule }] }] })
const issuesIn = (rule: object): string[] =>
  checkRuleSets(document(rule)).errors.map(({ path, message }) =>
    `${path}: ${message}`.replace('ruleSets[0].rules[0].', ''),
  )
describe('a single rule', () => {
  it('needs no id and no list of bands', () => {
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

  it('rejects band fields together with bands', () => {
    expect(errorsOf({ bands, capacity: 1, window: '1s' })).toEqual([
      'capacity: must not be combined with bands; move it into a band, or remove bands',
      'window: must not be combined with bands; move it into a band, or remove bands',
    ])
  })

  it('reports issues with their paths', () => {
    expect(
      errorsOf({ capacity: 'ten', window: '1s', consistency: 'LEASED', algorithm: 'LEAKY_BUCKET' }, 'limits.login'),
    ).toEqual([
      'limits.login.capacity: must be an integer from 0 to 1000000000; received "ten"',
      'limits.login.consistency: must be EXACT with LEAKY_BUCKET; LEASED requires TOKEN_BUCKET or FIXED_WINDOW',
    ])
    expect(errorsOf({ capacity: 1, window: '1s', burst: 2 })).toEqual([
      expect.stringMatching(/^burst: unknown field "burst"; allowed: id, /),
    ])
    expect(errorsOf(undefined)).toEqual([
      'document: must be a rule: { capacity, window, … } or { bands, … }; received nothing',
    ])
  })

  it('rejects band fields on a rule of a set', () => {
    expect(issuesIn({ capacity: 5 })).toEqual([expect.stringMatching(/^capacity: unknown field/)])
  })
})
