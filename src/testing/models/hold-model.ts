import type { HoldId } from '../../core/holds/hold-storage.js'
import type { Band } from '../../core/rule.js'
import { larger, type Model, type ModelResult, sizes } from './model.js'

interface Entry {
  readonly name: string
  readonly expiresAt: bigint
  readonly permits: bigint
}

const nameOf = (hold: HoldId | undefined): string => (hold === undefined ? '' : `${hold.high}.${hold.low}`)

/**
 * The reference model of CONCURRENCY: a list of holds. Expired ones do not count, and are removed by the next charge. If the clock
 * steps back before the last change, all holds move back with it.
 */
export function holdModel(entries: readonly Entry[] = [], seenAt: bigint | undefined = undefined): Model {
  let holds = [...entries]
  let last = seenAt
  const liveAt = (now: bigint): Entry[] => holds.filter(({ expiresAt }) => expiresAt > now)
  const usedAt = (now: bigint): bigint => liveAt(now).reduce((sum, { permits }) => sum + permits, 0n)
  const find = (hold: HoldId, now: bigint): Entry | undefined => liveAt(now).find(({ name }) => name === nameOf(hold))

  return {
    force() {},
    touch(_band, now) {
      if (last === undefined || now >= last) return
      const back = now - last
      holds = holds.map((hold) => ({ ...hold, expiresAt: hold.expiresAt + back }))
      last = now
    },
    peek(band, permits, now): ModelResult {
      const { capacity } = sizes(band)
      const denied = { allowed: false, grantedAt: now, delay: 0 }
      if (permits > capacity) return { ...denied, retryAfter: undefined }
      const missing = usedAt(now) + permits - capacity
      if (missing <= 0n || permits === 0n) return { allowed: true, grantedAt: now, delay: 0, retryAfter: 0n }
      const expiries = liveAt(now)
        .map(({ expiresAt }) => expiresAt)
        .toSorted((a, b) => Number(a - b))
      const freed = (at: bigint): bigint =>
        liveAt(now)
          .filter(({ expiresAt }) => expiresAt <= at)
          .reduce((sum, { permits }) => sum + permits, 0n)
      const at = expiries.find((expiry) => freed(expiry) >= missing) ?? (expiries.at(-1) as bigint)
      return { ...denied, retryAfter: at - now }
    },
    charge(band, permits, now, _grantedAt, hold) {
      last = now
      holds = liveAt(now)
      if (permits > 0n) holds.push({ name: nameOf(hold), expiresAt: now + sizes(band).window, permits })
    },
    /** Only a hold can be released. */
    refund() {},
    release(hold, now) {
      const known = find(hold, now)
      if (known === undefined) return false
      last = now
      holds = holds.filter((one) => one !== known)
      return true
    },
    renew(band, hold, now) {
      const known = find(hold, now)
      if (known === undefined) return false
      last = now
      holds = holds.filter((one) => one !== known)
      holds.push({ ...known, expiresAt: now + sizes(band).window })
      return true
    },
    remaining: (band: Band, now) => larger(0n, sizes(band).capacity - usedAt(now)),
    resetAt: (_band, now) => liveAt(now).reduce((latest, { expiresAt }) => larger(latest, expiresAt), now),
    /** Requests in progress stay in progress. */
    scale() {},
    isUnused: (_band, now) => liveAt(now).length === 0,
    copy: () => holdModel(holds, last),
  }
}
