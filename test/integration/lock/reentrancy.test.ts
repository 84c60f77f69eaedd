/** Features for lock holders: reentrancy, multiple locks, work with a signal, guarded writes, fair queues. */
import { describe, expect, it } from 'vitest'
import { guardedScript, redisLock } from '../../../src/lock.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startCluster } from '../../servers/cluster.js'
import { callOnce } from '../../servers/resp.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { aborted, lost, openLock, timedOut } from './test-locks.js'

const call = (...command: string[]) => callOnce(sharedRedis(), ...command)

describe('an owner', () => {
  it('can acquire a lock repeatedly and holds it until the last hold is released', async () => {
    const lock = openLock()
    const outer = await lock.acquire('orders', { owner: 'job-7' })
    const inner = await lock.acquire('orders', { owner: 'job-7' })
    expect(inner.fence).toBe(outer.fence)
    expect(await lock.inspect('orders')).toMatchObject({ owner: 'job-7', holds: 2 })
    expect(await lock.tryAcquire('orders', { owner: 'job-8' })).toBeUndefined()
    await outer.release()
    await outer.release()
    expect(inner.isHeld).toBe(true)
    expect(await lock.tryAcquire('orders')).toBeUndefined()
    await inner.release()
    expect(await lock.tryAcquire('orders')).toBeDefined()
  })

  it('reenters its own lock with its token', async () => {
    const lock = openLock()
    await lock.using('orders', async (_, { owner }) => {
      expect(await lock.tryAcquire('orders')).toBeUndefined()
      await lock.using('orders', { owner }, async () => {})
      // Releasing the inner hold has not released the outer one.
      expect(await lock.tryAcquire('orders')).toBeUndefined()
    })
    expect(await lock.tryAcquire('orders')).toBeDefined()
  })

  it('does not shorten its lease by acquiring again for a shorter time', async () => {
    const lock = openLock()
    await lock.acquire('orders', { owner: 'a', ttlMs: 60_000, watchdog: false })
    await lock.acquire('orders', { owner: 'a', ttlMs: 1_000, watchdog: false })
    expect((await lock.inspect('orders'))?.expiresInMs).toBeGreaterThan(30_000)
  })
})

describe('several locks at once', () => {
  it('are held all or none', async () => {
    const lock = openLock()
    const one = await lock.acquire('b')
    expect(await lock.tryAcquire(['a', 'b', 'c'])).toBeUndefined()
    expect(await Promise.all(['a', 'c'].map((name) => lock.inspect(name)))).toEqual([undefined, undefined])
    await one.release()
    const all = await lock.acquire(['c', 'a', 'b', 'a'])
    expect(all.names).toEqual(['a', 'b', 'c'])
    expect(await lock.tryAcquire('c')).toBeUndefined()
    await all.release()
    expect(await lock.tryAcquire('c')).toBeDefined()
  })

  it.each([false, true])('never deadlock (fair: %s)', async (fair) => {
    const prefix = freshPrefix()
    const names = ['a', 'b', 'c', 'd']
    const locks = [openLock({ prefix }), openLock({ prefix })]
    const passed = Array.from({ length: 40 }, (_, i) => {
      const pair = [names[i % 4] as string, names[(i * 7 + 1) % 4] as string]
      return locks[i % 2]?.using(i % 2 ? pair : pair.reverse(), { waitMs: 60_000, fair }, async () => i)
    })
    expect(await Promise.all(passed)).toHaveLength(40)
  })

  it('in several cluster slots are acquired one after another, in a fixed order', async () => {
    const cluster = await stopAfterTest(startCluster())
    const clusterNodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    const prefix = freshPrefix()
    const locks = [openLock({ prefix }, { clusterNodes }), openLock({ prefix }, { clusterNodes })]
    const names = ['a', 'b', 'c', 'd', 'e']
    let inside = 0
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        locks[i % 2]?.using(i % 3 ? names : names.toReversed(), { waitMs: 60_000 }, async (_signal, hold) => {
          expect(++inside).toBe(1)
          expect(hold.names).toHaveLength(5)
          await new Promise(setImmediate)
          inside--
        }),
      ),
    )
    const lock = locks[0]
    const one = await lock?.acquire('c')
    expect(await lock?.tryAcquire(names)).toBeUndefined()
    for (const name of ['a', 'b', 'd', 'e']) expect(await lock?.inspect(name)).toBeUndefined()
    await one?.release()
    // A guarded write names a key that shares a slot with one of the locks.
    const hold = await lock?.acquire(['{cart}:1', '{cart}:2', 'x'])
    const set = guardedScript("return redis.call('SET', KEYS[1], ARGV[1])")
    expect(await hold?.run(set, { keys: ['{cart}:total'], args: [7] })).toBe('OK')
    await expect(hold?.run(set, { keys: ['{elsewhere}:total'], args: [7] })).rejects.toThrow('the same hash tag')
  })
})

describe('work under a lock', () => {
  it('passes on its result or error and releases the lock', async () => {
    const lock = openLock()
    expect(await lock.using('orders', () => 42)).toBe(42)
    const mistake = new Error('out of stock')
    await expect(lock.using('orders', { ttlMs: 1_000 }, () => Promise.reject(mistake))).rejects.toBe(mistake)
    expect(await lock.tryAcquire('orders')).toBeDefined()
  })

  it('may take longer than its lease: the watchdog extends it', async () => {
    const lock = openLock()
    const ttlMs = 3_000
    await lock.using('orders', { ttlMs }, async (signal) => {
      const until = performance.now() + ttlMs + 100
      while (performance.now() < until) {
        expect(await lock.tryAcquire('orders')).toBeUndefined()
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      expect(signal.aborted).toBe(false)
    })
  })

  it('can extend its lease manually without a watchdog', async () => {
    const lock = openLock()
    const hold = await lock.acquire('orders', { ttlMs: 5_000, watchdog: false })
    await hold.extend(60_000)
    expect(hold.remainingMs).toBeGreaterThan(50_000)
    expect((await lock.inspect('orders'))?.expiresInMs).toBeGreaterThan(50_000)
    await lock.forceUnlock('orders')
    await expect(hold.extend()).rejects.toMatchObject(lost)
  })

  it("is aborted by the caller's signal", async () => {
    const lock = openLock()
    const enough = new AbortController()
    const work = lock.using('orders', { signal: enough.signal }, async (signal) => {
      enough.abort(new Error('enough'))
      throw await aborted(signal)
    })
    await expect(work).rejects.toThrow('enough')
  })

  it('releases its lock at the end of an await using block', async () => {
    const lock = openLock()
    {
      await using hold = await lock.acquire('orders')
      expect(hold.isHeld).toBe(true)
      expect(await lock.tryAcquire('orders')).toBeUndefined()
    }
    expect(await lock.tryAcquire('orders')).toBeDefined()
  })

  it('holds nothing after close', async () => {
    const prefix = freshPrefix()
    const lock = openLock({ prefix })
    const hold = await lock.acquire('orders')
    const waiting = expect(lock.acquire('orders', { waitMs: 60_000 })).rejects.toMatchObject({
      code: 'FLUXGATE_CLOSED',
    })
    await lock.close()
    await waiting
    expect(hold.isHeld).toBe(false)
    expect(await openLock({ prefix }).tryAcquire('orders')).toBeDefined()
    await expect(lock.acquire('orders')).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})

describe('a guarded write', () => {
  const set = guardedScript("redis.call('SET', KEYS[1], ARGV[1]) return { #KEYS, #ARGV, ARGV[2] }")

  it('is atomic with the check that the lock is held', async () => {
    const key = `${freshPrefix()}{orders}:total`
    const lock = openLock()
    const hold = await lock.acquire('orders')
    expect(await hold.run(set, { keys: [key], args: [7, 'x'] })).toEqual([1, 2, 'x'])
    expect(await call('GET', key)).toBe('7')
  })

  it('changes nothing after the lock was lost, and throws', async () => {
    const key = `${freshPrefix()}{orders}:total`
    const prefix = freshPrefix()
    const stale = await openLock({ prefix }).acquire('orders', { owner: 'job-7', ttlMs: 60_000 })
    // The holder sleeps, the lock expires, and the same owner starts again elsewhere.
    await call('DEL', `${prefix}:lock:{orders}`)
    const fresh = await openLock({ prefix }).acquire('orders', { owner: 'job-7' })
    await fresh.run(set, { keys: [key], args: ['new', ''] })
    expect(stale.isHeld).toBe(true)
    await expect(stale.run(set, { keys: [key], args: ['old', ''] })).rejects.toMatchObject(lost)
    expect(await call('GET', key)).toBe('new')
    expect(stale.signal.aborted).toBe(true)
    expect(stale.isHeld).toBe(false)
  })

  it('passes on errors of the script', async () => {
    const hold = await openLock().acquire('orders')
    await expect(hold.run(guardedScript("return redis.call('NOPE')"))).rejects.toMatchObject({
      code: 'FLUXGATE_STORE_FAILED',
      message: expect.stringContaining('The lock failed to run a guarded script'),
    })
    expect(hold.isHeld).toBe(true)
  })
})

describe('fair locks', () => {
  it('are granted in order across processes', async () => {
    const prefix = freshPrefix()
    const locks = [openLock({ prefix, fair: true }), openLock({ prefix, fair: true }), openLock({ prefix, fair: true })]
    const first = await locks[0]?.acquire('orders')
    const order: number[] = []
    const waiting: unknown[] = []
    for (let i = 0; i < 12; i++) {
      waiting.push(locks[i % 3]?.using('orders', { waitMs: 60_000 }, () => order.push(i)))
      await eventually(
        'the caller is queued',
        async () => (await call('ZCARD', `${prefix}:lock-queue:{orders}`)) === i + 1,
      )
    }
    // No caller overtakes the queue, not even at the moment of a release.
    expect(await locks[1]?.tryAcquire('orders')).toBeUndefined()
    await first?.release()
    await Promise.all(waiting)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  it('skip queued callers that were aborted or have died', async () => {
    const prefix = freshPrefix()
    const lock = openLock({ prefix, fair: true })
    const first = await lock.acquire('orders')
    // A queue entry of a dead process.
    await call('ZADD', `${prefix}:lock-queue:{orders}`, '1', 'dead')
    await call('ZADD', `${prefix}:lock-places:{orders}`, String(Date.now() + 500), 'dead')
    const impatient = expect(lock.acquire('orders', { waitMs: 100 })).rejects.toMatchObject(timedOut)
    const later = lock.acquire('orders', { waitMs: 60_000 })
    await impatient
    await first.release()
    expect((await later).isHeld).toBe(true)
  })
})

describe('invalid options', () => {
  it.each([
    ['', {}],
    ['a{}', {}],
    ['}a{', {}],
    [[], {}],
    ['a', { ttlMs: 9 }],
    ['a', { waitMs: -1 }],
    ['a', { ttl: 1_000 }],
    ['a', { owner: '' }],
    ['a', { fair: 'yes' }],
    ['a', { signal: 7 }],
    ['a', null],
    ['a', 5_000],
  ])('%j %j is rejected at once', async (names, options) => {
    const rejected = { code: 'FLUXGATE_ARGUMENT_INVALID' }
    await expect(openLock().acquire(names as string, options as object)).rejects.toMatchObject(rejected)
    await expect(openLock().tryAcquire(names as string, options as object)).rejects.toMatchObject(rejected)
  })

  it.each([
    [{ ttlMs: '10' }, 'options.ttlMs must be a number of milliseconds from 10 to 86400000; received "10".'],
    [{ fair: 'true' }, 'options.fair must be true or false; received "true". Remove the quotes.'],
    [{ TTLms: 1_000 }, 'options.TTLms: unknown field "TTLms"; did you mean ttlMs?'],
    [5_000, 'options must be an object; received 5000.'],
  ])('%j is reported as: %s', async (options, message) => {
    await expect(openLock().acquire('a', options as object)).rejects.toThrow(message)
    expect(() => redisLock(sharedRedis().uri, options as object)).toThrow(message)
  })

  it.each([[undefined], [null], [{ ttlMs: 1_000 }]])(
    'using() rejects %j as work and acquires nothing',
    async (work) => {
      const lock = openLock()
      const using = lock.using('a', {}, work as never)
      await expect(using).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
      await expect(lock.using('a', work as never)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
      expect(await lock.inspect('a')).toBeUndefined()
    },
  )
})
