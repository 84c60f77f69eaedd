/** FluxGate's own uses of its locks. */
import { describe, expect, it } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { connectRedis } from '../../../src/redis/client/connect-redis.js'
import type { RedisConnection } from '../../../src/redis/client/connection.js'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { parseRuleSets } from '../../../src/rules/schema/parse-rules.js'
import { importRules } from '../../../src/rules/store/copy-rules.js'
import { OverrideCleanup } from '../../../src/stores/redis/overrides/import/cleanup.js'
import { OverrideImport } from '../../../src/stores/redis/overrides/import/override-import.js'
import { overrideHash } from '../../../src/stores/redis/overrides/keys.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { closedAfterTest, openLock } from './test-locks.js'

const bands = [{ capacity: 10, window: '1m' }]
const setsOf = (owner: string) => ({
  ruleSets: Array.from({ length: 15 }, (_, i) => ({ id: `${owner}-${i}`, rules: [{ id: 'all', bands }] })),
})
const open = (prefix: string) =>
  closedAfterTest(redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}reload` }))

describe('imports into a rule store in Redis', () => {
  it('run one after another: none of several concurrent imports fails, and the result is one complete import', async () => {
    const prefix = freshPrefix()
    const owners = ['ann', 'bob', 'cem', 'dee']
    await Promise.all(
      owners.map((owner) => importRules(setsOf(owner), open(prefix), { by: owner, removeOthers: true })),
    )
    const { items } = await open(prefix).listRuleSets({ limit: 100 })
    const ids = items.map(({ id }) => id)
    const [last = ''] = ids[0]?.split('-') ?? []
    expect(owners).toContain(last)
    expect(ids.sort()).toEqual(
      setsOf(last)
        .ruleSets.map(({ id }) => id)
        .sort(),
    )
  })

  it('stop before the next rule set when they lose the lock', async () => {
    const prefix = freshPrefix()
    const store = open(prefix)
    const lock = openLock({ prefix })
    const stopped = store.alone?.(async (signal) => {
      await lock.forceUnlock('rules:import')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      signal.throwIfAborted()
    })
    await expect(stopped).rejects.toMatchObject({ code: 'FLUXGATE_LOCK_LOST' })
  })
})

describe('rules in another store, announced through the Redis of the buckets', () => {
  /** Rules that change without an announcement, and the number of loads per process. */
  function place() {
    const looks = new Map<string, number>()
    let capacity = 10
    const provider = (process: string) => ({
      source: 'elsewhere',
      async load() {
        looks.set(process, (looks.get(process) ?? 0) + 1)
        return parseRuleSets([{ id: 'api', rules: [{ id: 'all', bands: [{ capacity, window: '1m' }] }] }])
      },
    })
    const change = (to: number): void => {
      capacity = to
    }
    return { looks, provider, change }
  }

  it('are polled by one process, which announces changes, and by another after it has closed', async () => {
    const { looks, provider, change } = place()
    const channel = `${freshPrefix()}reload`
    const reload = { strategy: 'PUBSUB', channel, pollingIntervalMs: 40 } as const
    const start = async (name: string) =>
      closedAfterTest(await createFluxGate({ rules: provider(name), store: sharedRedis().uri, reload }))
    const gates = new Map(await Promise.all(['a', 'b', 'c'].map(async (name) => [name, await start(name)] as const)))
    const limits = () =>
      Promise.all([...gates.values()].map(async (gate) => (await gate.check({}, { peek: true })).limit))
    /** Resolves with the process that has polled 20 times in a row while no other process polled. */
    const poller = (): Promise<string> => {
      let before = new Map(looks)
      const since = (name: string): number => (looks.get(name) ?? 0) - (before.get(name) ?? 0)
      return eventually('one process polls alone', () => {
        const active = [...gates.keys()].filter((name) => since(name) > 0)
        // A process also loads the rules when it starts to listen and when another takes over.
        if (active.length > 1) before = new Map(looks)
        return active.find((name) => since(name) >= 20)
      })
    }
    const first = await poller()
    change(20)
    await eventually('all processes have the new limit', async () => (await limits()).every((limit) => limit === 20))
    await gates.get(first)?.close()
    gates.delete(first)
    expect([...gates.keys()]).toContain(await poller())
    change(30)
    await eventually('all processes have the new limit', async () => (await limits()).every((limit) => limit === 30))
  })
})

describe('leftovers of override imports', () => {
  const rule = { ruleSetId: 'api', ruleId: 'keys' }

  /** An import whose process ended after this many overrides. */
  async function deadImport(connection: RedisConnection, prefix: string, overrides: number): Promise<void> {
    const import_ = new OverrideImport(connection, prefix, rule, 1)
    await import_.start()
    const generation = await connection.call(`${prefix}:{overrides}:live`, [
      'HGET',
      `${prefix}:{overrides}:live`,
      'next',
    ])
    for (let i = 0; i < overrides; i++) {
      const hash = overrideHash(prefix, rule, Number(generation), `key-${i}`)
      await connection.call(hash, ['HSET', hash, `key-${i}`, Buffer.of(2)])
    }
  }

  it('are removed by one of several processes, and the current overrides stay', async () => {
    const server = await stopAfterTest(startRedis())
    const [prefix, connection] = ['kept', connectRedis(server.uri, 10_000)]
    const keepers = [1, 2, 3].map(() => new OverrideCleanup(connection, prefix))
    try {
      const live = new OverrideImport(connection, prefix, rule, 1)
      await live.start()
      const hash = overrideHash(prefix, rule, 1, 'kept')
      await connection.call(hash, ['HSET', hash, 'kept', Buffer.of(2)])
      await live.activate(1, 0)
      await deadImport(connection, prefix, 50)
      const before = Number(await server.call('DBSIZE'))
      // No import has been idle for that long.
      expect(await Promise.all(keepers.map((keeper) => keeper.run(60_000)))).toEqual([0, 0, 0])
      expect(await server.call('DBSIZE')).toBeGreaterThanOrEqual(before)
      const removed = await Promise.all(keepers.map((keeper) => keeper.run(-1_000)))
      expect(removed.toSorted()).toEqual([0, 0, 1])
      expect(await server.call('KEYS', `${prefix}:*:overrides:*`)).toEqual([hash])
      expect(await server.call('ZCARD', `${prefix}:{overrides}:owed`)).toBe(0)
      expect(await connection.call(hash, ['HGET', hash, 'kept'])).toBe('\x02')
    } finally {
      await connection.close()
    }
  })

  it('an import that resumes after its cleanup changes nothing', async () => {
    const server = await stopAfterTest(startRedis())
    const [prefix, connection] = ['back', connectRedis(server.uri, 10_000)]
    try {
      const import_ = new OverrideImport(connection, prefix, rule, 1)
      await import_.start()
      expect(await new OverrideCleanup(connection, prefix).run(-1_000)).toBe(1)
      await expect(import_.activate(0, 0)).rejects.toThrow(/nothing has changed/)
      await import_.discard()
      expect(await server.call('HGET', `${prefix}:{overrides}:live`, '["api","keys"]')).toBeNull()
    } finally {
      await connection.close()
    }
  })
})
