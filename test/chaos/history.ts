/** The record of one chaos run: every request, every fault, and the time that each process was able to run. */

/** Microseconds of the monotonic clock, which all processes of a machine share and which no clock step changes. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n)

/** One bucket that a decision looked at. */
export interface Charge {
  readonly rule: string
  /** The current capacity; an edit of the rule changes it, so it also tells generations of the rule apart. */
  readonly limit: number
  /** Epoch milliseconds. */
  readonly resetAt: number
}

/** One request and its answer. Redis executed the decision between `startAt` and `endAt`, if it did. */
export interface Entry {
  /** The process that was asked, by name, and as the start of it that was asked: `server` and `server#2`. */
  readonly process: string
  readonly life: string
  /** The start of a process that decided. Local buckets belong to it. */
  readonly decidedBy: string
  /** Microseconds, rounded down and up. */
  readonly startAt: number
  readonly endAt: number
  readonly path: string
  readonly user: string
  readonly api: string
  readonly permits: number
  readonly allowed: boolean
  readonly degraded: boolean
  readonly delayMs: number
  readonly reason: string
  readonly charges: readonly Charge[]
  /** Set if there was no decision. */
  readonly error?: string
}

/** A fault as it happened. */
export interface Incident {
  readonly fault: string
  /** Not part of the schedule: the control client noticed it. */
  readonly isObserved?: boolean
  readonly from: number
  /** When the fault was over and, if it concerned Redis or the server, the control client was answered again. */
  readonly to: number
  /**
   * Which degraded decisions it explains: `outage`, those in flight or made within a second after it; `cut`, those in flight
   * or made within 50 ms after it; `none`.
   */
  readonly explains: 'outage' | 'cut' | 'none'
  /** The processes whose decisions it explains; all if left out. */
  readonly processes?: readonly string[]
  /** The identities whose decisions it explains; all if left out. */
  readonly users?: readonly string[]
  /** Redis may have lost acknowledged writes. */
  readonly losesWrites?: boolean
  /** The process that could not respond during the fault: requests to it may fail. */
  readonly down?: string
}

export interface History {
  readonly entries: readonly Entry[]
  readonly incidents: readonly Incident[]
  readonly loops: LoopTimes
  /** Requests that were never answered. */
  readonly unanswered: readonly { readonly process: string; readonly startAt: number; readonly path: string }[]
  /** Epoch minus monotonic microseconds: the smallest and the largest that was measured during the run. */
  readonly clockOffset: { readonly least: number; readonly most: number }
}

/** How long each process was able to run: its event loop ticks every `sliceMs`, and a late tick counts as one slice. */
export class LoopTimes {
  static readonly sliceMs = 5
  readonly #ticks = new Map<string, number[]>()

  add(process: string, ticks: readonly number[]): void {
    const known = this.#ticks.get(process)
    if (known) known.push(...ticks)
    else this.#ticks.set(process, [...ticks])
  }

  /** Loop time in milliseconds that `process` had between two instants. */
  between(process: string, from: number, to: number): number {
    const ticks = this.#ticks.get(process) ?? []
    return Math.max(0, firstAfter(ticks, to) - firstAfter(ticks, from)) * LoopTimes.sliceMs
  }

  /** The instant at which `process` has had `ms` of loop time since `from`; infinite if it never had. */
  after(process: string, from: number, ms: number): number {
    const ticks = this.#ticks.get(process) ?? []
    const found = ticks[firstAfter(ticks, from) + Math.ceil(ms / LoopTimes.sliceMs)]
    return Math.max(found ?? Number.POSITIVE_INFINITY, from + ms * 1_000)
  }

  /** Periods of at least `ms` in which `process` did not run. */
  gaps(process: string, ms: number): { readonly from: number; readonly to: number }[] {
    const ticks = this.#ticks.get(process) ?? []
    return ticks.flatMap((to, index) => {
      const from = ticks[index - 1]
      return from !== undefined && to - from >= ms * 1_000 ? [{ from, to }] : []
    })
  }
}

/** The index of the first value above `limit` in ascending `values`. */
export function firstAfter(values: readonly number[], limit: number): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((values[middle] as number) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

export function groupBy<T, K>(values: readonly T[], keyOf: (value: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}
