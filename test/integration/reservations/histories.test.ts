import { Redis } from 'ioredis'
import { afterAll, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareReservations } from '../../../src/testing/reservations/histories.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

const seed = Number(process.env.FLUXGATE_TEST_SEED ?? randomSeed())
const histories = Number(process.env.FLUXGATE_TEST_HISTORIES ?? 40)

it(`equal the reference models over ${histories} random histories on Redis (seed ${seed})`, async () => {
  for (let one = seed; one < seed + histories; one++) {
    const prefix = freshPrefix()
    await compareReservations(
      (clock) =>
        redisStore(client, {
          prefix,
          clock,
          timeoutMs: 20_000,
        }),
      { seed: one, steps: 100, maxCapacity: one % 3 === 0 ? 1e9 : 20, isDense: one % 2 === 0 },
    )
  }
})
