import type { Clock } from '../../core/clock.js'

/** A period in which the bucket store failed (STORE), or newer rules could not be loaded (RULES). */
export interface Outage {
  readonly kind: 'STORE' | 'RULES'
  /** Epoch milliseconds. */
  readonly fromAt: number
  /** Null if it continues. */
  readonly toAt: number | null
  /** The first error. */
  readonly error: string
}

const maxOutages = 100
const maxErrorLength = 500

/** The latest outages of a process. */
export class Outages {
  readonly #clock: Clock
  readonly #outages: Outage[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(kind: Outage['kind'], error: string): void {
    if (this.#outages.some((one) => one.kind === kind && one.toAt === null)) return
    this.#outages.push({ kind, fromAt: this.#now(), toAt: null, error: error.slice(0, maxErrorLength) })
    if (this.#outages.length > maxOutages) this.#outages.shift()
  }

  end(kind: Outage['kind']): void {
    const index = this.#outages.findIndex((one) => one.kind === kind && one.toAt === null)
    const outage = this.#outages[index]
    if (outage !== undefined) this.#outages[index] = { ...outage, toAt: this.#now() }
  }

  /** The outages that continue, or that ended after `since`; oldest first. */
  read(since = 0): Outage[] {
    return this.#outages.filter(({ toAt }) => toAt === null || toAt > since)
  }

  readonly #now = (): number => Math.round(this.#clock.now())
}

/** Merges the outages of several processes: those of one kind that overlap become one. */
export function mergeOutages(all: readonly Outage[]): Outage[] {
  const merged: Outage[] = []
  for (const outage of [...all].sort((one, other) => one.fromAt - other.fromAt)) {
    const index = merged.findLastIndex(({ kind }) => kind === outage.kind)
    const last = merged[index]
    if (last !== undefined && (last.toAt === null || outage.fromAt <= last.toAt))
      merged[index] = {
        ...last,
        toAt: last.toAt === null || outage.toAt === null ? null : Math.max(last.toAt, outage.toAt),
      }
    else merged.push(outage)
  }
  return merged
}
