/** Counts how often the room reads the slots of requests: what grows with their number shows, however fast the machine is. */
import { describe, expect, it } from 'vitest'
import type { Slot } from '../../src/core/waiting/slot.js'
import { WaitingRoom } from '../../src/core/waiting/waiting-room.js'
import { manualClock } from '../../src/testing/index.js'
import { WaitingRoomModel } from './waiting-room-model.js'

type Order = 'oldest first' | 'newest first' | 'scattered' | 'released'

const positions: Readonly<Record<Exclude<Order, 'released'>, (n: number, i: number) => number>> = {
  'oldest first': (_, i) => i,
  'newest first': (n, i) => n - 1 - i,
  scattered: (n, i) => (i * 7919) % n,
}

/** Reads of slots per request that enters and leaves. */
function readsPerRequest(
  Room: typeof WaitingRoom | typeof WaitingRoomModel,
  n: number,
  order: Order,
  isHeld = true,
): number {
  let reads = 0
  const slot = (bucket: string, i: number): Slot => ({
    bucket,
    permits: 1,
    get grantedAt() {
      reads++
      return [i]
    },
    delay: 1000 * i,
    isOrdered: true,
    giveBack: () => Promise.resolve(true),
  })
  const clock = manualClock(0)
  const room = new Room(n, clock)
  const callers = Array.from({ length: n }, () => new AbortController())
  let left = 0
  for (const [i, { signal }] of callers.entries()) {
    const slots = [slot('all', i + 1), slot(`caller ${i % 100}`, i + 1)]
    room.enter({ slots, isHeld, signal, leave: () => left++ })
  }
  if (order === 'released') clock.advance(n)
  else for (let i = 0; i < n; i++) callers[positions[order](n, i)]?.abort()
  expect([left, room.size]).toEqual([n, 0])
  return reads / n
}

describe.each<Order>(['oldest first', 'newest first', 'scattered', 'released'])('%s', (order) => {
  it.each([
    ['held requests', true],
    ['requests with a fixed release time', false],
  ])('%s: entering and leaving takes less than twice as many steps among 8000 requests as among 1000', (_, isHeld) => {
    const few = readsPerRequest(WaitingRoom, 1000, order, isHeld)
    const many = readsPerRequest(WaitingRoom, 8000, order, isHeld)
    // Three more levels of each tree. Steps that visit all requests would be eight times as many.
    expect(many).toBeLessThan(2 * few)
    expect(many).toBeLessThan(20 * Math.log2(8000))
  })
})

it('detects growth: the reads of the naive model grow with the queue', () => {
  const few = readsPerRequest(WaitingRoomModel, 50, 'oldest first')
  expect(readsPerRequest(WaitingRoomModel, 400, 'oldest first')).toBeGreaterThan(4 * few)
})
