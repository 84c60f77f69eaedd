import { expect, it } from 'vitest'
import { manualClock } from '../../testing/index.js'
import { PendingRefunds } from './pending-refunds.js'
import type { TimedSlot } from './slot.js'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('keeps refunds of a bucket after one has failed, and sends later ones immediately once the retry has succeeded', async () => {
  const clock = manualClock(0)
  const sent: string[] = []
  let isUp = false
  const owed: PendingRefunds = new PendingRefunds(clock, (slots) => {
    for (const slot of slots) owed.giveBack(slot)
  })
  const refund = (bucket: string, at: number): TimedSlot => ({
    slot: {
      bucket,
      permits: 1,
      grantedAt: [at],
      delay: 1000,
      isOrdered: true,
      async giveBack() {
        sent.push(`${bucket}${at}`)
        return isUp
      },
    },
    dueAt: 1_000_000,
  })
  owed.giveBack(refund('a', 2))
  await turn()
  isUp = true
  owed.giveBack(refund('a', 1))
  owed.giveBack(refund('b', 1))
  expect(sent).toEqual(['a2', 'b1'])
  clock.advance(25)
  expect(sent).toEqual(['a2', 'b1', 'a2', 'a1'])
  await turn()
  owed.giveBack(refund('a', 3))
  expect(sent).toEqual(['a2', 'b1', 'a2', 'a1', 'a3'])
})
