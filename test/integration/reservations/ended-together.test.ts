/** A client may let thousands of reservations of one key end at the same time. The next decision returns the permits of all of them. */
import { expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { OnExpire } from '../../../src/core/reservations/reservation.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const server = await ownRedis()
const client = clientOf(server)

const stores: Readonly<Record<string, (clock: ManualClock) => BucketStore>> = {
  memory: (clock) => memoryStore({ clock }),
  Redis: (clock) => redisStore(client, { prefix: freshPrefix(), clock, timeoutMs: 120_000 }),
}
const count = 3_000
const perTurn = 50
const context = { apiKey: 'k' }

interface Terms {
  readonly onExpire: OnExpire
  readonly ttlMs: number
}

/** One third is refunded after a second, one third stays charged, and one third is still open. */
const mixed = (i: number): Terms => ({
  onExpire: i % 3 === 0 ? 'REFUND' : 'KEEP',
  ttlMs: i % 3 === 2 ? 600_000 : 1_000,
})
const refunded = (): Terms => ({ onExpire: 'REFUND', ttlMs: 1_000 })
const kept = (): Terms => ({ onExpire: 'KEEP', ttlMs: 1_000 })

/** Makes reservations and lets them end. Returns what remains then, and how long both took. */
async function play(name: string, algorithm: 'TOKEN_BUCKET' | 'FIXED_WINDOW', termsOf: (i: number) => Terms) {
  const clock = manualClock(1_800_000_000_000)
  const store = stores[name]?.(clock) as BucketStore
  const bands = [{ algorithm, capacity: 1_000_000, window: '1d' }]
  const gate = await createFluxGate({
    rules: { id: 'llm', rules: [{ id: 'a', limitScope: 'API_KEY', bands }] },
    store,
    clock,
  })
  onTestFinished(() => gate.close().then(() => store.close()))
  const startedAt = performance.now()
  for (let i = 0; i < count; i += perTurn) {
    const turn = Array.from({ length: perTurn }, (_, j) =>
      gate.reserve(context, { permits: 90, id: `job ${i + j}`, ...termsOf(i + j) }),
    )
    for (const { decision } of await Promise.all(turn)) expect(decision.allowed).toBe(true)
    clock.advance(0.02)
  }
  const madeMs = performance.now() - startedAt
  clock.advance(62_000)
  const readAt = performance.now()
  const { remaining } = await gate.check(context, { permits: 0 })
  return { remaining, madeMs, endedMs: performance.now() - readAt }
}

for (const name of Object.keys(stores)) {
  it(`return the permits of all that are refunded (${name})`, async () => {
    // 11 permits per second are refilled.
    const refilled = 717
    expect((await play(name, 'TOKEN_BUCKET', mixed)).remaining).toBe(1_000_000 - 90 * 2_000 + refilled)
    expect((await play(name, 'FIXED_WINDOW', mixed)).remaining).toBe(1_000_000 - 90 * 2_000)
    expect((await play(name, 'TOKEN_BUCKET', refunded)).remaining).toBe(1_000_000)
  })

  it(`end much faster than they were made (${name})`, async () => {
    for (const termsOf of [kept, refunded]) {
      const { madeMs, endedMs } = await play(name, 'TOKEN_BUCKET', termsOf)
      expect(endedMs).toBeLessThan(madeMs / 4)
    }
  })
}
