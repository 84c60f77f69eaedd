import { describe, expect, it } from 'vitest'
import { TurnBatches } from './turn-batches.js'

function recorder(maxWeight = 4) {
  const sent: [number, number[]][] = []
  const batches = new TurnBatches<number>({
    maxWeight,
    send: (route, items) => sent.push([route, [...items]]),
  })
  return { sent, batches }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('TurnBatches', () => {
  it('sends all items of a turn together at its end', async () => {
    const { sent, batches } = recorder()
    batches.add(0, 1, 1)
    await Promise.resolve()
    batches.add(0, 2, 2)
    expect(sent).toEqual([])
    await nextTurn()
    expect(sent).toEqual([[0, [1, 2]]])
    await nextTurn()
    expect(sent).toHaveLength(1)
  })

  it('starts a new batch in each turn', async () => {
    const { sent, batches } = recorder()
    batches.add(0, 1, 1)
    await nextTurn()
    batches.add(0, 2, 2)
    await nextTurn()
    expect(sent).toEqual([
      [0, [1]],
      [0, [2]],
    ])
  })

  it('keeps the order within a route and separates routes', async () => {
    const { sent, batches } = recorder(100)
    for (const [route, item] of [
      [7, 1],
      [9, 2],
      [7, 3],
      [9, 4],
      [7, 5],
    ] as const)
      batches.add(route, item, item)
    await nextTurn()
    expect(sent).toEqual([
      [7, [1, 3, 5]],
      [9, [2, 4]],
    ])
  })

  it('fills batches up to the maximum weight', async () => {
    const { sent, batches } = recorder(4)
    for (const item of [1, 1, 2, 1, 3, 2]) batches.add(0, item, item)
    await nextTurn()
    expect(sent.map(([, items]) => items)).toEqual([[1, 1, 2], [1, 3], [2]])
  })

  it('sends an item that exceeds the maximum weight in a batch of its own', async () => {
    const { sent, batches } = recorder(4)
    for (const item of [9, 1, 9, 4, 5]) batches.add(0, item, item)
    await nextTurn()
    expect(sent.map(([, items]) => items)).toEqual([[9], [1], [9], [4], [5]])
  })

  it('sends items that are added during a flush in the next turn', async () => {
    const sent: number[][] = []
    const batches: TurnBatches<number> = new TurnBatches<number>({
      maxWeight: 10,
      send(route, items) {
        sent.push([...items])
        if (sent.length === 1) batches.add(route, 2, 2)
      },
    })
    batches.add(0, 1, 1)
    await nextTurn()
    expect(sent).toEqual([[1]])
    await nextTurn()
    expect(sent).toEqual([[1], [2]])
  })
})
