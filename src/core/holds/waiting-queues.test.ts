import { expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import type { Decision } from '../decision.js'
import { WaitingRoom } from '../waiting/waiting-room.js'
import { HoldQueues } from './waiting-queues.js'

it('keeps a hold that was granted while the last decision of its wait fails', async () => {
  const clock = manualClock(0)
  const queues = new HoldQueues(clock, new WaitingRoom(10, clock), true)
  const attempts: { allow(decision: Decision): void; fail(error: Error): void }[] = []
  let leaves = 0
  const waiting = queues.wait({
    bucket: 'slots',
    number: 0,
    maxWaitMs: 100,
    attempt: () => new Promise((allow, fail) => attempts.push({ allow, fail })),
    isWaiting: ({ allowed }) => !allowed,
    abandon() {},
    left: () => leaves++,
  })
  // The first attempt is in flight when the wait ends with a last one.
  clock.advance(1)
  clock.advance(100)
  expect(attempts).toHaveLength(2)
  attempts[0]?.allow({ allowed: true, degraded: false } as Decision)
  expect(await waiting).toMatchObject({ allowed: true })
  attempts[1]?.fail(new Error('store failed'))
  await new Promise(setImmediate)
  expect(leaves).toBe(0)
})
