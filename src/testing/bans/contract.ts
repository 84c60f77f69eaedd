/** The part of `bucketStoreContract` about bans. */
import assert from 'node:assert/strict'
import type { BanStorage } from '../../core/bans/ban-storage.js'
import type { BucketStore } from '../../core/bucket-store.js'
import type { StoreFactory, TestRunner } from '../bucket-store-contract.js'
import { band, chargeOf, group, second } from '../fixtures.js'
import type { WithStore } from '../overrides/fixtures.js'
import { compareBans } from './histories.js'

const bansOf = ({ bans }: BucketStore): BanStorage => bans ?? assert.fail('The store does not support bans.')

const ban = { after: 3, withinTicks: 60 * second, forTicks: 900 * second, factor: 2, maxTicks: 3_600 * second }
const rule = group('login', [band({ capacity: 1, windowTicks: 10 * second })], { ban })

export function banContract(
  it: TestRunner,
  withStore: WithStore,
  create: StoreFactory,
  { seed, histories }: { readonly seed: number; readonly histories: number },
): void {
  withStore(
    'bans a key with the last of the rejections, and until exactly the end of the ban',
    async (store, clock) => {
      const charge = async () => (await store.charge([chargeOf(rule, 'a')], false)).bands[0]
      const started: unknown[] = []
      bansOf(store).onStart(({ group: { ruleId }, key, until }) => started.push([ruleId, key, until]))
      assert.equal((await charge())?.allowed, true)
      for (let i = 0; i < 2; i++) assert.deepEqual([(await charge())?.retryAfter, started], [10 * second, []])
      const last = await charge()
      assert.deepEqual([last?.retryAfter, last?.banned], [900 * second, undefined])
      assert.deepEqual(started, [['login', 'a', clock.now() * 1_000 + 900 * second]])
      clock.advance(900_000 - 0.001)
      const banned = await charge()
      assert.deepEqual([banned?.allowed, banned?.banned, banned?.retryAfter], [false, true, 1])
      clock.advance(0.001)
      assert.equal((await charge())?.allowed, true)
    },
  )

  withStore('sets and lifts bans by hand', async (store, clock) => {
    const bans = bansOf(store)
    const now = clock.now() * 1_000
    const set = await bans.set(rule, 'a', { forTicks: 60 * second })
    assert.deepEqual(set, { ban: { key: 'a', until: now + 60 * second, count: 0, now }, created: true })
    assert.equal((await store.charge([chargeOf(rule, 'a')], false)).bands[0]?.banned, true)
    assert.equal((await bans.set(rule, 'a', { until: now + 1 }))?.created, false)
    clock.advance(0.001)
    assert.equal(await bans.get(rule, 'a'), undefined)
    assert.equal(await bans.lift(rule, 'a'), false)
    await bans.set(rule, 'a', { forTicks: 60 * second })
    assert.equal(await bans.lift(rule, 'a'), true)
    assert.equal((await store.charge([chargeOf(rule, 'a')], false)).granted, true)
  })

  withStore('sets no ban that ends before now or after the longest ban', async (store, clock) => {
    const [bans, now] = [bansOf(store), clock.now() * 1_000]
    for (const end of [{ until: now }, { until: now + ban.maxTicks + 1 }, { forTicks: ban.maxTicks + 1 }])
      assert.equal(await bans.set(rule, 'a', end), undefined)
    assert.equal((await bans.set(rule, 'a', { until: now + ban.maxTicks }))?.created, true)
  })

  withStore('lists bans in order of their keys, page by page and by prefix', async (store) => {
    const bans = bansOf(store)
    const other = group('other', rule.bands, { ban })
    for (const key of ['b2', 'a', 'b1', 'ä', 'b10']) await bans.set(rule, key, { forTicks: second })
    await bans.set(other, 'b3', { forTicks: second })
    const list = async (prefix: string, after: string, limit: number) => {
      const page = await bans.list(rule, { prefix, after, limit })
      return [page.bans.map(({ key }) => key), page.next]
    }
    assert.deepEqual(await list('', '', 9), [['a', 'b1', 'b10', 'b2', 'ä'], undefined])
    assert.deepEqual(await list('', '', 2), [['a', 'b1'], 'b1'])
    assert.deepEqual(await list('', 'b1', 2), [['b10', 'b2'], 'b2'])
    assert.deepEqual(await list('b1', '', 9), [['b1', 'b10'], undefined])
    assert.deepEqual(await list('c', '', 9), [[], undefined])
  })

  withStore('lists no ban that has ended, or was lifted or reset', async (store, clock) => {
    const bans = bansOf(store)
    for (const [i, key] of ['a', 'b', 'c', 'd'].entries()) await bans.set(rule, key, { forTicks: (i + 1) * second })
    clock.advance(1_000)
    await bans.lift(rule, 'b')
    await store.reset(rule, 'c')
    const { bans: left } = await bans.list(rule, { prefix: '', after: '', limit: 9 })
    assert.deepEqual(
      left.map(({ key, until, now }) => [key, until - now]),
      [['d', 3 * second]],
    )
  })

  withStore('never bans for longer than the longest ban, even if the clock steps back', async (store, clock) => {
    await bansOf(store).set(rule, 'a', { forTicks: 60 * second })
    clock.advance(-10_000)
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.retryAfter, 70 * second)
    clock.advance(-100_000_000)
    assert.equal((await store.charge([chargeOf(rule, 'a')], true)).bands[0]?.retryAfter, ban.maxTicks)
  })

  it(`agrees with the reference model of bans over ${histories} random histories (seed ${seed})`, async () => {
    for (let i = 0; i < histories; i++) await compareBans(create, seed + i, 120)
  })
}
