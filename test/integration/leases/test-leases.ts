/** Fixtures of the lease tests: leased rules, and a check that no interval exceeds its limit. */
import type { BucketGroup, Charge, LeasingStore } from '../../../src/core/bucket-store.js'
import type { Band } from '../../../src/core/rule.js'
import { band, chargeOf, group, second } from '../../../src/testing/fixtures.js'

export const bandOf = (given: Partial<Band> = {}): Band => band({ capacity: 100, windowTicks: 10 * second, ...given })

export const groupOf = (bands: readonly Band[], given: Partial<BucketGroup> = {}): BucketGroup =>
  group('rule', bands, { isLeased: true, ...given })

export const demandOf = (rule: BucketGroup, permits = 1, given: Partial<Charge> = {}): Charge =>
  chargeOf(rule, 'a', { permits, ...given })

export interface Admission {
  /** In ticks of the store. */
  readonly at: number
  readonly permits: number
}

/** Describes the first interval that admitted more than the band allows; undefined if every interval is within its limit. */
export function excess(band: Band, admissions: readonly Admission[]): string | undefined {
  const inOrder = [...admissions].sort((a, b) => a.at - b.at)
  return band.algorithm === 'FIXED_WINDOW' ? windowExcess(band, inOrder) : intervalExcess(band, inOrder)
}

function windowExcess({ capacity, windowTicks }: Band, admissions: readonly Admission[]): string | undefined {
  const counts = new Map<number, number>()
  for (const { at, permits } of admissions) {
    const window = Math.floor(at / windowTicks)
    const count = (counts.get(window) ?? 0) + permits
    counts.set(window, count)
    if (count > capacity) return `${count} of ${capacity} in window ${window}`
  }
  return undefined
}

/** Follows only the worst of the intervals that end at the same instant, which covers all of them. */
function intervalExcess(band: Band, admissions: readonly Admission[]): string | undefined {
  const { capacity, refillTokens, windowTicks } = band
  for (const [from, { at: start }] of admissions.entries()) {
    let count = 0
    for (const { at, permits } of admissions.slice(from)) {
      count += permits
      const elapsed = at - start
      const refilled =
        band.refill === 'INTERVAL'
          ? (Math.floor(elapsed / windowTicks) + 1) * refillTokens
          : Math.floor((elapsed * refillTokens) / windowTicks)
      if (count > capacity + refilled) return `${count} of ${capacity} + ${refilled} from ${start} to ${at}`
    }
  }
  return undefined
}

export interface WatchedStore extends LeasingStore {
  /** The calls to the store, in order. */
  readonly calls: string[]
  /** Resolves once the store has replied to all leases and settlements. */
  quiet(): Promise<void>
}

/** Records the calls to the store. */
export function watched(store: LeasingStore): WatchedStore {
  const calls: string[] = []
  const pending = new Set<Promise<unknown>>()
  const tracked = <T>(call: string, reply: Promise<T>): Promise<T> => {
    calls.push(call)
    const ended = reply.then(
      () => {},
      () => {},
    )
    pending.add(ended)
    ended.then(() => pending.delete(ended))
    return reply
  }
  return {
    calls,
    async quiet() {
      while (pending.size > 0) await Promise.all(pending)
      await new Promise((resolve) => setImmediate(resolve))
    },
    charge: (demands, peek) => {
      calls.push(peek ? 'peek' : 'charge')
      return store.charge(demands, peek)
    },
    leasing: {
      lease: (request) => tracked(`lease ${request.permits}-${request.wanted}`, store.leasing.lease(request)),
      settle: (settlements) =>
        tracked(`settle ${settlements.map(({ permits }) => permits)}`, store.leasing.settle(settlements)),
    },
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    close: () => store.close(),
  }
}

/** The number of calls that begin with `kind`. */
export const countOf = (calls: readonly string[], kind: 'charge' | 'lease' | 'settle'): number =>
  calls.filter((call) => call.startsWith(kind)).length

/** The interval at which batches are renewed, and the first one is leased. */
export const sweepMs = 25
