/** Random histories of reservations, with crashes of the process during calls. FLUXGATE_TEST_HISTORIES sets their number. */
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareReservations } from '../../../src/testing/reservations/histories.js'
import { type CrashingClient, crashingClient } from '../../fixtures/crashing-client.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { inOneSlot } from '../../fixtures/same-slot.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

let cluster: Cluster
const servers: CrashingClient[] = []
const clusters: CrashingClient[] = []
/** Histories that run at the same time, each with its own client. */
const lanes = 4
beforeAll(async () => {
  cluster = await startCluster()
  for (let lane = 0; lane < lanes; lane++) {
    servers.push(crashingClient(new Redis(sharedRedis().uri)))
    clusters.push(crashingClient(new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))))
  }
})
afterAll(async () => {
  for (const { client } of [...servers, ...clusters]) client.disconnect()
  await cluster.stop()
})

const seed = Number(process.env.FLUXGATE_TEST_SEED ?? randomSeed())
const histories = Number(process.env.FLUXGATE_TEST_HISTORIES ?? 40)

/** Runs one history. The process crashes during some calls, and another one repeats them. Returns the number of crashes. */
async function compare(
  process: CrashingClient,
  one: number,
  wrap: (store: BucketStore) => BucketStore,
): Promise<number> {
  const random = seededRandom(one + 0.5)
  const prefix = freshPrefix()
  let crashes = 0
  let open = (): BucketStore => undefined as never
  let current: BucketStore
  const store: BucketStore = {
    charge: (charges, peek) => current.charge(charges, peek),
    refund: (refunds) => current.refund(refunds),
    reset: (group, key) => current.reset(group, key),
    close: () => current.close(),
    get variants() {
      return current.variants
    },
    get reservations() {
      return current.reservations
    },
  }
  const restart = async () => {
    process.restart()
    await current.close()
    current = open()
    return store
  }
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      if (random() < 0.3) process.crashSoon(random, 4)
      try {
        return await work()
      } catch (error) {
        if (!process.isCrashed) throw error
        crashes += 1
      } finally {
        if (process.isCrashed) await restart()
        else process.restart()
      }
    }
  }
  const create = (clock: Clock): BucketStore => {
    open = () => wrap(redisStore(process.client, { prefix, clock, timeoutMs: 20_000 }))
    current = open()
    return store
  }
  const size = { steps: 100, maxCapacity: one % 3 === 0 ? 1e9 : 20, isDense: one % 2 === 0 }
  await compareReservations(create, { seed: one, ...size, call, restart })
  return crashes
}

it.each([
  ['Redis', servers, (store: BucketStore) => store],
  ['a Redis Cluster', clusters, inOneSlot],
])(
  `equal the reference models over ${histories} random histories on %s (seed ${seed})`,
  async (_, clients, wrap) => {
    let crashes = 0
    const runLane = async (client: CrashingClient, lane: number): Promise<void> => {
      for (let i = lane; i < histories; i += lanes) crashes += await compare(client, seed + i, wrap)
    }
    await Promise.all(clients.map(runLane))
    expect(crashes).toBeGreaterThan(0)
  },
  7_200_000,
)
