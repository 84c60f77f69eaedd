import { describe, expect, it } from 'vitest'
import type { BucketStore, Refund } from '../../core/bucket-store.js'
import { FluxGateError } from '../../core/errors.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter } from './create-limiter.js'

const start = 1_800_000_000_000
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const unsent = (): FluxGateError => new FluxGateError('FLUXGATE_STORE_UNREACHABLE', 'no connection')
const lost = (): FluxGateError => new FluxGateError('FLUXGATE_STORE_TIMEOUT', 'no reply')

/** A limit of one permit per second in a remote store whose refunds go through `refund`. */
function open(refund: (execute: () => Promise<void>) => Promise<void>) {
  const clock = manualClock(start)
  const memory = memoryStore({ clock })
  /** The slots of all refund attempts, in seconds from the start. */
  const attempts: number[] = []
  const store: BucketStore = {
    isBounded: true,
    charge: (demands, peek) => memory.charge(demands, peek),
    reset: (group, key) => memory.reset(group, key),
    close: () => memory.close(),
    refund(refunds) {
      attempts.push(...refunds.map(({ grantedAt }: Refund) => ((grantedAt?.[0] ?? 0) / 1000 - start) / 1000))
      return refund(() => memory.refund(refunds))
    },
  }
  const limiter = createLimiter({ capacity: 1, window: '1s', store, clock })
  const wait = (permits = 1) => {
    const controller = new AbortController()
    limiter.wait('a', { permits, maxWaitMs: 60_000, signal: controller.signal }).catch(() => {})
    return () => controller.abort()
  }
  /** Seconds until the last slot in use. */
  const taken = async (): Promise<number> => ((await limiter.peek('a')).retryAfterMs as number) / 1000 - 1
  return { clock, limiter, attempts, wait, taken }
}

describe('the refund of an aborted wait', () => {
  it('is retried until the store executes it, last slot first', async () => {
    let isDown = true
    const { clock, limiter, attempts, wait } = open((execute) => (isDown ? Promise.reject(unsent()) : execute()))
    await limiter.consume('a')
    const leave = [wait(), wait(), wait()]
    await settled()
    for (const one of leave) one()
    await settled()
    expect(attempts.splice(0)).toEqual([3, 2, 1])
    clock.advance(25)
    await settled()
    expect(attempts.splice(0)).toEqual([3, 2, 1])
    isDown = false
    clock.advance(50)
    await settled()
    expect(attempts.splice(0)).toEqual([3, 2, 1])
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, retryAfterMs: 925 })
    clock.advance(10_000)
    await settled()
    expect(attempts).toEqual([])
  })

  it('is retried as soon as the store has answered a decision', async () => {
    let isDown = true
    const { limiter, attempts, wait, taken } = open((execute) => (isDown ? Promise.reject(unsent()) : execute()))
    await limiter.consume('a')
    const leave = [wait(), wait()]
    await settled()
    for (const one of leave) one()
    await settled()
    isDown = false
    await limiter.peek('a')
    await settled()
    expect(attempts).toEqual([2, 1, 2, 1])
    expect(await taken()).toBe(0)
  })

  it('is not retried if the store may have executed it, because a second refund would allow too much', async () => {
    const { clock, limiter, attempts, wait, taken } = open(async (execute) => {
      await execute()
      throw lost()
    })
    await limiter.consume('a')
    const leave = [wait(), wait(), wait()]
    await settled()
    leave[0]?.()
    clock.advance(500)
    await settled()
    await limiter.peek('a')
    await settled()
    expect(attempts).toEqual([3])
    expect(await taken()).toBe(1.5)
  })

  it('is dropped once the time of its slot has passed', async () => {
    const { clock, limiter, attempts, wait } = open(() => Promise.reject(unsent()))
    await limiter.consume('a')
    const leave = [wait(), wait()]
    await settled()
    for (const one of leave) one()
    await settled()
    for (let i = 0; i < 20; i++) {
      clock.advance(100)
      await settled()
    }
    const last = attempts.length
    expect(new Set(attempts)).toEqual(new Set([1, 2]))
    clock.advance(60_000)
    await settled()
    expect(attempts).toHaveLength(last)
  })

  it('refunds the slot of a new wait instead, which moves up to the slot that could not be refunded', async () => {
    let isDown = true
    const { clock, limiter, attempts, wait, taken } = open((execute) => (isDown ? Promise.reject(unsent()) : execute()))
    await limiter.consume('a')
    const leave = [wait(), wait()]
    await settled()
    for (const one of leave) one()
    await settled()
    attempts.splice(0)
    isDown = false
    const released: number[] = []
    limiter.wait('a', { maxWaitMs: 60_000 }).then(() => released.push(clock.now() - start))
    await settled()
    expect(attempts).toEqual([3, 2])
    expect(await taken()).toBe(1)
    clock.advance(1_000)
    await settled()
    expect(released).toEqual([1_000])
  })
})
