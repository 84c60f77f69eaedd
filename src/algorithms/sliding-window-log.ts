/**
 * Sliding window log: at most `capacity` permits in any (t − window, t]. Exact, at the price of remembering every grant.
 *
 * A caller that waits is logged at the instant it will be let in; nobody is let in before the newest entry, which keeps
 * first come, first served.
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { type LogChange, Logs, type RequestLog } from './request-log.js'

export const slidingWindowLog: Algorithm<RequestLog, LogChange> = {
  createBuckets: () => new Logs(),

  step(log, band, permits, now, patience): Step<LogChange> {
    const shift = shiftOf(log, now)
    const newestAt = log?.newestAt === undefined ? undefined : log.newestAt + shift
    const free = band.capacity - countedAt(log, band, now, shift)
    const at = permits > 0 && permits <= band.capacity ? earliest(log, band, permits, now, shift) : now
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : at - now
    const allowed = permits === 0 || wait <= patience
    const charged = allowed && permits > 0
    const left = charged && wait === 0 ? free - permits : free
    const closed = (newestAt !== undefined && newestAt > now) || (charged && wait > 0)
    return {
      allowed,
      delay: allowed ? wait : 0,
      retryAfter: allowed ? 0 : wait - patience,
      remaining: closed ? 0 : Math.max(0, left),
      resetAt: charged
        ? at + band.windowTicks
        : Math.max(now, newestAt === undefined ? now : newestAt + band.windowTicks),
      change: charged || shift !== 0 ? change(band, now, shift, at, charged ? permits : 0) : undefined,
    }
  },

  refund(log, band, permits, now, grantedAt) {
    return change(band, now, shiftOf(log, now), grantedAt, -permits)
  },

  expiresAt(log, band) {
    return log.newestAt === undefined ? 0 : log.newestAt + band.windowTicks
  },
}

/** If time has stepped back since the last write, all entries step back with it. */
const shiftOf = (log: RequestLog | undefined, now: number): number =>
  log === undefined ? 0 : Math.min(0, now - log.seenAt)

const countedAt = (log: RequestLog | undefined, band: Band, now: number, shift: number): number =>
  log === undefined ? 0 : log.grantedAfter(now - shift - band.windowTicks)

function earliest(log: RequestLog | undefined, band: Band, permits: number, now: number, shift: number): number {
  if (log?.newestAt === undefined) return now
  const from = Math.max(now, log.newestAt + shift)
  const horizon = from - shift - band.windowTicks
  const excess = log.grantedAfter(horizon) + permits - band.capacity
  return excess <= 0 ? from : log.nthAfter(horizon, excess) + shift + band.windowTicks
}

const change = (band: Band, now: number, shift: number, at: number, permits: number): LogChange => ({
  seenAt: now,
  shift,
  forgetUntil: now - band.windowTicks,
  at,
  permits,
})
