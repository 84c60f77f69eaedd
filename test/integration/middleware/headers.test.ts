/** Rate limit headers, as an independent parser of structured fields reads them. */
import fc from 'fast-check'
import { type InnerList, type Item, isInnerList, parseList } from 'structured-headers'
import { expect, it } from 'vitest'
import type { BandDecision, Decision } from '../../../src/core/decision.js'
import { mergeHeaders, RateLimitHeaders } from '../../../src/http/rate-limit-headers.js'

const bothKinds = new RateLimitHeaders('both')

const nowMs = fc.double({ min: 1_600_000_000_000, max: 2_000_000_000_000, noNaN: true })
const name = fc.oneof(fc.stringMatching(/^[A-Za-z0-9._:-]{1,20}$/), fc.string({ minLength: 1, maxLength: 20 }))

const band: fc.Arbitrary<Omit<BandDecision, 'resetAt'>> = fc.record({
  ruleId: name,
  label: name,
  key: fc.constant('user-1'),
  limit: fc.integer({ min: 1, max: 1_000_000_000 }),
  remaining: fc.integer({ min: -1, max: 1_000_000_000 }),
  retryAfterMs: fc.option(fc.integer({ min: 0, max: 31_622_400_000 }), { freq: 8 }),
  allowed: fc.boolean(),
  shadow: fc.boolean(),
  windowMs: fc.integer({ min: 1, max: 31_622_400_000 }),
})

interface Situation {
  readonly now: number
  readonly decision: Decision
}

const situation: fc.Arbitrary<Situation> = fc
  .record({
    now: nowMs,
    speaker: band,
    others: fc.array(band, { maxLength: 7 }),
    aheadMs: fc.integer({ min: 0, max: 31_622_400_000 }),
    allowed: fc.boolean(),
  })
  .map(({ now, speaker, others, aheadMs, allowed }) => {
    const resetAt = Math.ceil(now) + aheadMs
    const bands = [{ ...speaker, shadow: false }, ...others].map((one) => ({ ...one, resetAt }))
    const { ruleId, label, limit, remaining, retryAfterMs } = speaker
    const decision: Decision = {
      allowed,
      delayMs: 0,
      reason: allowed ? 'ALLOWED' : retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
      ruleSetId: 'set',
      ruleId,
      band: label,
      key: 'somebody',
      limit,
      remaining,
      retryAfterMs: allowed ? 0 : retryAfterMs,
      resetAt,
      decidedAt: now,
      policy: 'REJECT',
      degraded: false,
      bands,
    }
    return { now, decision }
  })

function itemsOf(text: string | undefined): Item[] {
  const list: (Item | InnerList)[] = parseList(String(text))
  return list.map((member) => {
    if (isInnerList(member)) throw new Error('an inner list')
    return member
  })
}

it('lists every policy, and the remaining permits of the deciding band', () => {
  fc.assert(
    fc.property(situation, ({ now, decision }) => {
      const headers = bothKinds.of(decision, now)
      const policies = itemsOf(headers['RateLimit-Policy'])
      const shown = decision.bands.filter(({ shadow }) => !shadow)
      expect(policies.map(([, parameters]) => [parameters.get('q'), parameters.get('w')])).toEqual(
        shown.map(({ limit, windowMs }) => [limit, Math.ceil(windowMs / 1_000)]),
      )
      const deciding = itemsOf(headers.RateLimit)
      expect(deciding).toHaveLength(1)
      const [label, parameters] = deciding[0] as Item
      expect(policies.map(([policy]) => policy)).toContain(label)
      expect(parameters.get('r')).toBe(Math.max(0, decision.remaining))
      expect(headers['X-RateLimit-Remaining']).toBe(String(parameters.get('r')))
      expect(headers['X-RateLimit-Limit']).toMatch(/^\d+$/)
    }),
  )
})

it('names the same time in t, Retry-After and X-RateLimit-Reset, apart from rounding', () => {
  fc.assert(
    fc.property(situation, ({ now, decision }) => {
      const headers = bothKinds.of(decision, now)
      const t = Number(itemsOf(headers.RateLimit)[0]?.[1].get('t'))
      const reset = Number(headers['X-RateLimit-Reset'])
      // Both are rounded up: t from now on, Reset since the epoch. They differ by less than a second of rounding, and by
      // the maximum age of a decision.
      expect(Math.abs(reset - (now / 1_000 + t))).toBeLessThanOrEqual(1.101)
      expect(reset * 1_000).toBeGreaterThanOrEqual(now)
      if (decision.allowed || decision.retryAfterMs === null) {
        expect(headers['Retry-After']).toBeUndefined()
        return
      }
      const retryAfter = Number(headers['Retry-After'])
      expect(retryAfter).toBe(Math.max(1, t))
      // A client that waits this long is not early.
      expect(retryAfter * 1_000).toBeGreaterThanOrEqual(decision.retryAfterMs)
      const opensAt = now + decision.retryAfterMs
      // A decision may be some milliseconds old, so the time may be the end of the window itself.
      const isNamed = opensAt > decision.resetAt && Math.ceil(opensAt) - decision.resetAt <= 100
      expect(reset * 1_000).toBeGreaterThanOrEqual(isNamed ? decision.resetAt : opensAt)
    }),
  )
})

it('stays valid with several limits on a response, and describes the most restrictive one', () => {
  fc.assert(
    fc.property(fc.array(situation, { minLength: 2, maxLength: 4 }), (situations) => {
      const sent = new Map<string, string>()
      const response = { getHeader: (header: string) => sent.get(header.toLowerCase()) }
      for (const { now, decision } of situations) {
        const headers = mergeHeaders(bothKinds.of({ ...decision, allowed: true }, now), response, false)
        for (const [header, value] of Object.entries(headers)) sent.set(header.toLowerCase(), value)
      }
      const shown = situations.flatMap(({ decision }) => decision.bands).filter(({ shadow }) => !shadow)
      expect(itemsOf(sent.get('ratelimit-policy'))).toHaveLength(shown.length)
      const least = Math.min(...situations.map(({ decision }) => Math.max(0, decision.remaining)))
      expect(itemsOf(sent.get('ratelimit'))[0]?.[1].get('r')).toBe(least)
      expect(sent.get('x-ratelimit-remaining')).toBe(String(least))
    }),
  )
})
