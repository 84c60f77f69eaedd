/** Locks on one Redis server. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { callOnce } from '../../servers/resp.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { lost, openLock, timedOut } from './test-locks.js'

const call = (...command: string[]) => callOnce(sharedRedis(), ...command)

describe('a lock', () => {
  it('is held by one owner at a time, and by the next after its release', async () => {
    const lock = openLock()
    const first = await lock.acquire('orders')
    expect(first.isHeld).toBe(true)
    expect(await lock.tryAcquire('orders')).toBeUndefined()
    expect(await lock.tryAcquire('others')).toBeDefined()
    expect(await first.release()).toBe(true)
    expect(first.isHeld).toBe(false)
    const second = await lock.tryAcquire('orders')
    expect(second?.isHeld).toBe(true)
    // A second release, or one by an owner that lost the lock, does not affect the current holder.
    await first.release()
    expect(await lock.tryAcquire('orders')).toBeUndefined()
  })

  it('is a key that names its holder and expires', async () => {
    const prefix = freshPrefix()
    const lock = openLock({ prefix })
    const hold = await lock.acquire('orders', { ttlMs: 5_000, owner: 'job-7' })
    expect(await call('GET', `${prefix}:lock:{orders}`)).toBe(`${hold.fence}:job-7`)
    const ttl = Number(await call('PTTL', `${prefix}:lock:{orders}`))
    expect(ttl).toBeGreaterThan(0)
    expect(ttl).toBeLessThanOrEqual(5_000)
    expect(await lock.inspect('orders')).toMatchObject({ owner: 'job-7', fence: hold.fence, holds: 1 })
    await hold.release()
    expect(await lock.inspect('orders')).toBeUndefined()
    // Only the last fence remains, for a week.
    expect(await call('KEYS', `${prefix}*`)).toEqual([`${prefix}:lock-fence:{orders}`])
    expect(Number(await call('PTTL', `${prefix}:lock-fence:{orders}`))).toBeGreaterThan(6 * 86_400_000)
  })

  it('can be awaited until a deadline', async () => {
    const lock = openLock()
    await lock.acquire('orders')
    await expect(lock.acquire('orders', { waitMs: 30 })).rejects.toMatchObject(timedOut)
    await expect(lock.acquire('orders', { waitMs: 30 })).rejects.toThrow(
      'The lock "orders" was not acquired within waitMs',
    )
  })

  it('can be awaited until an abort signal', async () => {
    const lock = openLock()
    await lock.acquire('orders')
    const enough = new AbortController()
    const waiting = expect(lock.acquire('orders', { signal: enough.signal })).rejects.toThrow('enough')
    setTimeout(() => enough.abort(new Error('enough')), 20)
    await waiting
  })

  it('is granted to a waiting caller as soon as it is released, without polling', async () => {
    const prefix = freshPrefix()
    const here = openLock({ prefix })
    const there = openLock({ prefix })
    const first = await here.acquire('orders', { ttlMs: 60_000 })
    const waiting = there.acquire('orders', { waitMs: 30_000 })
    await eventually('a caller subscribes', async () => {
      const [, listeners] = (await call('PUBSUB', 'NUMSUB', `${prefix}:lock-free:{orders}`)) as [string, number]
      return listeners === 1
    })
    await first.release()
    expect((await waiting).isHeld).toBe(true)
  })

  it('is granted to a waiting caller when the lease of a dead holder expires', async () => {
    const lock = openLock()
    // A call may take a third of the lease.
    await lock.acquire('orders', { ttlMs: 3_000, watchdog: false })
    const next = await lock.acquire('orders', { waitMs: 20_000 })
    expect(next.isHeld).toBe(true)
  })

  it('passes between many waiting callers, one at a time', async () => {
    const prefix = freshPrefix()
    const locks = [openLock({ prefix }), openLock({ prefix }), openLock({ prefix })]
    let inside = 0
    let most = 0
    const passed = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        locks[i % 3]?.using('orders', { waitMs: 60_000 }, async () => {
          most = Math.max(most, ++inside)
          await new Promise(setImmediate)
          inside--
          return i
        }),
      ),
    )
    expect(passed).toEqual(Array.from({ length: 60 }, (_, i) => i))
    expect(most).toBe(1)
  })

  it('can be released by force, and the signal of its holder aborts', async () => {
    const lock = openLock()
    const hold = await lock.acquire('orders', { ttlMs: 2_000 })
    expect(await lock.forceUnlock('orders')).toBe(true)
    expect(await lock.forceUnlock('orders')).toBe(false)
    expect(await lock.tryAcquire('orders')).toBeDefined()
    await eventually('the holder is notified', () => hold.signal.aborted)
    expect(hold.signal.reason).toMatchObject(lost)
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining(lost))
    expect(await hold.release()).toBe(false)
  })
})
