import { describe, expect, it } from 'vitest'
import { finish, mapInSteps, Slicer, type Steps, sortInSteps } from './steps.js'

/** Each step takes one millisecond. The test controls the turns of the event loop. */
function manualSlicer(sliceMs: number) {
  let now = 0
  let ends: (() => void)[] = []
  const slicer = new Slicer({
    now: () => now,
    nextTurn: () => new Promise((resolve) => ends.push(resolve)),
    sliceMs,
  })
  function* work(steps: number, done: number[] = []): Steps<number> {
    for (let step = 1; step <= steps; step++) {
      now += 1
      done.push(step)
      yield
    }
    return steps
  }
  const endTurn = async (): Promise<void> => {
    const ended = ends
    ends = []
    for (const end of ended) end()
    for (let i = 0; i < 10; i++) await Promise.resolve()
  }
  return { slicer, work, endTurn }
}

describe('Slicer', () => {
  it('returns the result of a short task synchronously', () => {
    const { slicer, work } = manualSlicer(5)
    expect(slicer.run(work(4))).toBe(4)
  })

  it('yields to the event loop after each slice', async () => {
    const { slicer, work, endTurn } = manualSlicer(5)
    const done: number[] = []
    const result = slicer.run(work(12, done))
    const counts = [done.length]
    for (let turn = 0; turn < 3; turn++) {
      await endTurn()
      counts.push(done.length)
    }
    expect(counts).toEqual([5, 10, 12, 12])
    expect(await result).toBe(12)
  })

  it('shares one slice among all tasks of a turn', async () => {
    const { slicer, work, endTurn } = manualSlicer(5)
    expect(slicer.run(work(3))).toBe(3)
    const done: number[] = []
    const result = slicer.run(work(4, done))
    expect(done).toEqual([1, 2])
    const later: number[] = []
    const third = slicer.run(work(1, later))
    expect(later).toEqual([])
    await endTurn()
    await endTurn()
    expect(await result).toBe(4)
    expect(await third).toBe(1)
    expect(slicer.run(work(4))).toBe(4)
  })

  it('shares one slice among all pending tasks, and continues each of them', async () => {
    const { slicer, work, endTurn } = manualSlicer(5)
    const done: number[][] = [[], [], []]
    const results = Promise.all(done.map((steps) => slicer.run(work(10, steps))))
    const count = () => done.reduce((sum, { length }) => sum + length, 0)
    const counts = [count()]
    while (count() < 30) {
      await endTurn()
      counts.push(count())
    }
    await endTurn()
    expect(counts).toEqual([5, 10, 15, 20, 25, 30])
    expect(await results).toEqual([10, 10, 10])
  })

  it('continues tasks in order', async () => {
    const { slicer, work, endTurn } = manualSlicer(2)
    const done: number[][] = [[], []]
    void Promise.all(done.map((steps) => slicer.run(work(4, steps))))
    await endTurn()
    expect(done.map(({ length }) => length)).toEqual([4, 0])
    await endTurn()
    expect(done.map(({ length }) => length)).toEqual([4, 2])
  })

  it('throws errors of the first slice synchronously and rejects with later ones', async () => {
    const { slicer, work, endTurn } = manualSlicer(2)
    function* failing(steps: number): Steps<never> {
      yield* work(steps)
      throw new Error('no')
    }
    expect(() => slicer.run(failing(1))).toThrow('no')
    await endTurn()
    const result = expect(slicer.run(failing(3))).rejects.toThrow('no')
    await endTurn()
    await endTurn()
    await result
  })
})

describe('sliced tasks', () => {
  it('map a list and yield after each item or after several', () => {
    const steps = mapInSteps([1, 2, 3, 4, 5], (n) => n * 2, 2)
    expect([steps.next().done, steps.next().done, steps.next()]).toEqual([
      false,
      false,
      { done: true, value: [2, 4, 6, 8, 10] },
    ])
  })

  it('sort like toSorted, stably', () => {
    const items = Array.from({ length: 5_000 }, (_, i) => ({ rank: (i * 7_919) % 100, i }))
    const compare = (a: { rank: number }, b: { rank: number }) => a.rank - b.rank
    expect(finish(sortInSteps(items, compare))).toEqual(items.toSorted(compare))
    expect(finish(sortInSteps([], compare))).toEqual([])
    let turns = 0
    for (const _ of sortInSteps(items, compare)) turns += 1
    expect(turns).toBeGreaterThan(10)
  })
})
