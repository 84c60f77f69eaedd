/**
 * Leases behind a deadline and a circuit breaker: a stalled server delays no decision beyond the deadline, and no
 * permit is lost.
 */
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import type { FluxGateError } from '../../../src/core/errors.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { leased } from '../../../src/stores/leased/leased.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { resilient } from '../../../src/stores/resilient/resilient.js'
import { second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { bandOf, demandOf, groupOf, sweepMs } from './test-leases.js'

const rule = groupOf([bandOf({ capacity: 1_000, windowTicks: 30 * 86_400 * second })])

it('returns a lease that arrives after its deadline, and spends held permits until then', async () => {
  const server = await stopAfterTest(startRedis())
  const client = new Redis(server.uri)
  const clock = manualClock(startMs)
  const buckets = new RedisBuckets(connectionOf(client), { clock })
  const store = leased(resilient(buckets, { clock, failures: 2 }), { clock })
  const ask = () => store.charge([demandOf(rule)], false)
  for (let i = 0; i < 32; i++) expect((await ask()).granted).toBe(true)
  clock.advance(sweepMs)
  await eventually('the first batch has arrived', () => store.heldPermits === 100)
  const held = store.heldPermits

  server.pause()
  for (let i = 0; i < held; i++) expect((await ask()).granted).toBe(true)
  const codes: string[] = []
  while (codes.at(-1) !== 'FLUXGATE_STORE_OPEN') {
    const late = ask().then(
      () => 'granted',
      (error: FluxGateError) => error.code,
    )
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(100)
    codes.push(await late)
  }
  expect(new Set(codes)).toEqual(new Set(['FLUXGATE_STORE_TIMEOUT', 'FLUXGATE_STORE_OPEN']))

  server.resume()
  await eventually('all unspent permits are returned', async () => {
    const { bands } = await buckets.charge([demandOf(rule, 0)], true)
    return bands[0]?.remaining === 1_000 - 32 - held
  })
  await eventually('a probe has closed the circuit breaker', async () => {
    clock.advance(1_000)
    return ask().then(
      ({ granted }) => granted,
      () => false,
    )
  })
  await store.close()
  client.disconnect()
})
