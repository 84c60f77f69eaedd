/**
 * Processes that lease from one bucket, over a network that delays and reorders, and that crash, close and stall: no
 * interval admits more than the band allows. Histories are random; FLUXGATE_SEED=… replays one.
 */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, Charge, ChargeResult, LeasingStore } from '../../../src/core/bucket-store.js'
import type { Band } from '../../../src/core/rule.js'
import { type Random, seededRandom } from '../../../src/core/seeded-random.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { type LeasedStore, leased } from '../../../src/stores/leased/leased.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { startMs } from '../../../src/testing/fixtures.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { type Admission, bandOf, demandOf, excess, groupOf } from './test-leases.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

/** Most replies arrive at once, some late, a few after the lease has expired. */
const lagMs = (random: Random): number => {
  const kind = random()
  return kind < 0.7 ? 0 : kind < 0.97 ? random() * 60 : random() * 3_000
}

class Network {
  /** Calls without a reply; time does not advance while there are any. */
  busy = 0
  readonly #clock: ManualClock
  readonly #random: Random

  constructor(clock: ManualClock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  /** The store as one process sees it, until that process is gone. */
  connect(store: LeasingStore, isGone: () => boolean): LeasingStore {
    const over = async <T>(call: () => Promise<T>): Promise<T> => {
      await this.#pause()
      if (isGone()) throw new Error('gone')
      this.busy += 1
      const answer = await call().finally(() => {
        this.busy -= 1
      })
      await this.#pause()
      return answer
    }
    return {
      charge: (demands, peek) => over(() => store.charge(demands, peek)),
      leasing: {
        lease: (request) => over(() => store.leasing.lease(request)),
        settle: (settlements) => over(() => store.leasing.settle(settlements)),
      },
      refund: (refunds) => over(() => store.refund(refunds)),
      reset: (group, key) => over(() => store.reset(group, key)),
      close: () => Promise.resolve(),
    }
  }

  /** Resolves when nothing more happens before time advances. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 3; calm++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.busy > 0) calm = -1
    }
  }

  #pause(): Promise<void> {
    const ms = lagMs(this.#random)
    return ms === 0 ? Promise.resolve() : new Promise((resolve) => this.#clock.schedule(ms, resolve))
  }
}

interface Node {
  readonly store: LeasedStore
  isGone: boolean
}

interface History {
  readonly admissions: readonly Admission[]
  readonly fromMemory: number
  /** Final levels of the buckets, after all unspent permits were returned. */
  readonly remaining: readonly number[]
}

async function play(seed: number, group: BucketGroup, steps: number): Promise<History> {
  const random = seededRandom(seed)
  const clock = manualClock(startMs + random() * 1_000)
  const network = new Network(clock, random)
  const buckets = new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), clock })
  const admissions: Admission[] = []
  let fromMemory = 0
  const start = (): Node => {
    const node: Node = {
      store: leased(
        network.connect(buckets, () => node.isGone),
        { clock, leaseShare: 0.4, minRequests: 4 },
      ),
      isGone: false,
    }
    return node
  }
  const nodes = Array.from({ length: 4 }, start)
  const tight = groupOf([bandOf({ capacity: 5, windowTicks: 700_000 })], { ruleId: 'tight', isLeased: false })
  const note =
    (permits: number) =>
    ({ granted, now, fromCache }: ChargeResult): void => {
      if (granted) admissions.push({ at: now, permits })
      if (granted && fromCache) fromMemory += 1
    }
  const ask = (node: Node): void => {
    const permits = pick(random, [1, 1, 1, 1, 2, 3, 9])
    const demands: Charge[] = [demandOf(group, permits)]
    if (random() < 0.1) demands.push(demandOf(tight, 1, { shadow: random() < 0.3 }))
    const store = random() < 0.05 ? buckets : node.store
    store.charge(demands, false).then(note(permits), () => {})
  }
  for (let i = 0; i < steps; i++) {
    const index = Math.floor(random() * nodes.length)
    const node = nodes[index] as Node
    const kind = random()
    if (kind < 0.35) for (let n = 0; n < 1 + random() * 12; n++) ask(node)
    else if (kind < 0.5) for (const one of nodes) for (let n = 0; n < random() * 50; n++) ask(one)
    else if (kind < 0.8) clock.advance(random() * 20)
    else if (kind < 0.95) clock.advance(random() * 400)
    else if (kind < 0.97) clock.advance(random() * 3_000)
    else {
      if (kind < 0.985) node.isGone = true
      else node.store.close().catch(() => {})
      nodes[index] = start()
    }
    await network.quiet()
  }
  for (const { store } of nodes) store.close().catch(() => {})
  for (let i = 0; i < 100; i++) {
    clock.advance(100)
    await network.quiet()
  }
  const end = await buckets.charge([demandOf(group, 0)], true)
  return { admissions, fromMemory, remaining: end.bands.map(({ remaining }) => remaining) }
}

function randomBand(random: Random, label: string, given: Partial<Band>): Band {
  const capacity = 30 + Math.floor(random() * 200)
  const windowTicks = Math.floor((40 + random() * 1_500) * 1_000)
  return bandOf({ label, capacity, refillTokens: Math.ceil(capacity * (0.2 + random())), windowTicks, ...given })
}

const kinds: Readonly<Record<string, readonly Partial<Band>[]>> = {
  'a token bucket': [{}],
  'a token bucket that is refilled in intervals': [{ refill: 'INTERVAL' }],
  'a fixed window': [{ algorithm: 'FIXED_WINDOW' }],
  'a token bucket and a fixed window': [{}, { algorithm: 'FIXED_WINDOW' }],
}

describe('leases of several processes', () => {
  const given = process.env.FLUXGATE_SEED
  const seed = given === undefined ? Date.now() % 2 ** 31 : Number(given)
  const histories = given === undefined ? 12 : 1

  for (const [name, bands] of Object.entries(kinds))
    it(`${name} never admits more than without them, in any interval (seeds ${seed} to ${seed + histories - 1})`, async () => {
      let fromMemory = 0
      for (let i = 0; i < histories; i++) {
        const random = seededRandom(seed + i)
        const group = groupOf(bands.map((band, index) => randomBand(random, `band${index}`, band)))
        const history = await play(seed + i, group, 120)
        fromMemory += history.fromMemory
        for (const [index, band] of group.bands.entries()) {
          expect(excess(band, history.admissions), `FLUXGATE_SEED=${seed + i} ${JSON.stringify(band)}`).toBeUndefined()
          expect(history.remaining[index], `FLUXGATE_SEED=${seed + i}`).toBe(band.capacity)
        }
      }
      expect(fromMemory).toBeGreaterThan(0)
    })
})
