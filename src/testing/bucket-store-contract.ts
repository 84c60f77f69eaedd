import assert from 'node:assert/strict'
import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { algorithmNames } from '../core/rule.js'
import { banContract } from './bans/contract.js'
import { compareWithModel } from './compare-with-model.js'
import { band, chargeOf, group, second, startMs } from './fixtures.js'
import { type ManualClock, manualClock } from './manual-clock.js'
import { overrideContract } from './overrides/contract.js'

/** Registers a test, such as `it` of Vitest, Jest or `node:test`. */
export type TestRunner = (title: string, test: () => Promise<void>) => void

/** Creates an empty store that uses the given clock. */
export type StoreFactory = (clock: Clock) => BucketStore | Promise<BucketStore>

/** Options of `bucketStoreContract`. */
export interface ContractOptions {
  /** The number of random histories of 100 steps each that are compared with the reference models. Default 100. */
  readonly histories?: number
  /** The seed of the random histories. It is part of the test title; pass it again to reproduce a failure. Default: from the current time. */
  readonly seed?: number
  /** True if the store keeps overrides. Default false. */
  readonly overrides?: boolean
  /** True if the store supports `ban` of groups. Default false. */
  readonly bans?: boolean
  /** True if the store keeps the used fraction of groups with `definitions`. Default false. */
  readonly definitions?: boolean
}

/**
 * Registers the tests that every bucket store must pass.
 *
 * @example
 * describe('myStore', () => bucketStoreContract(it, (clock) => myStore({ clock })))
 */
export function bucketStoreContract(it: TestRunner, create: StoreFactory, options: ContractOptions = {}): void {
  const withStore = (title: string, test: (store: BucketStore, clock: ManualClock) => Promise<void>): void =>
    it(title, async () => {
      const clock = manualClock(startMs)
      const store = await create(clock)
      try {
        await test(store, clock)
      } finally {
        await store.close()
      }
    })

  withStore('charges every band of every rule, or none of them', async (store) => {
    const loose = chargeOf(group('loose', [band({ capacity: 100, windowTicks: 3600 * second })]), 'a')
    const tight = chargeOf(group('tight', [band({ capacity: 5 })]), 'a')
    const results = []
    for (let i = 0; i < 100; i++) results.push(await store.charge([loose, tight], false))
    assert.equal(results.filter(({ granted }) => granted).length, 5)
    assert.equal((await store.charge([loose], true)).bands[0]?.remaining, 94)
  })

  for (const algorithm of algorithmNames.filter((name) => name !== 'CONCURRENCY')) {
    withStore(`${algorithm}: changes nothing when it rejects`, async (store, clock) => {
      const one = chargeOf(group('rule', [band({ algorithm, capacity: 3 })]), 'a')
      for (let i = 0; i < 3; i++) await store.charge([one], false)
      const before = await store.charge([one], true)
      for (let i = 0; i < 50; i++) assert.equal((await store.charge([one], false)).granted, false)
      assert.deepEqual(await store.charge([one], true), before)
      clock.advance((before.bands[0]?.retryAfter ?? 0) / 1000)
      assert.equal((await store.charge([one], false)).granted, true)
    })

    withStore(`${algorithm}: returns retryAfter exact to the microsecond`, async (store, clock) => {
      const one = chargeOf(group('rule', [band({ algorithm, capacity: 7, windowTicks: 10 * second })]), 'a', {
        permits: 3,
      })
      clock.advance(1234.567)
      while ((await store.charge([one], false)).granted) clock.advance(0.001)
      const { retryAfter } = (await store.charge([one], false)).bands[0] ?? assert.fail()
      clock.advance((retryAfter - 1) / 1000)
      assert.equal((await store.charge([one], false)).granted, false)
      clock.advance(0.001)
      assert.equal((await store.charge([one], false)).granted, true)
    })

    withStore(`${algorithm}: rejects more permits than the capacity for ever`, async (store) => {
      const { granted, bands } = await store.charge(
        [chargeOf(group('rule', [band({ algorithm, capacity: 10 })]), 'a', { permits: 11 })],
        false,
      )
      assert.equal(granted, false)
      assert.equal(bands[0]?.retryAfter, Number.POSITIVE_INFINITY)
      assert.equal(bands[0]?.remaining, 10)
    })

    withStore(
      `${algorithm}: rejects for no longer than its window after the clock steps back`,
      async (store, clock) => {
        const one = chargeOf(group('rule', [band({ algorithm, capacity: 10, windowTicks: 60 * second })]), 'a')
        for (let i = 0; i < 10; i++) await store.charge([one], false)
        const before = (await store.charge([one], false)).bands[0]?.retryAfter ?? assert.fail()
        clock.advance(-3_600_000)
        const rejected = await store.charge([one], false)
        assert.equal(rejected.granted, false)
        const wait = rejected.bands[0]?.retryAfter ?? assert.fail()
        assert.ok(wait > 0 && wait <= before, `waits ${wait} ticks instead of ${before}`)
        clock.advance((wait - 1) / 1000)
        assert.equal((await store.charge([one], false)).granted, false)
        clock.advance(0.001)
        assert.equal((await store.charge([one], false)).granted, true)
      },
    )

    withStore(`${algorithm}: grants exactly the capacity to 1000 simultaneous requests`, async (store) => {
      const one = chargeOf(group('rule', [band({ algorithm, capacity: 100 })]), 'a')
      const results = await Promise.all(Array.from({ length: 1000 }, () => store.charge([one], false)))
      assert.equal(results.filter(({ granted }) => granted).length, 100)
    })
  }

  withStore('charges nothing for a peek, and peeks an unknown key as full', async (store) => {
    const one = chargeOf(group('rule', [band({ capacity: 10 })]), 'a', { permits: 4 })
    for (let i = 0; i < 3; i++) assert.equal((await store.charge([one], true)).bands[0]?.remaining, 6)
    assert.equal((await store.charge([one], false)).bands[0]?.remaining, 6)
  })

  withStore('refunds permits up to the capacity, and nothing to an unused key', async (store) => {
    const rule = group('rule', [band({ capacity: 10 })])
    await store.refund([{ group: rule, key: 'a', permits: 5 }])
    await store.charge([chargeOf(rule, 'a', { permits: 4 })], false)
    await store.refund([{ group: rule, key: 'a', permits: 3 }])
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.remaining, 8)
    await store.refund([{ group: rule, key: 'a', permits: 100 }])
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.remaining, 9)
  })

  withStore('drops the waiting requests of an interval bucket that is full again', async (store, clock) => {
    const rule = group('rule', [band({ capacity: 1, refill: 'INTERVAL', windowTicks: 3600 * second })])
    const one = chargeOf(rule, 'a')
    for (let i = 0; i < 2; i++) await store.charge([{ ...one, maxWaitTicks: 3600 * second }], false)
    await store.refund([{ group: rule, key: 'a', permits: 2 }])
    clock.advance(10)
    const { granted, now } = await store.charge([one], false)
    assert.equal(granted, true)
    clock.advance(-5)
    await store.refund([{ group: rule, key: 'a', permits: 1, grantedAt: [now] }])
    assert.equal((await store.charge([one], false)).granted, true)
  })

  withStore('resets one key of one rule', async (store) => {
    const rule = group('rule', [band({ capacity: 10 })])
    for (const key of ['a', 'b']) await store.charge([chargeOf(rule, key, { permits: 10 })], false)
    await store.reset(rule, 'a')
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).granted, true)
    assert.equal((await store.charge([chargeOf(rule, 'b')], true)).granted, false)
  })

  withStore('starts a new generation with new buckets, and keeps those of the old one', async (store) => {
    const rule = group('rule', [band({ capacity: 1 })])
    await store.charge([chargeOf(rule, 'a')], false)
    assert.equal((await store.charge([chargeOf({ ...rule, generation: '2' }, 'a')], false)).granted, true)
    assert.equal((await store.charge([chargeOf(rule, 'a')], false)).granted, false)
  })

  withStore('keeps similar keys, rules, rule sets and bands in separate buckets', async (store) => {
    const names = [
      'a',
      'b',
      'a:b',
      'b:a',
      'a:',
      ':a',
      '{a}',
      '%3A',
      '\u0000',
      'ä',
      '한국',
      'x'.repeat(300),
      `${'x'.repeat(299)}y`,
    ]
    const bands = ['a', 'a:b', 'b:a'].map((label) => band({ capacity: 1, label }))
    for (const ruleSetId of names.slice(0, 6))
      for (const ruleId of names.slice(0, 6))
        for (const key of names) {
          const { granted } = await store.charge([chargeOf({ ...group(ruleId, bands), ruleSetId }, key)], false)
          assert.equal(granted, true, JSON.stringify([ruleSetId, ruleId, key]))
        }
  })

  withStore('charges a shadow rule if its own bands allow, and never rejects because of it', async (store) => {
    const shadow = chargeOf(group('shadow', [band({ capacity: 2 })]), 'a', { shadow: true })
    const rule = chargeOf(group('rule', [band({ capacity: 4 })]), 'a')
    const allowed = []
    for (let i = 0; i < 4; i++)
      allowed.push((await store.charge([shadow, rule], false)).bands.map((result) => result.allowed))
    assert.deepEqual(allowed, [
      [true, true],
      [true, true],
      [false, true],
      [false, true],
    ])
    assert.equal((await store.charge([shadow, rule], false)).granted, false)
    assert.equal((await store.charge([{ ...shadow, shadow: false }], true)).bands[0]?.remaining, 0)
  })

  withStore('releases waiting requests one after another, in order of arrival', async (store, clock) => {
    const waiter = chargeOf(group('rule', [band({ capacity: 1 })]), 'a', { maxWaitTicks: 3 * second })
    const delays = []
    for (let i = 0; i < 5; i++) {
      const { granted, bands } = await store.charge([waiter], false)
      delays.push(granted ? bands[0]?.delay : bands[0]?.retryAfter)
    }
    assert.deepEqual(delays, [0, second, 2 * second, 3 * second, second])
    clock.advance(999)
    assert.equal((await store.charge([{ ...waiter, maxWaitTicks: 0 }], false)).granted, false)
  })

  const seed = options.seed ?? Date.now() % 2 ** 31
  if (options.overrides) overrideContract(withStore, seed)
  const histories = options.histories ?? 100
  it(`agrees with the reference models in every field over ${histories} random histories (seed ${seed})`, async () => {
    for (let i = 0; i < histories; i++)
      await compareWithModel(create, { seed: seed + i, steps: 100, maxCapacity: i % 2 === 0 ? 20 : 1e9 })
  })

  if (options.bans) banContract(it, withStore, create, { seed, histories: Math.ceil(histories / 10) })

  if (options.definitions)
    it(`keeps the used fraction when definitions change, as the reference models do (seed ${seed})`, async () => {
      for (let i = 0; i < Math.ceil(histories / 10); i++)
        await compareWithModel(create, {
          seed: seed + i,
          steps: 100,
          maxCapacity: i % 2 === 0 ? 20 : 1e9,
          scaled: 'FORWARD',
        })
    })
}
