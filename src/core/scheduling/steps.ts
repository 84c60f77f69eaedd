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

/** Runs tasks in slices. All tasks in one turn of the event loop share one slice, so that many short tasks do not add up to a stall. */
export class Slicer {
  readonly #slicing: Slicing
  #spentMs = 0
  #isTurning = false

  constructor(slicing: Slicing) {
    this.#slicing = slicing
  }

  /** Returns the result if the first slice is enough, so that small rule sets stay synchronous. Otherwise returns a promise. */
  run<T>(steps: Steps<T>): T | Promise<T> {
    if (this.#spentMs >= this.#slicing.sliceMs) return this.#later(steps)
    const step = this.#slice(steps)
    return step.done ? step.value : this.#later(steps)
  }

  async #later<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.#slicing.nextTurn()
      const step = this.#slice(steps)
      if (step.done) return step.value
    }
  }

  #slice<T>(steps: Steps<T>): IteratorResult<undefined, T> {
    const { now, sliceMs } = this.#slicing
    const startedAt = now()
    const endsAt = startedAt + Math.max(1, sliceMs - this.#spentMs)
    let at = startedAt
    let step: IteratorResult<undefined, T>
    do {
      step = steps.next()
      at = now()
    } while (!step.done && at < endsAt)
    this.#spend(at - startedAt)
    return step
  }

  #spend(ms: number): void {
    this.#spentMs += ms
    if (this.#isTurning || this.#spentMs < 1) return
    this.#isTurning = true
    void this.#slicing.nextTurn().then(() => {
      this.#spentMs = 0
      this.#isTurning = false
    })
  }
}

const slicer = new Slicer({
  now: () => performance.now(),
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  sliceMs: 5,
})

/** As `Slicer.run`, with the slicer that all tasks of this process share. */
export const inSlices = <T>(steps: Steps<T>): T | Promise<T> => slicer.run(steps)

/** As `forEach`. Yields after each `every` items. */
export function* eachInSteps<T>(list: Iterable<T>, use: (item: T, index: number) => void, every = 1): Steps<void> {
  let index = 0
  for (const item of list) {
    use(item, index)
    index += 1
    if (index % every === 0) yield
  }
}

/** As `map`. Yields after each `every` items. */
export function* mapInSteps<T, U>(list: Iterable<T>, map: (item: T, index: number) => U, every = 1): Steps<U[]> {
  const mapped: U[] = []
  yield* eachInSteps(list, (item, index) => mapped.push(map(item, index)), every)
  return mapped
}

const sortedAtOnce = 1_024

/** As `toSorted`. The sort is stable. */
export function* sortInSteps<T>(list: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
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
