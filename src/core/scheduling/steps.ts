/**
 * Long work that gives way to decisions. Work over thousands of rules is written as a generator that yields between short
 * steps. The same generator is either finished at once or run in slices, between which the event loop handles what is pending.
 */

/** Work in steps of well below a millisecond. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Does all of the work now. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

export interface Slicing {
  /** Milliseconds that only grow. */
  now(): number
  /** Resolves after the event loop has handled what is pending. */
  nextTurn(): Promise<void>
  /** How long one turn of the event loop may be spent on sliced work. */
  readonly sliceMs: number
}

/** Runs work in slices. Work that shares a turn of the event loop shares its slice, so that many short pieces add up to no stall. */
export class Slicer {
  readonly #slicing: Slicing
  #spentMs = 0
  #isTurning = false

  constructor(slicing: Slicing) {
    this.#slicing = slicing
  }

  /** The result itself if the first slice is enough, so that small rule sets are never waited for; else a promise of it. */
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

/** As `Slicer.run`, with the slices that all work of this process shares. */
export const inSlices = <T>(steps: Steps<T>): T | Promise<T> => slicer.run(steps)

/** The members of a list, with a step after each `every` of them. */
export function* eachInSteps<T>(list: Iterable<T>, use: (item: T, index: number) => void, every = 1): Steps<void> {
  let index = 0
  for (const item of list) {
    use(item, index)
    index += 1
    if (index % every === 0) yield
  }
}

/** As `map`. */
export function* mapInSteps<T, U>(list: Iterable<T>, map: (item: T, index: number) => U, every = 1): Steps<U[]> {
  const mapped: U[] = []
  yield* eachInSteps(list, (item, index) => mapped.push(map(item, index)), every)
  return mapped
}

const sortedAtOnce = 1_024

/** As `toSorted`. Equal items keep their order. */
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
