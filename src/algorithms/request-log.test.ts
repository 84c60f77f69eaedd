import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RingLog } from './request-log.js'

const events = fc.array(
  fc.record({ pause: fc.integer({ min: 0, max: 5 }), permits: fc.integer({ min: -4, max: 6 }), ahead: fc.nat(3) }),
  { maxLength: 60 },
)

it('agrees with a plain list of grants through growth, wrap-around and refunds', () => {
  fc.assert(
    fc.property(events, (history) => {
      const log = new RingLog()
      let grants: number[] = []
      let now = 100
      for (const { pause, permits, ahead } of history) {
        now += pause
        const at = permits > 0 ? Math.max(now + ahead, grants.at(-1) ?? 0) : now + ahead
        log.apply({ seenAt: now, shift: 0, forgetUntil: now - 10, at, permits })
        grants = grants.filter((grant) => grant > now - 10)
        if (permits > 0) grants.push(...Array.from({ length: permits }, () => at))
        for (let left = -permits; left > 0; left--) {
          const last = grants.findLastIndex((grant) => grant <= at)
          if (last >= 0) grants.splice(last, 1)
        }
        expect(log.newestAt).toBe(grants.at(-1))
        for (let tick = now - 12; tick <= now + 4; tick++) {
          const later = grants.filter((grant) => grant > tick)
          expect(log.grantedAfter(tick)).toBe(later.length)
          for (let n = 1; n <= later.length; n++) expect(log.nthAfter(tick, n)).toBe(later[n - 1])
        }
      }
    }),
    { numRuns: 300 },
  )
})

it('keeps one entry for all requests of the same tick', () => {
  const log = new RingLog()
  for (let i = 0; i < 1000; i++) log.apply({ seenAt: 5, shift: 0, forgetUntil: -5, at: 5, permits: 1 })
  expect(log.grantedAfter(4)).toBe(1000)
  expect(log.grantedAfter(5)).toBe(0)
})
