/** Semaphores: a bounded number of holders. */
import { describe, expect, it } from 'vitest'
import { redisSemaphore, type SemaphoreOptions } from '../../../src/lock.js'
import { eventually } from '../../fixtures/eventually.js'
import { callOnce } from '../../servers/resp.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { aborted, closedAfterTest, lost, openLock } from './test-locks.js'

const call = (...command: string[]) => callOnce(sharedRedis(), ...command)
const open = (options: SemaphoreOptions) =>
  closedAfterTest(redisSemaphore(sharedRedis().uri, { prefix: freshPrefix(), ...options }))

describe('a semaphore', () => {
  it('has as many holders as permits, each with its own fence', async () => {
    const semaphore = open({ permits: 2 })
    const first = await semaphore.acquire('exports')
    const second = await semaphore.acquire('exports')
    expect(second.fence).toBeGreaterThan(first.fence)
    expect(await semaphore.tryAcquire('exports')).toBeUndefined()
    expect(await semaphore.tryAcquire('imports')).toBeDefined()
    expect(await first.release()).toBe(true)
    expect(await semaphore.tryAcquire('exports')).toBeDefined()
    expect(await semaphore.tryAcquire('exports')).toBeUndefined()
  })

  it('never has more holders than permits, however many callers compete', async () => {
    const prefix = freshPrefix()
    const semaphores = [open({ permits: 3, prefix }), open({ permits: 3, prefix })]
    let inside = 0
    let most = 0
    let entered = 0
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        semaphores[i % 2]?.using('exports', { waitMs: 60_000 }, async () => {
          most = Math.max(most, ++inside)
          // The first three holders keep their permits until all three have entered.
          if (++entered <= 3) await eventually('three permits are held', () => most >= 3)
          await new Promise((resolve) => setTimeout(resolve, 2))
          inside--
        }),
      ),
    )
    expect(most).toBe(3)
  })

  it('expires each hold separately: a dead holder does not affect the others', async () => {
    const prefix = freshPrefix()
    const semaphore = open({ permits: 2, prefix })
    const dead = await semaphore.acquire('exports', { ttlMs: 3_000, watchdog: false })
    const alive = await semaphore.acquire('exports', { ttlMs: 60_000 })
    const next = await semaphore.acquire('exports', { waitMs: 20_000 })
    expect(await aborted(dead.signal)).toMatchObject(lost)
    expect([alive.isHeld, next.isHeld]).toEqual([true, true])
    expect(await semaphore.tryAcquire('exports')).toBeUndefined()
    expect(await dead.release()).toBe(false)
    expect(await call('ZCARD', `${prefix}:semaphore:{exports}`)).toBe(2)
  })

  it('extends a hold and rejects if the hold is lost', async () => {
    const prefix = freshPrefix()
    const semaphore = open({ permits: 1, prefix })
    const hold = await semaphore.acquire('exports', { ttlMs: 10_000 })
    await hold.extend(30_000)
    expect(hold.remainingMs).toBeGreaterThan(20_000)
    await call('DEL', `${prefix}:semaphore:{exports}`)
    await expect(hold.extend()).rejects.toMatchObject(lost)
    expect(hold.signal.aborted).toBe(true)
  })

  it('grants permits in order if it is fair', async () => {
    const prefix = freshPrefix()
    const semaphores = [open({ permits: 1, prefix, fair: true }), open({ permits: 1, prefix, fair: true })]
    const first = await semaphores[0]?.acquire('exports')
    const order: number[] = []
    const waiting: unknown[] = []
    for (let i = 0; i < 6; i++) {
      waiting.push(semaphores[i % 2]?.using('exports', { waitMs: 60_000 }, () => order.push(i)))
      await eventually(
        'the caller is queued',
        async () => (await call('ZCARD', `${prefix}:semaphore-queue:{exports}`)) === i + 1,
      )
    }
    await first?.release()
    await Promise.all(waiting)
    expect(order).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('leaves only its last fence behind', async () => {
    const prefix = freshPrefix()
    await open({ permits: 1, prefix, fair: true }).using('exports', () => {})
    expect(await call('KEYS', `${prefix}*`)).toEqual([`${prefix}:semaphore-fence:{exports}`])
  })

  it('is independent of a lock with the same name', async () => {
    const prefix = freshPrefix()
    await openLock({ prefix }).acquire('exports')
    expect(await open({ permits: 1, prefix }).tryAcquire('exports')).toBeDefined()
  })

  it.each([0, 1.5, '2', undefined])('rejects %j permits', (permits) => {
    expect(() => redisSemaphore(sharedRedis().uri, { permits } as SemaphoreOptions)).toThrow(
      expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }),
    )
  })

  it('rejects missing options with a validation error', () => {
    expect(() => redisSemaphore(sharedRedis().uri, undefined as never)).toThrow(
      'options must be an object; received nothing.',
    )
  })
})
