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

const band: fc.Arbitrary<BandDecision> = fc.record({
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

const decision: fc.Arbitrary<Decision> = fc.record({
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
  policy: fc.constantFrom('REJECT', 'WAIT_FOR_REFILL'),
  degraded: fc.boolean(),
  bands: fc.array(band, { maxLength: 4 }),
})

it('is the same text as JSON.stringify makes, whatever stands in a decision', () => {
  fc.assert(
    fc.property(decision, (value) => {
      expect(decisionText(value)).toBe(JSON.stringify(value))
    }),
    { numRuns: 2_000 },
  )
})

it('many decisions are what JSON.stringify makes of them, however long they are', () => {
  fc.assert(
    fc.property(fc.array(decision, { maxLength: 20 }), fc.integer({ min: 0, max: 3_000 }), (decisions, length) => {
      const all = decisions.map((value) => ({ ...value, ruleSetId: '\u{1f600}€é'.repeat(length) }))
      expect(decisionsBytes(all).toString()).toBe(Buffer.from(JSON.stringify({ decisions: all })).toString())
    }),
    { numRuns: 200 },
  )
})
