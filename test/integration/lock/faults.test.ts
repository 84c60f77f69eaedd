/** Locks under faults: frozen servers, lost replies, killed holders. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type LockState, redisSemaphore } from '../../../src/lock.js'
import { eventually } from '../../fixtures/eventually.js'
import { settlesWithin } from '../../fixtures/settles-within.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { callOnce } from '../../servers/resp.js'
import { quickFailover, startSentinel } from '../../servers/sentinel.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { startProxy } from '../../servers/tcp-proxy.js'
import { aborted, closedAfterTest, lost, openLock, timedOut } from './test-locks.js'

const call = (...command: string[]) => callOnce(sharedRedis(), ...command)

/** An ioredis client with default options: it retries commands and waits for replies without a limit. */
function patientClient(port: number): Redis {
  const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 50 })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

function unhandledRejections(): unknown[] {
  const found: unknown[] = []
  const note = (reason: unknown) => found.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  return found
}

describe('a server that freezes', () => {
  it('does not delay the abort of the signal at the end of the lease, by the clock of the holder', async () => {
    const server = await stopAfterTest(startRedis())
    const unhandled = unhandledRejections()
    // A call may take 30 s, so the abort is not caused by the end of a call.
    const lock = openLock({ timeoutMs: 30_000, ttlMs: 1_000 }, patientClient(server.port))
    const askedAt = performance.now()
    const hold = await lock.acquire('orders')
    server.pause()
    // The lease ends by a timer of 1 s in this process.
    expect(await settlesWithin(5_000, aborted(hold.signal))).toBe(true)
    const afterMs = performance.now() - askedAt
    server.resume()
    const { reason } = hold.signal
    expect(reason).toMatchObject(lost)
    expect(reason).toMatchObject({ message: expect.stringContaining('its lease expired') })
    // The lease starts before the call, less 1 % and 2 ms for clock drift, and timers may fire 1 ms early.
    expect(afterMs).toBeGreaterThanOrEqual(1_000 - 12 - 1)
    expect(unhandled).toEqual([])
  })

  it('does not hide an error of the work', async () => {
    const server = await stopAfterTest(startRedis())
    const lock = openLock({ ttlMs: 3_000 }, server.uri)
    const mistake = new Error('out of stock')
    const work = lock.using('orders', async (signal) => {
      server.pause()
      await aborted(signal)
      throw mistake
    })
    await expect(work).rejects.toBe(mistake)
    // If the work itself succeeds, it fails because it was not protected until its end.
    server.resume()
    const unprotected = lock.using('orders', async (signal) => {
      server.pause()
      await aborted(signal)
    })
    await expect(unprotected).rejects.toMatchObject(lost)
    server.resume()
  })

  it('that dies causes no unhandled rejection, and the signal of the holder aborts', async () => {
    const server = await stopAfterTest(startRedis())
    const unhandled = unhandledRejections()
    const lock = openLock({ ttlMs: 3_000 }, server.uri)
    const hold = await lock.acquire('orders')
    const waiting = expect(lock.acquire('orders', { waitMs: 4_000 })).rejects.toMatchObject({
      code: expect.stringMatching(/^FLUXGATE_STORE_(FAILED|UNREACHABLE)$/),
    })
    await server.kill()
    expect(await aborted(hold.signal)).toMatchObject(lost)
    expect(await hold.release()).toBe(false)
    await waiting
    await lock.close()
    await new Promise(setImmediate)
    expect(unhandled).toEqual([])
  })
})

describe('a lost reply', () => {
  it('does not make a holder block itself: the retry uses the same token', async () => {
    const proxy = await stopAfterTest(startProxy(sharedRedis().port))
    const prefix = freshPrefix()
    const lock = openLock({ prefix, ttlMs: 60_000 }, `redis://127.0.0.1:${proxy.port}`)
    await lock.inspect('orders')
    proxy.setDelay(200)
    const acquiring = lock.tryAcquire('orders')
    // Granted in Redis, but the connection ends before the reply arrives.
    await eventually('the lock is granted', async () => (await call('EXISTS', `${prefix}:lock:{orders}`)) === 1)
    proxy.setDelay(0)
    proxy.cut()
    const hold = await acquiring
    expect(hold?.isHeld).toBe(true)
    expect(await lock.inspect('orders')).toMatchObject({ holds: 1, fence: hold?.fence })
    await hold?.release()
    expect(await lock.inspect('orders')).toBeUndefined()
  })

  it('to a release is retried, and the lock is free', async () => {
    const proxy = await stopAfterTest(startProxy(sharedRedis().port))
    const lock = openLock({ ttlMs: 60_000 }, `redis://127.0.0.1:${proxy.port}`)
    const hold = await lock.acquire('orders')
    proxy.cut()
    expect(await hold.release()).toBe(true)
    expect(await lock.inspect('orders')).toBeUndefined()
  })

  it('to an aborted acquisition leaves no lock behind', async () => {
    const proxy = await stopAfterTest(startProxy(sharedRedis().port))
    const prefix = freshPrefix()
    const lock = openLock({ prefix, ttlMs: 60_000, timeoutMs: 100 }, patientClient(proxy.port))
    await lock.inspect('orders')
    proxy.hang()
    await expect(lock.tryAcquire('orders')).rejects.toMatchObject({ code: 'FLUXGATE_STORE_TIMEOUT' })
    proxy.resume()
    const other = openLock({ prefix })
    expect((await other.acquire('orders', { waitMs: 60_000 })).isHeld).toBe(true)
  })
})

describe('an acquired lock', () => {
  it('is never returned already expired', async () => {
    const proxy = await stopAfterTest(startProxy(sharedRedis().port))
    const prefix = freshPrefix()
    const lock = openLock({ prefix, ttlMs: 200, timeoutMs: 5_000 }, `redis://127.0.0.1:${proxy.port}`)
    await lock.inspect('orders')
    // Every lease ends before the reply arrives.
    proxy.setDelay(150)
    await expect(lock.acquire('orders', { waitMs: 700 })).rejects.toMatchObject(timedOut)
    proxy.setDelay(0)
    expect((await openLock({ prefix }).acquire('orders')).isHeld).toBe(true)
  })

  it('that Redis has lost aborts the signal of its holder at the next extension by the watchdog', async () => {
    const prefix = freshPrefix()
    const hold = await openLock({ prefix, ttlMs: 3_000 }).acquire('orders')
    await call('DEL', `${prefix}:lock:{orders}`)
    expect(await aborted(hold.signal)).toMatchObject({
      ...lost,
      message: 'The lock "orders" is no longer held: it was unlocked by force, or Redis lost it.',
    })
  })
})

describe('a holder that is killed', () => {
  it('does not keep the lock beyond its lease', async () => {
    const prefix = freshPrefix()
    // A holder that gets no CPU time for a whole lease loses the lock, and acquires it again.
    const program = `
      import { redisLock } from 'fluxgate-js/lock'
      const lock = redisLock(${JSON.stringify(sharedRedis().uri)}, { prefix: ${JSON.stringify(prefix)}, ttlMs: 2_000 })
      for (;;) {
        const { signal } = await lock.acquire('orders')
        console.log('held')
        await new Promise((lost) => signal.addEventListener('abort', lost, { once: true }))
      }`
    const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void holder.kill('SIGKILL'))
    await once(holder.stdout, 'data')
    const lock = openLock({ prefix })
    let last: LockState | undefined
    await eventually('the watchdog has extended the lease', async () => {
      const before = last
      last = await lock.inspect('orders')
      if (before === undefined || last?.fence !== before.fence) return false
      return last.expiresInMs > before.expiresInMs
    })
    holder.kill('SIGKILL')
    expect((await lock.acquire('orders', { waitMs: 60_000 })).isHeld).toBe(true)
  })
})

describe('fencing tokens', () => {
  it('increase from holder to holder', async () => {
    const lock = openLock()
    const fences: number[] = []
    for (let i = 0; i < 50; i++) await lock.using('orders', (_, { fence }) => fences.push(fence))
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
    expect(fences.every(Number.isSafeInteger)).toBe(true)
  })

  it("increase by one if the server's clock steps back, even after a fence was lost", async () => {
    const prefix = freshPrefix()
    const lock = openLock({ prefix })
    const before = await lock.using('orders', (_, { fence }) => fence)
    await call('DEL', `${prefix}:lock-fence:{orders}`)
    expect(await lock.using('orders', (_, { fence }) => fence)).toBeGreaterThan(before)
    const ahead = (Date.now() + 3_600_000) * 1_000
    await call('SET', `${prefix}:lock-fence:{orders}`, String(ahead))
    expect(await lock.using('orders', (_, { fence }) => fence)).toBe(ahead + 1)
    expect(await lock.using('orders', (_, { fence }) => fence)).toBe(ahead + 2)
  })

  it('keep increasing through a failover to a replica without any data', async () => {
    const group = await stopAfterTest(startSentinel(quickFailover))
    const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }))
    const lock = openLock({ waitMs: 25_000, ttlMs: 2_000 }, { sentinels, sentinelName: group.name })
    const before = await lock.using('orders', (_, { fence }) => fence)
    const old = await group.primary()
    await old.call('FLUSHALL')
    await group.killPrimary()
    await group.waitForNewPrimary(old)
    const after = await lock.using('orders', (_, { fence }) => fence)
    expect(after).toBeGreaterThan(before)
  })
})

describe('a semaphore', () => {
  it('does not admit a second holder because of a fast clock', async () => {
    const options = { prefix: freshPrefix(), permits: 1 }
    const holder = await closedAfterTest(redisSemaphore(sharedRedis().uri, options)).acquire('exports')
    const now = Date.now()
    vi.spyOn(Date, 'now').mockImplementation(() => now + 3_600_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const other = closedAfterTest(redisSemaphore(sharedRedis().uri, options))
    expect(await other.tryAcquire('exports')).toBeUndefined()
    await holder.release()
    expect(await other.tryAcquire('exports')).toBeDefined()
  })
})
