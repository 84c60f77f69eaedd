/** Cached rejections: known rejections need no call, and no request is rejected that Redis would have allowed. */
import { describe, expect, it } from 'vitest'
import { type BucketStore, type Charge, copyResult } from '../../../src/core/bucket-store.js'
import { algorithmNames, type Band } from '../../../src/core/rule.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { type RedisStoreOptions, redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { randomBand, randomCharges, randomPause } from '../../../src/testing/random-charges.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const rateAlgorithms = algorithmNames.filter((name) => name !== 'CONCURRENCY')

const server = await ownRedis()
const client = clientOf(server)

/** Stores of several processes, on the same keys and clock. */
function processes(count: number, options: RedisStoreOptions = {}) {
  const clock = manualClock(startMs)
  const prefix = freshPrefix()
  const stores = Array.from({ length: count }, () =>
    redisStore(client, { prefix, clock, timeoutMs: 20_000, ...options }),
  )
  return { clock, prefix, stores: stores as BucketStore[] as [BucketStore, BucketStore] }
}

const calls = async (act: () => Promise<unknown>): Promise<number> =>
  (await countCalls(server, ['evalsha'], act)).evalsha
const kinds: [Band['algorithm'], Band['refill']][] = [
  ...rateAlgorithms.map((name): [Band['algorithm'], 'STEADY'] => [name, 'STEADY']),
  ['TOKEN_BUCKET', 'INTERVAL'],
]
const minute = 60 * second

/** Makes requests until one is rejected. */
async function drain(store: BucketStore, one: Charge): Promise<void> {
  while ((await store.charge([one], false)).granted);
}

describe.each(kinds)('a rejecting %s bucket, refilled %s', (algorithm, refill) => {
  const slow = group('slow', [band({ algorithm, refill, capacity: 2, windowTicks: 366 * 24 * 60 * minute })])

  it('is called once a second, however many requests arrive', async () => {
    const { clock, stores } = processes(1)
    await drain(stores[0], chargeOf(slow, 'a'))
    const flood = () => Promise.all(Array.from({ length: 500 }, () => stores[0].charge([chargeOf(slow, 'a')], false)))
    expect(await calls(flood)).toBe(0)
    clock.advance(999.999)
    expect(await calls(flood)).toBe(0)
    clock.advance(0.001)
    expect(await calls(() => stores[0].charge([chargeOf(slow, 'a')], false))).toBe(1)
    expect(await calls(flood)).toBe(0)
    const tenSeconds = await calls(async () => {
      for (let i = 0; i < 1_000; i++) {
        clock.advance(10)
        await stores[0].charge([chargeOf(slow, 'a')], false)
      }
    })
    expect(tenSeconds).toBe(10)
    clock.advance(1_000)
    const whileAsked = await calls(async () => {
      const answers = []
      for (let i = 0; i < 100; i++) {
        answers.push(stores[0].charge([chargeOf(slow, 'a')], false))
        await new Promise(setImmediate)
      }
      await Promise.all(answers)
    })
    expect(whileAsked).toBe(1)
  })

  it('is called again at the exact microsecond at which it would allow', async () => {
    const { clock, stores } = processes(1)
    const rule = group('rule', [band({ algorithm, refill, capacity: 4, windowTicks: 800_000 })])
    clock.advance(123.456)
    await drain(stores[0], chargeOf(rule, 'a'))
    const { retryAfter } = (await stores[0].charge([chargeOf(rule, 'a')], false)).bands[0] ?? expect.unreachable()
    clock.advance((retryAfter - 1) / 1000)
    expect(await calls(() => stores[0].charge([chargeOf(rule, 'a')], false))).toBe(0)
    clock.advance(0.001)
    let granted = false
    expect(
      await calls(async () => {
        granted = (await stores[0].charge([chargeOf(rule, 'a')], false)).granted
      }),
    ).toBe(1)
    expect(granted).toBe(true)
  })

  it('returns the same result as the store in every field, also for requests that may wait', async () => {
    const { clock, prefix, stores } = processes(1)
    const plain = redisStore(client, { prefix, clock, cachedRejections: false, timeoutMs: 20_000 })
    const rule = group('rule', [
      band({ label: 'a', algorithm, refill, capacity: 4, windowTicks: minute }),
      band({ label: 'b', capacity: 100, windowTicks: minute }),
    ])
    for (const maxWaitTicks of [0, 100_000]) {
      clock.advance(minute)
      const asked = [chargeOf(rule, 'a', { permits: 3, maxWaitTicks })]
      await drain(stores[0], asked[0] as Charge)
      for (let i = 0; i < 50; i++) {
        clock.advance(17.171)
        const [local, remote] = [await stores[0].charge(asked, false), await plain.charge(asked, false)]
        expect(local).toEqual({ ...copyResult(asked, remote), fromCache: true })
      }
    }
  })

  it('is called again for fewer permits than were rejected', async () => {
    const { stores } = processes(1)
    const rule = group('rule', [band({ algorithm, refill, capacity: 8, windowTicks: 366 * 24 * 60 * minute })])
    await stores[0].charge([chargeOf(rule, 'a', { permits: 5 })], false)
    expect((await stores[0].charge([chargeOf(rule, 'a', { permits: 5 })], false)).granted).toBe(false)
    const more = await calls(() => stores[0].charge([chargeOf(rule, 'a', { permits: 6 })], false))
    // For a log, only the result of an identical request is cached.
    expect(more).toBe(algorithm === 'SLIDING_WINDOW_LOG' ? 1 : 0)
    expect((await stores[0].charge([chargeOf(rule, 'a', { permits: 3 })], false)).granted).toBe(true)
    expect((await stores[0].charge([chargeOf(rule, 'a', { permits: 5 })], false)).bands[0]?.remaining).toBe(0)
  })

  it('is called at once after a refund, a reset or a rule change in this process', async () => {
    const { stores } = processes(1)
    const [store] = stores
    const ask = async () => (await store.charge([chargeOf(slow, 'a')], false)).granted
    await drain(store, chargeOf(slow, 'a'))
    await store.refund([{ group: slow, key: 'a', permits: 1 }])
    expect([await ask(), await ask()]).toEqual([true, false])
    await store.reset(slow, 'a')
    expect([await ask(), await ask(), await ask()]).toEqual([true, true, false])
    const edited = group('slow', [{ ...(slow.bands[0] as Band), capacity: 5 }])
    expect(await calls(() => store.charge([chargeOf(edited, 'a')], false))).toBe(1)
  })

  it('is called within a second of a refund or a reset in another process', async () => {
    const { clock, stores } = processes(2)
    const ask = async () => (await stores[0].charge([chargeOf(slow, 'a')], false)).granted
    await drain(stores[0], chargeOf(slow, 'a'))
    await stores[1].refund([{ group: slow, key: 'a', permits: 1 }])
    clock.advance(999.999)
    expect(await ask()).toBe(false)
    clock.advance(0.001)
    expect([await ask(), await ask()]).toEqual([true, false])
    await stores[1].reset(slow, 'a')
    clock.advance(1_000)
    expect(await ask()).toBe(true)
  })
})

describe('a decision over several rules', () => {
  it('is rejected from the cache only if all of its buckets are cached', async () => {
    const { stores } = processes(1)
    const [loose, tight] = [
      group('loose', [band({ capacity: 9 })]),
      group('tight', [band({ capacity: 1, windowTicks: minute })]),
    ]
    const both = [chargeOf(loose, 'a'), chargeOf(tight, 'a')]
    await stores[0].charge(both, false)
    expect((await stores[0].charge(both, false)).granted).toBe(false)
    expect(await calls(() => stores[0].charge(both, false))).toBe(0)
    expect(await calls(() => stores[0].charge([chargeOf(tight, 'a')], false))).toBe(0)
    expect(await calls(() => stores[0].charge([chargeOf(loose, 'b'), chargeOf(tight, 'a')], false))).toBe(1)
    // A grant of the loose rule alone changes the result of the combined decision.
    expect((await stores[0].charge([chargeOf(loose, 'a')], false)).granted).toBe(true)
    expect((await stores[0].charge(both, false)).bands[0]?.remaining).toBe(7)
  })

  it('is not rejected because of a shadow rule', async () => {
    const { stores } = processes(1)
    const [rule, shadow] = [
      group('rule', [band({ capacity: 9 })]),
      group('shadow', [band({ capacity: 1, windowTicks: minute })]),
    ]
    await drain(stores[0], chargeOf(shadow, 'a'))
    const both = [chargeOf(rule, 'a'), chargeOf(shadow, 'a', { shadow: true })]
    expect((await stores[0].charge(both, false)).granted).toBe(true)
  })
})

describe('without cached rejections', () => {
  it('every request calls the store', async () => {
    const { stores } = processes(1, { cachedRejections: false })
    const one = chargeOf(group('rule', [band({ capacity: 1, windowTicks: minute })]), 'a')
    await drain(stores[0], one)
    expect(
      await calls(async () => {
        for (let i = 0; i < 10; i++) await stores[0].charge([one], false)
      }),
    ).toBe(10)
  })
})

describe('two processes', () => {
  const seed = randomSeed()
  it(`admit exactly what two processes without cached rejections admit (seed ${seed})`, async () => {
    let unasked = 0
    const live = async (history: number): Promise<void> => {
      const random = seededRandom(seed + history)
      const [knowing, asking] = [processes(2), processes(2, { cachedRejections: false })]
      const groups = ['one', 'two'].map((id) =>
        group(
          id,
          ['a', 'b'].map((label) => randomBand(random, label, { maxCapacity: 12 })),
        ),
      )
      const both = async <T>(which: number, act: (store: BucketStore) => Promise<T>): Promise<[T, T]> => [
        await act(knowing.stores[which] as BucketStore),
        await act(asking.stores[which] as BucketStore),
      ]
      const advance = (ms: number) => {
        for (const { clock } of [knowing, asking]) clock.advance(ms)
      }
      for (let step = 0; step < 80; step++) {
        const which = random() < 0.5 ? 0 : 1
        const demands = randomCharges(random, groups, ['alice', 'bob'])
        const [first] = demands as [Charge]
        advance(Math.max(0, Math.min(900_000, randomPause(random, first.group.bands[0] as Band))) / 1000)
        const kind = random()
        if (kind < 0.06) {
          await both(which, (store) => (kind < 0.03 ? store.reset(first.group, first.key) : store.refund(demands)))
          // The other process may learn of it that much later.
          advance(1_000)
          continue
        }
        const peek = kind < 0.16
        const [actual, expected] = await both(which, (store) => store.charge(demands, peek))
        expect(actual.granted, `seed ${seed + history}, step ${step}`).toBe(expected.granted)
        if (actual.fromCache) unasked++
      }
    }
    // Concurrently, because each step is a round trip. They share neither clock nor keys.
    await Promise.all(Array.from({ length: 60 }, (_, history) => live(history)))
    // About 200. Fewer than 100 occur for one seed in thousands.
    expect(unasked).toBeGreaterThan(20)
  }, 120_000)
})
