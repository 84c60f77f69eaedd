import { describe, expect, it } from 'vitest'
import { type MemoryStore, memoryStore } from '../../stores/memory/memory-store.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLimiter, type Limiter } from './create-limiter.js'

const start = 1_800_000_000_000
/** Runs the reactions of promises that are already settled. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits once per name and records the names with the time of their release or rejection. */
function line(limiter: Limiter, clock: { now(): number }, names: readonly string[], maxWaitMs: number) {
  const admitted: [string, number][] = []
  const rejected: [string, number][] = []
  for (const name of names)
    void limiter.wait('queue', { maxWaitMs }).then(({ allowed }) => {
      const list = allowed ? admitted : rejected
      list.push([name, clock.now() - start])
    })
  return { admitted, rejected }
}

/** The methods of a store as plain functions. */
const wrapped = (store: MemoryStore) => ({
  charge: store.charge.bind(store),
  chargeSync: store.chargeSync.bind(store),
  refund: store.refund.bind(store),
  reset: store.reset.bind(store),
  close: store.close.bind(store),
})

describe('wait', () => {
  it('allows 10 of 100 at once, then one every 100 ms in order, and rejects the rest immediately', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 10, window: '1s', clock })
    const names = Array.from({ length: 100 }, (_, i) => `w${i}`)
    const { admitted, rejected } = line(limiter, clock, names, 5000)
    await settled()
    expect(admitted).toEqual(names.slice(0, 10).map((name) => [name, 0]))
    expect(rejected).toEqual(names.slice(60).map((name) => [name, 0]))
    for (let i = 0; i < 50; i++) {
      clock.advance(99)
      await settled()
      expect(admitted).toHaveLength(10 + i)
      clock.advance(1)
      await settled()
      expect(admitted.at(-1)).toEqual([`w${10 + i}`, (i + 1) * 100])
    }
    expect(rejected).toHaveLength(40)
  })

  it('keeps the order with real timers', async () => {
    const limiter = createLimiter({ capacity: 1, window: '5ms' })
    const order: number[] = []
    await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.wait('a').then(() => order.push(i))))
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  it('keeps the order if a busy process releases a waiting call and allows a new one in the same turn', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '1s', clock })
    const order: string[] = []
    const ask = (name: string) => limiter.wait('a').then(() => order.push(name))
    const first = ask('first')
    const held = ask('held')
    clock.advance(2000)
    await Promise.all([first, held, ask('newcomer')])
    expect(order).toEqual(['first', 'held', 'newcomer'])
  })

  it('reports when a rejected call could enter the queue', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '1s', clock })
    await limiter.wait('a')
    const held = limiter.wait('a', { maxWaitMs: 1000 })
    expect(await limiter.wait('a', { maxWaitMs: 1500 })).toMatchObject({
      allowed: false,
      reason: 'LIMITED',
      policy: 'WAIT_FOR_REFILL',
      retryAfterMs: 500,
    })
    clock.advance(1000)
    expect((await held).allowed).toBe(true)
  })

  it('refunds the permits if the caller aborts, and keeps the queue slots of later calls', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '1s', clock })
    await limiter.wait('a')
    const controller = new AbortController()
    const first = limiter.wait('a', { signal: controller.signal })
    await settled()
    controller.abort(new Error('changed my mind'))
    await expect(first).rejects.toThrow('changed my mind')
    const second = limiter.wait('a')
    clock.advance(1000)
    expect((await second).delayMs).toBe(1000)
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'SLIDING_WINDOW_LOG'])(
    '%s: calls behind one that leaves move up, and the last slot is free again',
    async (algorithm) => {
      const clock = manualClock(start)
      const capacity = algorithm === 'LEAKY_BUCKET' ? 10 : 1
      const limiter = createLimiter({ algorithm, capacity, refillTokens: capacity, window: `${capacity}s`, clock })
      const controller = new AbortController()
      const maxWaitMs = 60_000
      const released: [string, number][] = []
      const ask = (name: string, signal?: AbortSignal): void =>
        void limiter.wait('queue', { maxWaitMs, ...(signal && { signal }) }).then(
          () => released.push([name, clock.now() - start]),
          () => {},
        )
      ask('now')
      ask('leaves', controller.signal)
      for (const name of ['a', 'b']) ask(name)
      await settled()
      controller.abort()
      await settled()
      ask('c')
      for (let i = 0; i < 5; i++) {
        await settled()
        clock.advance(1000)
      }
      await settled()
      expect(released).toEqual([
        ['now', 0],
        ['a', 1000],
        ['b', 2000],
        ['c', 3000],
      ])
    },
  )

  it('never moves a call ahead of an earlier one that waits for more permits', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 3, refillTokens: 1, window: '1s', clock })
    limiter.consumeSync('queue', 3)
    const controller = new AbortController()
    const released: [string, number][] = []
    const ask = (name: string, permits: number, signal?: AbortSignal): void =>
      void limiter.wait('queue', { permits, maxWaitMs: 60_000, signal }).then(
        () => released.push([name, clock.now() - start]),
        () => {},
      )
    ask('leaves', 1, controller.signal)
    ask('large', 3)
    ask('small', 1)
    await settled()
    controller.abort()
    for (let i = 0; i < 5; i++) {
      await settled()
      clock.advance(1000)
    }
    await settled()
    expect(released).toEqual([
      ['large', 4000],
      ['small', 5000],
    ])
  })

  it('gives refunded permits to waiting calls before new ones', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '1s', clock })
    limiter.consumeSync('queue')
    const { admitted } = line(limiter, clock, ['a', 'b'], 10_000)
    await settled()
    await limiter.refund('queue', 3)
    const late = line(limiter, clock, ['c'], 10_000)
    for (let i = 0; i < 3; i++) {
      await settled()
      clock.advance(1000)
    }
    await settled()
    expect([...admitted, ...late.admitted]).toEqual([
      ['a', 0],
      ['b', 1000],
      ['c', 2000],
    ])
  })

  it('charges nothing if the signal is already aborted', async () => {
    const limiter = createLimiter({ capacity: 1, window: '1s', clock: manualClock(start) })
    await expect(limiter.wait('a', { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i)
    expect((await limiter.peek('a')).remaining).toBe(0)
    expect((await limiter.consume('a')).allowed).toBe(true)
  })

  it.each(['FIXED_WINDOW', 'SLIDING_WINDOW_LOG'])(
    'refunds the slot that a call has moved up to, not its original one: %s',
    async (algorithm) => {
      const clock = manualClock(0)
      const limiter = createLimiter({ algorithm, capacity: 2, window: '1s', clock })
      limiter.consumeSync('a', 2)
      const leaving = [new AbortController(), new AbortController()] as const
      const wait = (permits: number, signal?: AbortSignal) => limiter.wait('a', { permits, maxWaitMs: 9_000, signal })
      const gone = leaving.map(({ signal }) => expect(wait(2, signal)).rejects.toThrow(/abort/i))
      leaving[0].abort()
      await settled()
      // The second call has moved up from 2 s to 1 s. The slot at 2 s belongs to this call and stays taken when the second leaves.
      const one = wait(1)
      leaving[1].abort()
      await settled()
      const two = wait(2)
      clock.advance(9_000)
      const delays = [(await one).delayMs, (await two).delayMs]
      expect(delays[1]).toBeGreaterThanOrEqual((delays[0] as number) + 1_000)
      await Promise.all(gone)
    },
  )

  it('reports the actual delay of each call, even if the clock skips past several releases', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 10, window: '1s', clock })
    const waiting = Array.from({ length: 14 }, () => limiter.wait('a'))
    clock.advance(60_000)
    const delays = (await Promise.all(waiting)).map(({ delayMs }) => delayMs)
    expect(delays).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300, 400])
  })

  it('holds at most maxConcurrentWaits calls; one more is rejected without a charge', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '1s', maxConcurrentWaits: 2, clock })
    const { admitted, rejected } = line(limiter, clock, ['now', 'one', 'two', 'three'], 60_000)
    await settled()
    expect([admitted.length, rejected]).toEqual([1, [['three', 0]]])
    clock.advance(1000)
    await settled()
    void line(limiter, clock, ['four'], 60_000)
    await settled()
    clock.advance(1000)
    await settled()
    expect(admitted.map(([name]) => name)).toEqual(['now', 'one', 'two'])
  })

  it('spaces calls evenly with a leaky bucket, and rejects those that would wait too long', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm: 'LEAKY_BUCKET', capacity: 10, window: '1s', clock })
    const { admitted, rejected } = line(limiter, clock, ['a', 'b', 'c', 'd', 'e'], 300)
    for (let i = 0; i < 4; i++) {
      await settled()
      clock.advance(100)
    }
    expect(admitted.map(([, at]) => at)).toEqual([0, 100, 200, 300])
    expect(rejected).toEqual([['e', 0]])
  })

  it('waits for the next window with FIXED_WINDOW', async () => {
    const clock = manualClock(start + 400)
    const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 2, window: '1s', clock })
    const { admitted } = line(limiter, clock, ['a', 'b', 'c', 'd', 'e'], 2000)
    await settled()
    clock.advance(600)
    await settled()
    clock.advance(1000)
    await settled()
    expect(admitted).toEqual([
      ['a', 400],
      ['b', 400],
      ['c', 1000],
      ['d', 1000],
      ['e', 2000],
    ])
  })

  it('rejects at once with maxWaitMs 0 if a leaky bucket would delay the call', async () => {
    const limiter = createLimiter({ algorithm: 'LEAKY_BUCKET', capacity: 10, window: '1s', clock: manualClock(start) })
    expect(await limiter.wait('a', { maxWaitMs: 0 })).toMatchObject({ allowed: true, delayMs: 0 })
    expect(await limiter.wait('a', { maxWaitMs: 0 })).toMatchObject({ allowed: false, retryAfterMs: 100 })
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5s' as never])('rejects maxWaitMs %s', async (maxWaitMs) => {
    const limiter = createLimiter({ capacity: 1, window: '1s' })
    await expect(limiter.wait('a', { maxWaitMs })).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })

  it('refunds the permits if the caller aborts while a remote store call is in flight', async () => {
    const clock = manualClock(start)
    const { chargeSync: _, ...remote } = wrapped(memoryStore({ clock }))
    const limiter = createLimiter({ capacity: 1, window: '1s', store: remote, clock })
    await limiter.wait('a')
    const controller = new AbortController()
    const waiting = limiter.wait('a', { signal: controller.signal })
    controller.abort(new Error('too late'))
    await expect(waiting).rejects.toThrow('too late')
    expect(await limiter.wait('b')).toMatchObject({ allowed: true })
    expect((await limiter.consume('a')).retryAfterMs).toBe(1000)
  })

  it('waits longer than the 24.8 days that one timer supports', async () => {
    const limiter = createLimiter({ capacity: 1, window: '30d' })
    await limiter.wait('a')
    let released = false
    const waiting = limiter.wait('a', { maxWaitMs: 31 * 86_400_000 }).finally(() => {
      released = true
    })
    await limiter.wait('another')
    // An overflowing timer would fire at once, before this shorter one.
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(released).toBe(false)
    await limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })

  it('releases a call after its wait even if the clock steps back', async () => {
    let offset = 0
    const limiter = createLimiter({ capacity: 1, window: '30ms', clock: { now: () => Date.now() + offset } })
    limiter.consumeSync('a')
    const waiting = limiter.wait('a')
    await settled()
    offset = -3_600_000
    expect(await waiting).toMatchObject({ allowed: true, delayMs: 0 })
  })

  it('holds at most maxConcurrentWaits of concurrent calls to a remote store', async () => {
    const clock = manualClock(start)
    const { chargeSync: _, ...remote } = wrapped(memoryStore({ clock }))
    const limiter = createLimiter({ capacity: 1, window: '1s', store: remote, maxConcurrentWaits: 2, clock })
    const { admitted, rejected } = line(limiter, clock, ['now', 'a', 'b', 'c', 'd'], 60_000)
    for (let i = 0; i < 5; i++) {
      await settled()
      clock.advance(1000)
    }
    expect([admitted.length, rejected.length]).toEqual([3, 2])
  })

  it('rejects a call if the store answers only after the limiter was closed', async () => {
    const clock = manualClock(start)
    const { chargeSync: _, ...remote } = wrapped(memoryStore({ clock }))
    const limiter = createLimiter({ capacity: 1, window: '1s', store: remote, clock })
    await limiter.consume('a')
    const waiting = limiter.wait('a')
    await limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })

  it('frees a fixed window again when the call that waited for the next one is aborted', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 10, window: '1h', clock })
    limiter.consumeSync('a', 8)
    const controller = new AbortController()
    const waiting = limiter.wait('a', { permits: 5, maxWaitMs: 3_600_000, signal: controller.signal })
    await settled()
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 })
    controller.abort()
    await expect(waiting).rejects.toThrow(/abort/i)
    expect(limiter.consumeSync('a', 2)).toMatchObject({ allowed: true, remaining: 0 })
    expect(limiter.consumeSync('a')).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 })
  })

  it('rejects waiting calls when the limiter closes', async () => {
    const limiter = createLimiter({ capacity: 1, window: '1h', clock: manualClock(start) })
    await limiter.wait('a')
    const waiting = limiter.wait('a', { maxWaitMs: 7_200_000 })
    await settled()
    await limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})

describe('WAIT_FOR_REFILL', () => {
  it('returns the delay at once, and an exact retryAfterMs for calls that would wait too long', async () => {
    const clock = manualClock(start)
    const limiter = createLimiter({
      capacity: 1,
      window: '1s',
      onLimitExceed: 'WAIT_FOR_REFILL',
      maxWaitMs: 1500,
      clock,
    })
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, delayMs: 0, policy: 'WAIT_FOR_REFILL' })
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, delayMs: 1000, remaining: 0, retryAfterMs: 0 })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, delayMs: 0, retryAfterMs: 500 })
    clock.advance(499)
    expect((await limiter.consume('a')).allowed).toBe(false)
    clock.advance(1)
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, delayMs: 1500 })
  })
})
