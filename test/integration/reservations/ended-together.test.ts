/** A client may let thousands of reservations of one key end at the same time. The next decision returns the permits of all of them. */
import { expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { OnExpire } from '../../../src/core/reservations/reservation.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { consumeScript } from '../../../src/stores/redis/lua/consume.generated.js'
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

/** Makes reservations, lets them end and returns what remains then. `onEnd` is called before the decision that ends them. */
async function remainingAfter(
  openStore: (clock: ManualClock) => BucketStore,
  algorithm: 'TOKEN_BUCKET' | 'FIXED_WINDOW',
  termsOf: (i: number) => Terms,
  { count = 3_000, onEnd }: { count?: number; onEnd?: () => void } = {},
): Promise<number> {
  const clock = manualClock(1_800_000_000_000)
  const store = openStore(clock)
  const bands = [{ algorithm, capacity: 1_000_000, window: '1d' }]
  const gate = await createFluxGate({
    rules: { id: 'llm', rules: [{ id: 'a', limitScope: 'API_KEY', bands }] },
    store,
    clock,
  })
  onTestFinished(() => gate.close().then(() => store.close()))
  for (let i = 0; i < count; i += perTurn) {
    const turn = Array.from({ length: perTurn }, (_, j) =>
      gate.reserve(context, { permits: 90, id: `job ${i + j}`, ...termsOf(i + j) }),
    )
    for (const { decision } of await Promise.all(turn)) expect(decision.allowed).toBe(true)
    clock.advance(0.02)
  }
  clock.advance(62_000)
  onEnd?.()
  return (await gate.check(context, { permits: 0 })).remaining
}

for (const [name, openStore] of Object.entries(stores)) {
  it(`return the permits of all that are refunded (${name})`, async () => {
    // 11 permits per second are refilled.
    const refilled = 717
    expect(await remainingAfter(openStore, 'TOKEN_BUCKET', mixed)).toBe(1_000_000 - 90 * 2_000 + refilled)
    expect(await remainingAfter(openStore, 'FIXED_WINDOW', mixed)).toBe(1_000_000 - 90 * 2_000)
    expect(await remainingAfter(openStore, 'TOKEN_BUCKET', refunded)).toBe(1_000_000)
  })
}

/** The script, which also adds the number of bytes that it has copied within Lua to the key `copied`. */
const countingScript = `
local copied, realString, realTable = 0, string, table
local function count(bytes) copied = copied + #bytes return bytes end
local string = setmetatable({ sub = function(...) return count(realString.sub(...)) end }, { __index = realString })
local table = setmetatable({ concat = function(...) return count(realTable.concat(...)) end }, { __index = realTable })
local function run() ${consumeScript.source}
end
local result = run()
redis.call('SET', 'copied', copied)
return result`

/** The client, which runs the counting script once `isCounting` is set. */
const isCounting = { now: false }
const countingClient = new Proxy(client, {
  get(real, name) {
    const value: unknown = Reflect.get(real, name, real)
    if (name !== 'createBuiltinCommand') return typeof value === 'function' ? value.bind(real) : value
    return (command: string) => ({
      buffer: (args: readonly (string | Buffer)[]) =>
        isCounting.now && args[0] === consumeScript.sha
          ? real.createBuiltinCommand('eval').buffer.call(real, [countingScript, ...args.slice(1)])
          : real.createBuiltinCommand(command).buffer.call(real, [...args]),
    })
  },
})

it('end in linear time in Redis: twice as many copy twice the bytes', async () => {
  const openStore = (clock: ManualClock) =>
    redisStore(countingClient, { prefix: freshPrefix(), clock, timeoutMs: 120_000 })
  for (const [termsOf, remains] of [
    [kept, (count: number) => 1_000_000 - 90 * count],
    [refunded, () => 1_000_000],
  ] as const) {
    const copied: number[] = []
    for (const count of [1_000, 2_000]) {
      isCounting.now = false
      const onEnd = () => {
        isCounting.now = true
      }
      await client.del('copied')
      const remaining = await remainingAfter(openStore, 'TOKEN_BUCKET', termsOf, { count, onEnd })
      expect(remaining - remains(count)).toBeLessThanOrEqual(717)
      copied.push(Number(await client.get('copied')))
    }
    const [once = 0, twice = 0] = copied
    // Each entry has 41 bytes. A few numbers are copied in any case.
    expect(once).toBeGreaterThan(41 * 1_000)
    expect(twice).toBeLessThanOrEqual(2 * once)
  }
})
