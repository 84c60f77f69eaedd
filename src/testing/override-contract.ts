/** What a bucket store that keeps overrides promises of them; a part of `bucketStoreContract`. */
import assert from 'node:assert/strict'
import type { BandResult, BucketGroup, BucketStore, ChargeResult, Demand } from '../core/bucket-store.js'
import type { EntryPage, OverrideBook, OverrideName, OverrideTerms } from '../core/override-book.js'
import type { AlgorithmName, Band } from '../core/rule.js'
import { seededRandom } from './history.js'
import type { ManualClock } from './manual-clock.js'
import { referenceStore } from './models/reference-store.js'

type WithStore = (title: string, test: (store: BucketStore, clock: ManualClock) => Promise<void>) => void

const second = 1_000_000

const band = (capacity: number, given: Partial<Band> = {}): Band => ({
  label: `${capacity}:band`,
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity,
  refillTokens: capacity,
  windowTicks: second,
  ...given,
})

const group = (ruleId: string, bands: readonly Band[], given: Partial<BucketGroup> = {}): BucketGroup => ({
  ruleSetId: 'overrides',
  ruleId,
  generation: '1',
  permits: 1,
  bands,
  hasOverrides: true,
  ...given,
})

const demand = (rule: BucketGroup, key: string, permits = 1, given: Partial<Demand> = {}): Demand => ({
  group: rule,
  key,
  permits,
  patience: 0,
  policy: 'REJECT',
  shadow: false,
  ...given,
})

const limit = (...bands: Band[]): OverrideTerms => ({
  action: 'LIMIT',
  bands,
  expiresAtMs: undefined,
  note: undefined,
})
const allow: OverrideTerms = { action: 'ALLOW', bands: [], expiresAtMs: undefined, note: undefined }
const deny: OverrideTerms = { ...allow, action: 'DENY' }

const nameOf = ({ ruleSetId, ruleId }: BucketGroup, key: string, isRange = false): OverrideName => ({
  ruleSetId,
  ruleId,
  key,
  isRange,
})

const bookOf = ({ overrides }: BucketStore): OverrideBook => overrides ?? assert.fail('the store keeps no overrides')

export function overrideContract(withStore: WithStore, seed: number): void {
  const rule = group('rule', [band(10)])

  withStore('an override gives one identity other bands, from the next decision on', async (store) => {
    await store.charge([demand(rule, 'a', 10)], false)
    assert.equal((await store.charge([demand(rule, 'a')], false)).granted, false)
    assert.equal(await bookOf(store).put(nameOf(rule, 'b'), limit(band(3))), true)
    assert.equal((await store.charge([demand(rule, 'b', 3)], false)).bands[0]?.remaining, 0)
    const refused = await store.charge([demand(rule, 'b')], false)
    assert.equal(refused.granted, false)
    assert.deepEqual(refused.applied?.[0]?.group.bands, [band(3)])
    assert.equal((await store.charge([demand(rule, 'c')], true)).applied, undefined)
  })

  withStore('another override starts with buckets of its own, and the rule keeps those it had', async (store) => {
    const book = bookOf(store)
    await store.charge([demand(rule, 'a', 4)], false)
    await book.put(nameOf(rule, 'a'), limit(band(100)))
    assert.equal((await store.charge([demand(rule, 'a', 60)], false)).bands[0]?.remaining, 40)
    assert.equal(await book.put(nameOf(rule, 'a'), limit(band(50))), false)
    assert.equal((await store.charge([demand(rule, 'a', 1)], false)).bands[0]?.remaining, 49)
    await book.put(nameOf(rule, 'a'), limit(band(100)))
    assert.equal((await store.charge([demand(rule, 'a', 1)], true)).bands[0]?.remaining, 39)
    assert.equal(await book.delete(nameOf(rule, 'a')), true)
    assert.equal((await store.charge([demand(rule, 'a', 1)], true)).bands[0]?.remaining, 5)
    assert.equal(await book.delete(nameOf(rule, 'a')), false)
  })

  withStore('whoever is allowed is not limited by that rule, and still by the others', async (store) => {
    const other = group('other', [band(2)], { hasOverrides: false })
    await bookOf(store).put(nameOf(rule, 'a'), allow)
    const only = await store.charge([demand(rule, 'a', 1_000)], false)
    assert.deepEqual([only.granted, only.bands.length, only.applied?.[0]?.group.listed], [true, 0, 'ALLOW'])
    const both = [demand(rule, 'a', 50), demand(other, 'a', 2)]
    assert.deepEqual(
      (await store.charge(both, false)).bands.map(({ remaining }) => remaining),
      [0],
    )
    assert.equal((await store.charge(both, false)).granted, false)
  })

  withStore(
    'whoever is denied is refused, nobody is charged for it, and a shadow denies nobody',
    async (store, clock) => {
      const other = group('other', [band(2)], { hasOverrides: false })
      await bookOf(store).put(nameOf(rule, 'a'), deny)
      for (let i = 0; i < 3; i++) {
        const { granted, bands } = await store.charge([demand(other, 'a', 2), demand(rule, 'a')], false)
        assert.equal(granted, false)
        assert.deepEqual(
          bands.map(({ allowed, retryAfter }) => [allowed, retryAfter]),
          [
            [true, 0],
            [false, Number.POSITIVE_INFINITY],
          ],
        )
      }
      assert.equal((await store.charge([demand(other, 'a', 2)], true)).granted, true)
      assert.equal((await store.charge([demand(rule, 'a', 1, { shadow: true })], false)).granted, true)
      await bookOf(store).put(nameOf(rule, 'b'), { ...deny, expiresAtMs: clock.now() + 5_000 })
      assert.equal((await store.charge([demand(rule, 'b')], false)).bands[0]?.retryAfter, 5 * second)
    },
  )

  withStore('an override that has expired is gone, to the millisecond', async (store, clock) => {
    const name = nameOf(rule, 'a')
    await bookOf(store).put(name, { ...limit(band(1)), expiresAtMs: clock.now() + 2_000 })
    await store.charge([demand(rule, 'a')], false)
    clock.advance(1_999)
    assert.equal((await store.charge([demand(rule, 'a', 2)], true)).bands[0]?.retryAfter, Number.POSITIVE_INFINITY)
    clock.advance(1)
    assert.equal((await store.charge([demand(rule, 'a', 10)], false)).granted, true)
    assert.equal(await bookOf(store).get(name), undefined)
    assert.equal(await bookOf(store).delete(name), false)
  })

  withStore('an override is kept as it was put, with every algorithm', async (store) => {
    const algorithms: AlgorithmName[] = ['LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER']
    const bands = algorithms.map((algorithm, i) =>
      band(5 + i, { algorithm, refillTokens: 3, windowTicks: 90 * second }),
    )
    const terms = {
      ...limit(band(1_000_000_000, { refill: 'INTERVAL' }), ...bands),
      expiresAtMs: 1_900_000_000_123,
      note: 'since May, 서울',
    }
    await bookOf(store).put(nameOf(rule, 'key:{1} 한국'), terms)
    assert.deepEqual(await bookOf(store).get(nameOf(rule, 'key:{1} 한국')), terms)
    assert.equal(await bookOf(store).get(nameOf(rule, 'key:{1}')), undefined)
    assert.equal(await bookOf(store).get(nameOf(group('elsewhere', [band(1)]), 'key:{1} 한국')), undefined)
    const { bands: said, granted } = await store.charge([demand(rule, 'key:{1} 한국', 5)], false)
    assert.deepEqual([granted, said.map(({ remaining }) => remaining)], [true, [999_999_995, 0, 1, 2, 3]])
  })

  withStore('the smallest range that holds an address counts, unless the address has an override', async (store) => {
    const addresses = group('addresses', [band(10)], { countsAddresses: true })
    const book = bookOf(store)
    for (const [range, capacity] of [
      ['10.0.0.0/8', 100],
      ['10.1.0.0/16', 200],
      ['2001:db8::/32', 300],
    ] as const)
      await book.put(nameOf(addresses, range, true), limit(band(capacity)))
    await book.put(nameOf(addresses, '10.1.2.3'), limit(band(400)))
    const limits = []
    for (const key of ['10.9.9.9', '10.1.9.9', '10.1.2.3', '2001:db8:0:100::/56', '11.0.0.1', 'unknown'])
      limits.push((await store.charge([demand(addresses, key)], true)).applied?.[0]?.group.bands[0]?.capacity)
    assert.deepEqual(limits, [100, 200, 400, 300, undefined, undefined])
    await book.delete(nameOf(addresses, '10.1.0.0/16', true))
    const after = await store.charge([demand(addresses, '10.1.9.9')], true)
    assert.equal(after.applied?.[0]?.group.bands[0]?.capacity, 100)
  })

  withStore('refunds and resets find the buckets of an override', async (store) => {
    await bookOf(store).put(nameOf(rule, 'a'), limit(band(20), band(8, { algorithm: 'SLIDING_WINDOW_LOG' })))
    await store.charge([demand(rule, 'a', 8)], false)
    await store.refund([{ group: rule, key: 'a', permits: 3 }])
    const look = async () => (await store.charge([demand(rule, 'a', 0)], true)).bands.map(({ remaining }) => remaining)
    assert.deepEqual(await look(), [15, 3])
    await store.reset(rule, 'a')
    assert.deepEqual(await look(), [20, 8])
  })

  withStore('overrides are listed by key, by prefix and page by page', async (store, clock) => {
    const book = bookOf(store)
    const keys = ['b', 'a1', 'a2', 'ä', '한국', '🙂', '\uffee', 'a10']
    for (const key of keys) await book.put(nameOf(rule, key), limit(band(7)))
    await book.put(nameOf(rule, '10.0.0.0/8', true), deny)
    await book.put(nameOf(rule, 'gone'), { ...deny, expiresAtMs: clock.now() })
    await book.put(nameOf(group('elsewhere', [band(1)]), 'a3'), deny)
    const sorted = ['10.0.0.0/8', 'a1', 'a10', 'a2', 'b', 'ä', '한국', '\uffee', '🙂']
    const list = async (limit: number, prefix = ''): Promise<string[][]> => {
      const pages: string[][] = []
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page: EntryPage = await book.list(rule.ruleSetId, rule.ruleId, { prefix, after, limit })
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

  withStore('an identity begins with its balance, refilled since, and not with it again', async (store, clock) => {
    const book = bookOf(store)
    const look = async (key: string) =>
      (await store.charge([demand(rule, key, 0)], true)).bands.map(({ remaining }) => remaining)
    const balance = { permits: 3, atMs: clock.now() }
    await store.charge([demand(rule, 'a', 10)], false)
    await book.put(nameOf(rule, 'a'), { ...limit(), balance })
    await book.put(nameOf(rule, 'b'), { ...limit(band(100)), balance: { ...balance, permits: 0 } })
    await book.put(nameOf(rule, 'c'), { ...limit(band(100), band(2)), balance })
    assert.deepEqual(await bookOf(store).get(nameOf(rule, 'a')), { ...limit(), balance })
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[3], [0], [3, 2]])
    const refused = await store.charge([demand(rule, 'a', 4)], false)
    assert.deepEqual([refused.granted, refused.bands[0]?.retryAfter], [false, second / 10])
    assert.equal((await store.charge([demand(rule, 'a', 3)], false)).granted, true)
    clock.advance(500)
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[5], [50], [53, 2]])
    // More comes back than was taken: full is full, though the balance alone would not be yet.
    await store.refund([{ group: rule, key: 'b', permits: 100 }])
    await store.refund([{ group: rule, key: 'c', permits: 7 }])
    assert.deepEqual([await look('b'), await look('c')], [[100], [60, 2]])
    clock.advance(600)
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[10], [100], [100, 2]])
    await book.put(nameOf(rule, 'a'), { ...limit(), balance: { permits: 3, atMs: clock.now() } })
    assert.deepEqual(await look('a'), [3])
    await store.charge([demand(rule, 'a', 2)], false)
    await store.reset(rule, 'a')
    assert.deepEqual(await look('a'), [3])
    await book.delete(nameOf(rule, 'a'))
    assert.deepEqual(await look('a'), [10])
  })

  for (const one of begunBands)
    withStore(
      `a balance of ${one.refill === 'INTERVAL' ? 'INTERVAL' : one.algorithm} is as if the rest had been taken at its time (seed ${seed})`,
      (store, clock) => compareBegun(store, clock, one, seed),
    )

  withStore(`decides as if the override were the rule, over a random history (seed ${seed})`, async (store, clock) => {
    await compareOverridden(store, clock, seed)
  })
}

const bandsOf: Readonly<Record<string, readonly Band[]>> = {
  ann: [band(3, { windowTicks: 700_000 })],
  bob: [band(5, { algorithm: 'FIXED_WINDOW' }), band(2, { algorithm: 'SLIDING_WINDOW_LOG', windowTicks: 300_000 })],
}
const identities = ['ann', 'bob', 'carol', 'dave', 'eve']

/** Identities with overrides of every kind beside one without, in decisions of several rules that share calls. */
async function compareOverridden(store: BucketStore, clock: ManualClock, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = group('random', [band(4, { windowTicks: 500_000 })])
  const other = group('plain', [band(6, { algorithm: 'LEAKY_BUCKET' })], { hasOverrides: false })
  const book = bookOf(store)
  for (const [key, bands] of Object.entries(bandsOf)) await book.put(nameOf(rule, key), limit(...bands))
  await book.put(nameOf(rule, 'carol'), allow)
  await book.put(nameOf(rule, 'dave'), deny)

  const randomDemands = (): Demand[] => {
    const key = pick(identities)
    const permits = 1 + Math.floor(random() * 3)
    const overridden = demand(rule, key, permits, { shadow: random() < 0.2, patience: random() < 0.2 ? second : 0 })
    return random() < 0.5 ? [overridden] : [demand(other, key, permits), overridden]
  }
  for (let round = 0; round < 60; round++) {
    const decisions = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
      demands: randomDemands(),
      peek: random() < 0.2,
    }))
    const found = await Promise.all(decisions.map(({ demands, peek }) => store.charge(demands, peek)))
    for (const [i, { demands, peek }] of decisions.entries()) {
      const expected = await model.charge(demands.flatMap(asRule), peek)
      const place = `seed ${seed}, round ${round}, decision ${i}`
      const result = found[i] as ChargeResult
      assert.equal(result.granted, expected.granted, place)
      // What is refused without asking is told as it was known then, without what is under way meanwhile.
      if (!result.isUnasked)
        assert.deepEqual(counted(demands, result), counted(demands.flatMap(asRule), expected), place)
    }
    if (random() < 0.3) {
      const refund = { group: rule, key: pick(identities), permits: 1 }
      await store.refund([refund])
      await model.refund(asRule(demand(rule, refund.key)).map(({ group, key }) => ({ group, key, permits: 1 })))
    }
    clock.advance(Math.floor(random() * 400_000) / 1_000)
  }
}

const begunBands: readonly Band[] = [
  band(8, { windowTicks: 700_000 }),
  band(8, { refill: 'INTERVAL', refillTokens: 3, windowTicks: 300_000 }),
  band(8, { algorithm: 'LEAKY_BUCKET', windowTicks: 900_000 }),
  band(8, { algorithm: 'FIXED_WINDOW' }),
  band(8, { algorithm: 'SLIDING_WINDOW_LOG' }),
  band(8, { algorithm: 'SLIDING_WINDOW_COUNTER', windowTicks: 600_000 }),
]

/** Identities with balances of bands of their own and of the rule's, some used at once and some long after. */
async function compareBegun(store: BucketStore, clock: ManualClock, one: Band, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = group(`begun-${one.algorithm}-${one.refill}`, [one])
  const plain: BucketGroup = { ...rule, hasOverrides: false }
  for (let round = 0; round < 12; round++) {
    const keys = ['ann', 'bob', 'carol'].map((name) => `${name}-${round}`)
    for (const [i, key] of keys.entries()) {
      const permits = Math.floor(random() * 9)
      const balance = { permits, atMs: clock.now() }
      await bookOf(store).put(nameOf(rule, key), { ...(i === 0 ? limit() : limit(one)), balance })
      if (permits < 8) await model.charge([demand(plain, key, 8 - permits)], false)
    }
    for (let step = 0; step < 12; step++) {
      // A balance counts in whole milliseconds.
      clock.advance(Math.floor(random() * 200))
      const asked = { key: pick(keys), permits: 1 + Math.floor(random() * 4), peek: random() < 0.3 }
      const place = `seed ${seed}, round ${round}, step ${step}`
      if (random() < 0.2) {
        await store.refund([{ group: rule, key: asked.key, permits: asked.permits }])
        await model.refund([{ group: plain, key: asked.key, permits: asked.permits }])
      }
      const given = random() < 0.2 ? { patience: second } : {}
      const found = await store.charge([demand(rule, asked.key, asked.permits, given)], asked.peek)
      const expected = await model.charge([demand(plain, asked.key, asked.permits, given)], asked.peek)
      assert.deepEqual(
        [found.granted, found.bands.slice(0, 1).map(said)],
        [expected.granted, expected.bands.map(said)],
        place,
      )
    }
  }
}

const said = ({ allowed, delay, retryAfter, remaining, resetAt }: BandResult): BandResult => ({
  allowed,
  delay,
  retryAfter,
  remaining,
  resetAt,
})

const impossible = group('denied', [band(1)], { hasOverrides: false })

/** The same without overrides: other rules, none at all, or one that can never be satisfied. */
function asRule(asked: Demand): Demand[] {
  if (!asked.group.hasOverrides || asked.key === 'eve')
    return [{ ...asked, group: { ...asked.group, hasOverrides: false } }]
  if (asked.key === 'carol') return []
  if (asked.key === 'dave') return [{ ...asked, group: impossible, permits: 2 }]
  return [{ ...asked, group: group(`own-${asked.key}`, bandsOf[asked.key] ?? [], { hasOverrides: false }) }]
}

/** What was said of bands that count, and not of one that stands for a denial. */
function counted(demands: readonly Demand[], { bands, applied = demands }: ChargeResult): (BandResult | undefined)[] {
  let index = 0
  return applied.flatMap(({ group }) => {
    const said = group.bands.map(() => bands[index++])
    return group.listed === undefined && group !== impossible ? said : []
  })
}
