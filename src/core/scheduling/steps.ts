import { nextTurn } from './next-turn.js'

/**
 * Cooperative scheduling, so that work over thousands of rules does not block decisions. Such a task is a generator that
 * yields after each short step. It either runs to completion at once or in slices, between which the event loop runs.
 */

/** A task whose steps take well below a millisecond. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Runs the task to completion synchronously. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

export interface Slicing {
  /** A monotonic clock in milliseconds. */
  now(): number
  /** Resolves in the next turn of the event loop. */
  nextTurn(): Promise<void>
  /** The maximum time per turn of the event loop that all tasks together may take, in milliseconds. */
  readonly sliceMs: number
}

/** A task that waits for its next slice. */
interface Pending {
  readonly steps: Steps<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Runs tasks in slices. All tasks in one turn of the event loop share one slice, so that concurrent tasks do not add up to a
 * stall. Tasks that do not fit wait in a queue for the next turn.
 */
export class Slicer {
  readonly #slicing: Slicing
  readonly #pending: Pending[] = []
  #spentMs = 0
  #isTurning = false

  constructor(slicing: Slicing) {
    this.#slicing = slicing
  }

  /** Returns the result if the first slice is enough, so that small rule sets stay synchronous. Otherwise returns a promise. */
  run<T>(steps: Steps<T>): T | Promise<T> {
    if (this.#pending.length === 0 && this.#spentMs < this.#slicing.sliceMs) {
      const step = this.#slice(steps)
      if (step.done) return step.value
    }
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ steps, resolve: resolve as Pending['resolve'], reject })
      this.#awaitTurn()
    })
  }

  #awaitTurn(): void {
    if (this.#isTurning) return
    this.#isTurning = true
    void this.#slicing.nextTurn().then(() => this.#turn())
  }

  #turn(): void {
    this.#isTurning = false
    this.#spentMs = 0
    while (this.#spentMs < this.#slicing.sliceMs) {
      const work = this.#pending.shift()
      if (work === undefined) return
      this.#continue(work)
    }
    if (this.#pending.length > 0) this.#awaitTurn()
  }

  #continue(work: Pending): void {
    try {
      const step = this.#slice(work.steps)
      if (step.done) work.resolve(step.value)
      else this.#pending.push(work)
    } catch (error) {
      work.reject(error)
    }
  }

  /** Ends with the work, or with the slice of this turn. */
  #slice<T>(steps: Steps<T>): IteratorResult<undefined, T> {
    const { now, sliceMs } = this.#slicing
    const startedAt = now()
    const endsAt = startedAt + sliceMs - this.#spentMs
    let at = startedAt
    try {
      for (;;) {
        const step = steps.next()
        at = now()
        if (step.done || at >= endsAt) return step
      }
    } finally {
      this.#spentMs += at - startedAt
      if (this.#spentMs >= 1) this.#awaitTurn()
    }
  }
}

const slicer = new Slicer({
  now: () => performance.now(),
  // Two calls, because in an I/O callback the first one runs before the event loop polls for I/O again.
  nextTurn: () => new Promise((resolve) => nextTurn(() => nextTurn(resolve))),
  sliceMs: 5,
})

/** Like `Slicer.run`, with the slicer that all tasks of this process share. */
export const inSlices = <T>(steps: Steps<T>): T | Promise<T> => slicer.run(steps)

/** The items per step if each takes very little time, so that reading the clock between steps does not dominate. */
export const manyPerStep = 64

/** Like `forEach`. Yields after each `every` items. */
export function* eachInSteps<T>(list: Iterable<T>, use: (item: T, index: number) => void, every = 1): Steps<void> {
  let index = 0
  for (const item of list) {
    use(item, index)
    index += 1
    if (index % every === 0) yield
  }
}

/** Like `map`. Yields after each `every` items. */
export function* mapInSteps<T, U>(list: Iterable<T>, map: (item: T, index: number) => U, every = 1): Steps<U[]> {
  const mapped: U[] = []
  yield* eachInSteps(list, (item, index) => mapped.push(map(item, index)), every)
  return mapped
}

/** Like `filter`. */
export function* filterInSteps<T>(list: Iterable<T>, isWanted: (item: T) => boolean, every = 1): Steps<T[]> {
  const wanted: T[] = []
  yield* eachInSteps(list, (item) => isWanted(item) && wanted.push(item), every)
  return wanted
}

const sortedAtOnce = 1_024

/** Like `toSorted`. The sort is stable. */
export function* sortInSteps<T>(list: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  if (yield* isSorted(list, compare)) return list.slice()
  let runs: T[][] = []
  for (let at = 0; at < list.length; at += sortedAtOnce) {
    runs.push(list.slice(at, at + sortedAtOnce).sort(compare))
    yield
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at] as T[], runs[at + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

/** Most lists were sorted before, and comparing neighbours is far less than sorting again. */
function* isSorted<T>(list: readonly T[], compare: (a: T, b: T) => number): Steps<boolean> {
  for (let at = 1; at < list.length; at++) {
    if (compare(list[at - 1] as T, list[at] as T) > 0) return false
    if (at % sortedAtOnce === 0) yield
  }
  return true
}

function* merge<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = []
  let [i, j] = [0, 0]
  while (i < left.length || j < right.length) {
    const isLeft = j === right.length || (i < left.length && compare(left[i] as T, right[j] as T) <= 0)
    merged.push((isLeft ? left[i++] : right[j++]) as T)
    if (merged.length % sortedAtOnce === 0) yield
  }
  return merged
}
