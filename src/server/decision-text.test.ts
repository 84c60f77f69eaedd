import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { BandDecision, Decision } from '../core/decision.js'
import { decisionsBytes, decisionText } from './decision-text.js'

const name = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\u2028', '\ud800', '\n', '\u007f', 'é'),
)
const maybe = fc.option(name)
const whole = fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER })
const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })

const bandArbitrary: fc.Arbitrary<BandDecision> = fc.record({
  ruleId: name,
  label: name,
  key: name,
  limit: whole,
  remaining: whole,
  resetAt: whole,
  retryAfterMs: fc.option(whole),
  allowed: fc.boolean(),
  shadow: fc.boolean(),
  windowMs: number,
})

const complete: fc.Arbitrary<Decision> = fc.record({
  allowed: fc.boolean(),
  delayMs: number,
  reason: fc.constantFrom('ALLOWED', 'LIMITED', 'NO_RULE_SET'),
  ruleSetId: maybe,
  ruleId: maybe,
  band: maybe,
  key: maybe,
  limit: whole,
  remaining: whole,
  retryAfterMs: fc.option(whole),
  resetAt: whole,
  decidedAt: number,
  policy: fc.constantFrom('REJECT', 'WAIT_FOR_REFILL'),
  degraded: fc.boolean(),
  bands: fc.array(bandArbitrary, { maxLength: 4 }),
})

const decision = fc
  .tuple(
    complete,
    fc.record({ degradedCause: fc.constant('FLUXGATE_STORE_TIMEOUT' as const), holdId: name }, { requiredKeys: [] }),
  )
  .map(([value, optional]): Decision => ({ ...value, ...optional }))

/** Normalizes JSON text, so that two texts with the same members in the same order are equal. */
const readBack = (text: string): string => JSON.stringify(JSON.parse(text))

it('serializes any decision like JSON.stringify, in ASCII', () => {
  fc.assert(
    fc.property(decision, (value) => {
      const text = decisionText(value)
      expect(readBack(text)).toBe(JSON.stringify(value))
      expect(text).toMatch(/^[ -\x7f]*$/)
    }),
    { numRuns: 2_000 },
  )
})

it('serializes each decision correctly, whichever fields it shares with the previous one', () => {
  const first: Decision = {
    allowed: true,
    delayMs: 0,
    reason: 'ALLOWED',
    ruleSetId: 'api',
    ruleId: 'per-user',
    band: 'minute',
    key: 'ada',
    limit: 10,
    remaining: 9,
    retryAfterMs: 0,
    resetAt: 60_000,
    decidedAt: 54_000.5,
    policy: 'REJECT',
    degraded: false,
    bands: [
      {
        ruleId: 'per-user',
        label: 'minute',
        key: 'ada',
        limit: 10,
        remaining: 9,
        resetAt: 60_000,
        retryAfterMs: 0,
        allowed: true,
        shadow: false,
        windowMs: 60_000,
      },
    ],
  }
  const [band] = first.bands as [BandDecision]
  for (const name of Object.keys(first) as (keyof Decision)[]) {
    if (name === 'bands') continue
    fc.assert(
      fc.property(decision, (other) => {
        decisionText(first)
        const changed = { ...first, [name]: other[name] }
        expect(readBack(decisionText(changed))).toBe(JSON.stringify(changed))
      }),
      { numRuns: 50 },
    )
  }
  for (const name of Object.keys(band) as (keyof BandDecision)[])
    fc.assert(
      fc.property(bandArbitrary, (other) => {
        decisionText(first)
        const changed = { ...first, bands: [{ ...band, [name]: other[name] }] }
        expect(readBack(decisionText(changed))).toBe(JSON.stringify(changed))
      }),
      { numRuns: 50 },
    )
  const next = { ...first, key: 'eve', remaining: 3, resetAt: 7, retryAfterMs: 5 }
  const alike = { ...next, bands: [{ ...band, key: 'eve', remaining: 3, resetAt: 7, retryAfterMs: 5 }] }
  expect(decisionText(alike)).toBe(JSON.stringify(alike))
})

it('serializes batches of any length like JSON.stringify', () => {
  fc.assert(
    fc.property(fc.array(decision, { maxLength: 20 }), fc.integer({ min: 0, max: 3_000 }), (decisions, length) => {
      const all = decisions.map((value) => ({ ...value, ruleSetId: '\u{1f600}€é'.repeat(length) }))
      expect(readBack(decisionsBytes(all).toString())).toBe(JSON.stringify({ decisions: all }))
    }),
    { numRuns: 200 },
  )
})
