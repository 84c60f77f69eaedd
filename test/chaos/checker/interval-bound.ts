/**
 * The bound that every refilled limit obeys: in any interval [a, b], at most C + R·(b − a)/D permits. It is checked for all
 * intervals at once, in O(n log n), and without any knowledge of how FluxGate counts.
 */
import { firstAfter } from '../history.js'

/** Permits that were granted at some instant between `startAt` and `endAt`, in microseconds. */
export interface Use {
  readonly startAt: number
  readonly endAt: number
  readonly permits: number
}

/** A period in which the bucket may have lost writes: it may have been full again, twice while two primaries accepted writes. */
export interface Loss {
  readonly from: number
  readonly to: number
}

export interface Bound {
  readonly capacity: number
  /** Permits that come back per microsecond; 0 for a sliding window. */
  readonly perUs: number
  /** Sliding window: only intervals shorter than this are bounded. */
  readonly windowUs?: number
  readonly losses: readonly Loss[]
  /** Maximum difference between the clocks of the store and of the record, in microseconds. */
  readonly slackUs: number
}

/** The shortest interval with more permits than the bound. */
export interface Excess<T extends Use> {
  readonly from: number
  readonly to: number
  readonly permits: number
  readonly allowed: number
  readonly uses: readonly T[]
}

export function findExcess<T extends Use>(uses: readonly T[], bound: Bound): Excess<T> | undefined {
  if (uses.length === 0) return undefined
  const byEnd = uses.toSorted((a, b) => a.endAt - b.endAt)
  const starts = [...new Set(uses.map((use) => use.startAt))].sort((a, b) => a - b)
  const origin = starts[0] as number
  const lossTime = (at: number) => sum(bound.losses, ({ from, to }) => Math.min(Math.max(at - from, 0), to - from))
  const refilled = (at: number) => bound.perUs * (at - origin + lossTime(at))
  /** Permits allowed up to `at`, and permits that expired before it. An interval allows their difference. */
  const upTo = (at: number) => refilled(at) + bound.capacity * bound.losses.filter(({ from }) => from <= at).length
  const before = (at: number) => refilled(at) + bound.capacity * bound.losses.filter(({ to }) => to < at).length

  const tree = new MaxTree(starts.map(before))
  const slack = bound.perUs * bound.slackUs + 1e-6
  let shortest: Excess<T> | undefined
  for (const use of byEnd) {
    tree.addToPrefix(firstAfter(starts, use.startAt), use.permits)
    const first = bound.windowUs === undefined ? 0 : firstAfter(starts, use.endAt - bound.windowUs + bound.slackUs)
    const last = firstAfter(starts, use.endAt)
    if (first >= last) continue
    const worst = tree.max(first, last)
    if (worst.value <= upTo(use.endAt) + bound.capacity + slack) continue
    const from = starts[worst.index] as number
    if (shortest && shortest.to - shortest.from <= use.endAt - from) continue
    const inside = uses.filter(({ startAt, endAt }) => startAt >= from && endAt <= use.endAt)
    shortest = {
      from,
      to: use.endAt,
      permits: sum(inside, ({ permits }) => permits),
      allowed: bound.capacity + upTo(use.endAt) - before(from),
      uses: inside,
    }
  }
  return shortest
}

const sum = <T>(values: readonly T[], of: (value: T) => number): number =>
  values.reduce((total, value) => total + of(value), 0)

/** A segment tree: add to a prefix, maximum of a range. */
class MaxTree {
  readonly #size: number
  readonly #max: Float64Array
  readonly #added: Float64Array

  constructor(values: readonly number[]) {
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(1, values.length)))
    this.#max = new Float64Array(2 * this.#size).fill(Number.NEGATIVE_INFINITY)
    this.#added = new Float64Array(2 * this.#size)
    this.#max.set(values, this.#size)
    for (let node = this.#size - 1; node >= 1; node--) this.#update(node)
  }

  addToPrefix(end: number, value: number, node = 1, from = 0, to = this.#size): void {
    if (end <= from) return
    if (end >= to) {
      this.#max[node] = this.#at(this.#max, node) + value
      this.#added[node] = this.#at(this.#added, node) + value
      return
    }
    const middle = (from + to) / 2
    this.addToPrefix(end, value, 2 * node, from, middle)
    this.addToPrefix(end, value, 2 * node + 1, middle, to)
    this.#update(node)
  }

  max(first: number, last: number): { value: number; index: number } {
    const best = this.#best(first, last, 1, 0, this.#size)
    let { node } = best
    // The later of two equal starts is the shorter interval.
    while (node < this.#size)
      node = this.#at(this.#max, 2 * node) > this.#at(this.#max, 2 * node + 1) ? 2 * node : 2 * node + 1
    return { value: best.value, index: node - this.#size }
  }

  #best(first: number, last: number, node: number, from: number, to: number): { value: number; node: number } {
    if (last <= from || first >= to) return { value: Number.NEGATIVE_INFINITY, node }
    if (first <= from && last >= to) return { value: this.#at(this.#max, node), node }
    const middle = (from + to) / 2
    const left = this.#best(first, last, 2 * node, from, middle)
    const right = this.#best(first, last, 2 * node + 1, middle, to)
    const best = left.value > right.value ? left : right
    return { value: best.value + this.#at(this.#added, node), node: best.node }
  }

  #update(node: number): void {
    const below = Math.max(this.#at(this.#max, 2 * node), this.#at(this.#max, 2 * node + 1))
    this.#max[node] = below + this.#at(this.#added, node)
  }

  #at(values: Float64Array, node: number): number {
    return values[node] as number
  }
}
