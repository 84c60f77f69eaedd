/** The part of `bucketStoreContract` about overrides. */
import assert from 'node:assert/strict'
import type { EntryPage } from '../../core/overrides/override-storage.js'
import type { AlgorithmName } from '../../core/rule.js'
import { chargeOf, group, second } from '../fixtures.js'
import { balanceContract } from './balances.js'
import { allow, bandOf, bookOf, deny, limit, nameOf, overridable, type WithStore } from './fixtures.js'
import { compareOverridden } from './histories.js'

export function overrideContract(withStore: WithStore, seed: number): void {
  const rule = overridable('rule', [bandOf(10)])

  withStore('applies an override to one key from the next decision on', async (store) => {
    await store.charge([chargeOf(rule, 'a', { permits: 10 })], false)
    assert.equal((await store.charge([chargeOf(rule, 'a')], false)).granted, false)
    assert.equal(await bookOf(store).put(nameOf(rule, 'b'), limit(bandOf(3))), true)
    assert.equal((await store.charge([chargeOf(rule, 'b', { permits: 3 })], false)).bands[0]?.remaining, 0)
    const rejected = await store.charge([chargeOf(rule, 'b')], false)
    assert.equal(rejected.granted, false)
    assert.deepEqual(rejected.applied?.[0]?.group.bands, [bandOf(3)])
    assert.equal((await store.charge([chargeOf(rule, 'c')], true)).applied, undefined)
  })

  withStore('keeps separate buckets for the rule and for each override', async (store) => {
    const overrides = bookOf(store)
    await store.charge([chargeOf(rule, 'a', { permits: 4 })], false)
    await overrides.put(nameOf(rule, 'a'), limit(bandOf(100)))
    assert.equal((await store.charge([chargeOf(rule, 'a', { permits: 60 })], false)).bands[0]?.remaining, 40)
    assert.equal(await overrides.put(nameOf(rule, 'a'), limit(bandOf(50))), false)
    assert.equal((await store.charge([chargeOf(rule, 'a')], false)).bands[0]?.remaining, 49)
    await overrides.put(nameOf(rule, 'a'), limit(bandOf(100)))
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.remaining, 39)
    assert.equal(await overrides.delete(nameOf(rule, 'a')), true)
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.remaining, 5)
    assert.equal(await overrides.delete(nameOf(rule, 'a')), false)
  })

  withStore('exempts an allowed key from its rule but not from other rules', async (store) => {
    const other = group('other', [bandOf(2)])
    await bookOf(store).put(nameOf(rule, 'a'), allow)
    const only = await store.charge([chargeOf(rule, 'a', { permits: 1_000 })], false)
    assert.deepEqual([only.granted, only.bands.length, only.applied?.[0]?.group.listed], [true, 0, 'ALLOW'])
    const both = [chargeOf(rule, 'a', { permits: 50 }), chargeOf(other, 'a', { permits: 2 })]
    assert.deepEqual(
      (await store.charge(both, false)).bands.map(({ remaining }) => remaining),
      [0],
    )
    assert.equal((await store.charge(both, false)).granted, false)
  })

  withStore('rejects a denied key without charging any rule, except under a shadow rule', async (store, clock) => {
    const other = group('other', [bandOf(2)])
    await bookOf(store).put(nameOf(rule, 'a'), deny)
    for (let i = 0; i < 3; i++) {
      const { granted, bands } = await store.charge([chargeOf(other, 'a', { permits: 2 }), chargeOf(rule, 'a')], false)
      assert.equal(granted, false)
      assert.deepEqual(
        bands.map(({ allowed, retryAfter }) => [allowed, retryAfter]),
        [
          [true, 0],
          [false, Number.POSITIVE_INFINITY],
        ],
      )
    }
    assert.equal((await store.charge([chargeOf(other, 'a', { permits: 2 })], true)).granted, true)
    assert.equal((await store.charge([chargeOf(rule, 'a', { shadow: true })], false)).granted, true)
    await bookOf(store).put(nameOf(rule, 'b'), { ...deny, expiresAtMs: clock.now() + 5_000 })
    assert.equal((await store.charge([chargeOf(rule, 'b')], false)).bands[0]?.retryAfter, 5 * second)
  })

  withStore('expires overrides to the millisecond', async (store, clock) => {
    const name = nameOf(rule, 'a')
    await bookOf(store).put(name, { ...limit(bandOf(1)), expiresAtMs: clock.now() + 2_000 })
    await store.charge([chargeOf(rule, 'a')], false)
    clock.advance(1_999)
    assert.equal(
      (await store.charge([chargeOf(rule, 'a', { permits: 2 })], true)).bands[0]?.retryAfter,
      Number.POSITIVE_INFINITY,
    )
    clock.advance(1)
    assert.equal((await store.charge([chargeOf(rule, 'a', { permits: 10 })], false)).granted, true)
    assert.equal(await bookOf(store).get(name), undefined)
    assert.equal(await bookOf(store).delete(name), false)
  })

  withStore('returns an override unchanged, with every algorithm', async (store) => {
    const algorithms: AlgorithmName[] = ['LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER']
    const bands = algorithms.map((algorithm, i) =>
      bandOf(5 + i, { algorithm, refillTokens: 3, windowTicks: 90 * second }),
    )
    const terms = {
      ...limit(bandOf(1_000_000_000, { refill: 'INTERVAL' }), ...bands),
      expiresAtMs: 1_900_000_000_123,
      note: 'since May, 서울',
    }
    await bookOf(store).put(nameOf(rule, 'key:{1} 한국'), terms)
    assert.deepEqual(await bookOf(store).get(nameOf(rule, 'key:{1} 한국')), terms)
    assert.equal(await bookOf(store).get(nameOf(rule, 'key:{1}')), undefined)
    assert.equal(await bookOf(store).get(nameOf(overridable('elsewhere', [bandOf(1)]), 'key:{1} 한국')), undefined)
    const { bands: results, granted } = await store.charge([chargeOf(rule, 'key:{1} 한국', { permits: 5 })], false)
    assert.deepEqual([granted, results.map(({ remaining }) => remaining)], [true, [999_999_995, 0, 1, 2, 3]])
  })

  withStore('applies the override of the address, else of the smallest range that contains it', async (store) => {
    const addresses = overridable('addresses', [bandOf(10)], { countsAddresses: true })
    const overrides = bookOf(store)
    for (const [range, capacity] of [
      ['10.0.0.0/8', 100],
      ['10.1.0.0/16', 200],
      ['2001:db8::/32', 300],
    ] as const)
      await overrides.put(nameOf(addresses, range, true), limit(bandOf(capacity)))
    await overrides.put(nameOf(addresses, '10.1.2.3'), limit(bandOf(400)))
    const limits = []
    for (const key of ['10.9.9.9', '10.1.9.9', '10.1.2.3', '2001:db8:0:100::/56', '11.0.0.1', 'unknown'])
      limits.push((await store.charge([chargeOf(addresses, key)], true)).applied?.[0]?.group.bands[0]?.capacity)
    assert.deepEqual(limits, [100, 200, 400, 300, undefined, undefined])
    await overrides.delete(nameOf(addresses, '10.1.0.0/16', true))
    const after = await store.charge([chargeOf(addresses, '10.1.9.9')], true)
    assert.equal(after.applied?.[0]?.group.bands[0]?.capacity, 100)
  })

  withStore('refunds and resets the buckets of an override', async (store) => {
    await bookOf(store).put(nameOf(rule, 'a'), limit(bandOf(20), bandOf(8, { algorithm: 'SLIDING_WINDOW_LOG' })))
    await store.charge([chargeOf(rule, 'a', { permits: 8 })], false)
    await store.refund([{ group: rule, key: 'a', permits: 3 }])
    const remaining = async () =>
      (await store.charge([chargeOf(rule, 'a', { permits: 0 })], true)).bands.map(({ remaining }) => remaining)
    assert.deepEqual(await remaining(), [15, 3])
    await store.reset(rule, 'a')
    assert.deepEqual(await remaining(), [20, 8])
  })

  withStore('lists overrides by key, by prefix and in pages', async (store, clock) => {
    const overrides = bookOf(store)
    const keys = ['b', 'a1', 'a2', 'ä', '한국', '🙂', '\uffee', 'a10']
    for (const key of keys) await overrides.put(nameOf(rule, key), limit(bandOf(7)))
    await overrides.put(nameOf(rule, '10.0.0.0/8', true), deny)
    await overrides.put(nameOf(rule, 'gone'), { ...deny, expiresAtMs: clock.now() })
    await overrides.put(nameOf(overridable('elsewhere', [bandOf(1)]), 'a3'), deny)
    const sorted = ['10.0.0.0/8', 'a1', 'a10', 'a2', 'b', 'ä', '한국', '\uffee', '🙂']
    const list = async (limit: number, prefix = ''): Promise<string[][]> => {
      const pages: string[][] = []
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page: EntryPage = await overrides.list(rule.ruleSetId, rule.ruleId, { prefix, after, limit })
        pages.push(page.entries.map(({ key }) => key))
        after = page.next
      }
      return pages
    }
    const inOrder = (names: readonly string[]) => sorted.filter((key) => names.includes(key))
    assert.deepEqual(await list(100), [sorted])
    for (const limit of [1, 2, 4, 8]) {
      const pages = await list(limit)
      assert.deepEqual(
        pages.map((page) => page.length),
        Array.from({ length: Math.ceil(9 / limit) }, (_, i) => Math.min(limit, 9 - i * limit)),
      )
      for (const page of pages) assert.deepEqual(page, inOrder(page))
      assert.deepEqual(inOrder(pages.flat()), sorted)
    }
    assert.deepEqual(await list(10, 'a'), [['a1', 'a10', 'a2']])
    assert.deepEqual((await list(2, 'a')).flat().sort(), ['a1', 'a10', 'a2'])
    assert.deepEqual(await list(10, '한'), [['한국']])
    assert.deepEqual(
      [await list(10, '*'), await list(10, 'a[12]'), await list(10, '10.')],
      [[[]], [[]], [['10.0.0.0/8']]],
    )
  })

  balanceContract(withStore, seed)

  withStore(`decides as if the override were the rule, in a random history (seed ${seed})`, async (store, clock) => {
    await compareOverridden(store, clock, seed)
  })
}
