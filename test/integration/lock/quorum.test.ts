/** Locks on the majority of several independent servers. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type QuorumOptions, quorumLock } from '../../../src/lock.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { aborted, closedAfterTest, lost, openLock, timedOut } from './test-locks.js'

let servers: readonly RedisServer[]
let prefix: string
beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 5 }, () => startRedis()))
})
beforeEach(() => {
  prefix = freshPrefix()
})
afterAll(() => Promise.all(servers.map((server) => server.stop())))

const open = (options: QuorumOptions = {}, members = servers) =>
  closedAfterTest(
    quorumLock(
      members.map(({ uri }) => uri),
      { prefix, ttlMs: 20_000, ...options },
    ),
  )
const key = () => `${prefix}:lock:{orders}`
const holders = () => Promise.all(servers.map((server) => server.call('EXISTS', key())))
/** A lock is held once the majority has granted it; the other servers reply later. */
const everyMemberGranted = (granted: readonly number[]) => expect.poll(holders).toEqual(granted)

describe('a quorum of five', () => {
  it('grants a lock to one owner at a time on all members, and releases it on all', async () => {
    const here = open()
    const there = open()
    const hold = await here.acquire('orders')
    await everyMemberGranted([1, 1, 1, 1, 1])
    expect(await there.tryAcquire('orders')).toBeUndefined()
    expect(await hold.release()).toBe(true)
    expect(await holders()).toEqual([0, 0, 0, 0, 0])
    expect(await there.tryAcquire('orders')).toBeDefined()
  })

  it('counts the lease from before the call and subtracts the possible clock drift', async () => {
    const askedAt = performance.now()
    const hold = await open({ ttlMs: 10_000 }).acquire('orders')
    const { remainingMs } = hold
    const elapsedMs = performance.now() - askedAt
    expect(remainingMs).toBeLessThanOrEqual(10_000 - 102)
    expect(remainingMs).toBeGreaterThanOrEqual(10_000 - 102 - elapsedMs)
  })

  it('works with two members down and fails with three', async () => {
    const down = await Promise.all(Array.from({ length: 5 }, () => startRedis()))
    try {
      const lock = open({ waitMs: 30_000 }, down)
      await lock.using('orders', () => {})
      await down[0]?.kill()
      down[1]?.pause()
      await lock.using('orders', async (_, hold) => {
        await hold.extend()
        expect(await open({ waitMs: 300 }, down).tryAcquire('orders')).toBeUndefined()
      })
      await down[2]?.kill()
      await expect(lock.acquire('orders', { waitMs: 2_000 })).rejects.toMatchObject({
        code: 'FLUXGATE_STORE_FAILED',
        message: 'Only 2 of 5 Redis servers replied; a quorum lock needs 3. Check the servers that failed.',
      })
      down[1]?.resume()
      await lock.using('orders', () => {})
    } finally {
      await Promise.all(down.map((server) => server.stop()))
    }
  })

  it('resolves a split vote: neither owner holds the lock', async () => {
    const four = servers.slice(0, 4)
    const other = [0, 1].map((member) => openLock({ prefix }, servers[member]?.uri))
    const holds = await Promise.all(other.map((lock) => lock.acquire('orders')))
    const lock = open({}, four)
    expect(await lock.tryAcquire('orders')).toBeUndefined()
    await expect(lock.acquire('orders', { waitMs: 100 })).rejects.toMatchObject(timedOut)
    // The two grants were released.
    expect(await holders()).toEqual([1, 1, 0, 0, 0])
    await holds[0]?.release()
    expect((await lock.acquire('orders')).isHeld).toBe(true)
  })

  it('grants both of two competing lockers eventually', async () => {
    const locks = [open({ waitMs: 60_000, retryMs: 20 }), open({ waitMs: 60_000, retryMs: 20 })]
    let inside = 0
    await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        locks[i % 2]?.using('orders', async () => {
          expect(++inside).toBe(1)
          await new Promise(setImmediate)
          inside--
        }),
      ),
    )
  })

  it('has increasing fences, whichever members agree', async () => {
    const fences: number[] = []
    for (let i = 0; i < 10; i++) {
      // Each time, two other members are held by another owner, and one of them has a fast clock.
      const taken = [i % 5, (i + 2) % 5].map((member) => openLock({ prefix }, servers[member]?.uri))
      const holds = await Promise.all(taken.map((lock) => lock.acquire('orders')))
      const ahead = String(Date.now() * 1_000 + 60_000_000 * (i + 1))
      if (i % 2) await servers[(i + 1) % 5]?.call('SET', `${prefix}:lock-fence:{orders}`, ahead)
      fences.push(await open().using('orders', (_, { fence }) => fence))
      await Promise.all(holds.map((hold) => hold.release()))
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  })

  it('notifies a holder when the majority has lost the lock', async () => {
    const hold = await open({ ttlMs: 3_000 }).acquire('orders')
    await everyMemberGranted([1, 1, 1, 1, 1])
    await Promise.all(servers.slice(0, 2).map((server) => server.call('DEL', key())))
    await hold.extend()
    await servers[2]?.call('DEL', key())
    expect(await aborted(hold.signal)).toMatchObject(lost)
  })
})

describe('a member that loses a lock early, for example after a clock jump', () => {
  /** A resource outside of Redis that both owners write to. */
  interface Ledger {
    readonly lines: string[]
    fence: number
  }
  const writeUnchecked = (ledger: Ledger, line: string): void => void ledger.lines.push(line)
  const writeChecked = (ledger: Ledger, line: string, fence: number): void => {
    if (fence < ledger.fence) throw new Error('stale')
    ledger.fence = fence
    ledger.lines.push(line)
  }

  it('breaks exclusion without fencing tokens, and not with them', async () => {
    const three = servers.slice(0, 3)
    const first = await open({}, three).acquire('orders')
    await everyMemberGranted([1, 1, 1, 0, 0])
    // Simulates that the third member was unavailable and that the first lost the lock early.
    await servers[2]?.call('DEL', key())
    await servers[0]?.call('DEL', key())
    const second = await open({}, three).acquire('orders')
    // Both believe that they hold the lock, and neither can detect otherwise.
    expect([first.isHeld, second.isHeld]).toEqual([true, true])
    const trusting: Ledger = { lines: [], fence: 0 }
    writeUnchecked(trusting, 'second')
    writeUnchecked(trusting, 'first, late')
    expect(trusting.lines).toEqual(['second', 'first, late'])
    const checking: Ledger = { lines: [], fence: 0 }
    writeChecked(checking, 'second', second.fence)
    expect(() => writeChecked(checking, 'first, late', first.fence)).toThrow('stale')
    expect(checking.lines).toEqual(['second'])
  })
})

describe('invalid options', () => {
  it('fair locks are rejected for a single hold too', async () => {
    await expect(open().acquire('orders', { fair: true })).rejects.toThrow('fair must be false for quorumLock')
  })

  it.each([
    [[], {}],
    ['redis://localhost', {}],
    [['redis://localhost'], { fair: true }],
    [['redis://localhost'], { retryMs: 0 }],
    [['redis://localhost'], { retries: 3 }],
  ])('%j %j is rejected at once', (where, options) => {
    expect(() => quorumLock(where as string[], options as QuorumOptions)).toThrow(
      expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }),
    )
  })
})
