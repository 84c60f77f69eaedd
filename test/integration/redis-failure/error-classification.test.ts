/** Which errors count as Redis failures, their scope, and their cost while they last. */
import { createHook } from 'node:async_hooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Decision } from '../../../src/core/decision.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { openRedis } from '../../../src/redis/client/open/open-redis.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { startLoad } from '../../fixtures/load/load.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { startProxy } from '../../servers/tcp-proxy.js'

const rule = { id: 'rule', limitScope: 'USER_ID', bands: [{ capacity: 10, window: '30d' }] } satisfies RuleInput

async function open(options: FluxGateOptions, rules: readonly RuleInput[] = [rule]): Promise<FluxGate> {
  const gate = await createFluxGate({ rules: { id: 'api', rules: [...rules] }, ...options })
  onTestFinished(() => gate.close())
  return gate
}

function eventsOf(gate: FluxGate): string[] {
  const events: string[] = []
  gate.on('degraded', () => events.push('degraded'))
  gate.on('recovered', () => events.push('recovered'))
  return events
}

describe('not a Redis failure', async () => {
  const server = await ownRedis()
  const client = clientOf(server)

  it.each([
    ['a bucket of a few numbers', 'TOKEN_BUCKET', (key: string) => client.set(key, 'not mine')],
    ['a log', 'SLIDING_WINDOW_LOG', (key: string) => client.multi().del(key).lpush(key, 'not mine').exec()],
  ] as const)('a key of another type than %s: only its own decisions are degraded', async (_, algorithm, spoil) => {
    const prefix = freshPrefix()
    const store = { uri: server.uri, prefix, timeoutMs: 10_000 }
    const gate = await open({ store }, [{ ...rule, algorithm }])
    const events = eventsOf(gate)
    await gate.check({ userId: 'eve' })
    const [key] = await client.keys(`${prefix}*eve*`)
    await spoil(key as string)
    for (let i = 0; i < 10; i++) {
      const [eve, ada] = await Promise.all([gate.check({ userId: 'eve' }), gate.check({ userId: `ada${i}` })])
      expect(eve).toMatchObject({ allowed: true, degraded: true, remaining: 9 - i })
      expect(ada).toMatchObject({ allowed: true, degraded: false, remaining: 9 })
    }
    for (let i = 0; i < 10; i++) expect(await gate.check({ userId: 'eve' })).toMatchObject({ degraded: true })
    await expect(gate.refund({ userId: 'eve' })).rejects.toMatchObject({ code: 'FLUXGATE_BUCKET_INVALID' })
    expect(await gate.check({ userId: 'bob' })).toMatchObject({ degraded: false, remaining: 9 })
    expect(events).toEqual([])
    expect(await gate.health()).toMatchObject({ status: 'UP' })
    await client.del(key as string)
    expect(await gate.check({ userId: 'eve' })).toMatchObject({ degraded: false, remaining: 9 })
  })

  it('a slow reply within the timeout', async () => {
    const slow = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(slow.port))
    const gate = await open({ store: { uri: `redis://127.0.0.1:${proxy.port}`, timeoutMs: 20_000 } })
    proxy.setDelay(750)
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ degraded: false, remaining: 9 })
  })

  it('an invalid call', async () => {
    const gate = await open({ store: { uri: server.uri, prefix: freshPrefix(), timeoutMs: 10_000 } })
    const events = eventsOf(gate)
    const invalid = { code: 'FLUXGATE_ARGUMENT_INVALID' }
    for (let i = 0; i < 6; i++) {
      await expect(gate.check({ userId: 'ada' }, { permits: -1 })).rejects.toMatchObject(invalid)
      await expect(gate.check(null as never)).rejects.toMatchObject(invalid)
      await expect(gate.refund({ userId: 'ada' }, { permits: 0.5 })).rejects.toMatchObject(invalid)
      await expect(gate.reset({ ruleSetId: 'api', ruleId: 'rule', key: 7 as never })).rejects.toMatchObject(invalid)
      await expect(gate.reset({ ruleSetId: 'api', ruleId: 'other' })).rejects.toMatchObject(invalid)
      await expect(gate.check({ userId: 'ada' }, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/i)
    }
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ degraded: false, remaining: 9 })
    expect(events).toEqual([])
  })

  it('a key resolver that throws or returns an invalid key', async () => {
    const custom: RuleInput = { ...rule, limitScope: 'CUSTOM', keyResolver: 'mine' }
    const answers: unknown[] = [7, {}, Symbol('key')]
    const mine = {
      resolve: (_: unknown, { path }: { path?: string | undefined }) => answers[Number(path?.slice(1))] as string,
    }
    const thrower = {
      resolve: (): string => {
        throw new Error('mine')
      },
    }
    const store = { uri: server.uri, prefix: freshPrefix(), timeoutMs: 10_000 }
    const gate = await open({ store, keyResolvers: { mine, thrower } }, [
      custom,
      { ...custom, id: 'throws', path: '/throws', keyResolver: 'thrower' },
    ])
    const events = eventsOf(gate)
    for (const path of ['/0', '/1', '/2', '/throws', '/0', '/1', '/2', '/throws'])
      await gate.check({ path }).catch(() => {})
    expect(await gate.check({ path: '/9' })).toMatchObject({ degraded: false })
    expect(events).toEqual([])
  })
})

describe('while Redis is down', () => {
  it('decisions open no connection, start no timer and do not wait', async () => {
    const server = await stopAfterTest(startRedis())
    const gate = await open({ store: server.uri, resilience: { timeoutMs: 10_000, openMs: 60_000 } })
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ degraded: false })
    await server.kill()
    const isOpen = () =>
      gate.refund({ userId: 'ada' }).then(
        () => false,
        ({ code }) => code === 'FLUXGATE_STORE_UNREACHABLE',
      )
    await eventually('Redis is known to be unreachable', async () => {
      await gate.check({ userId: 'ada' })
      return isOpen()
    })
    const started: string[] = []
    const hook = createHook({ init: (_, type) => void started.push(type) }).enable()
    let turns = 0
    setImmediate(() => turns++)
    const decisions = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => gate.check({ userId: `user${i % 50}` })),
    )
    hook.disable()
    // All decisions complete in the turn in which they were made, so nothing else can have been started.
    expect(turns).toBe(0)
    expect(new Set(started)).toEqual(new Set(['Immediate', 'PROMISE']))
    expect(started.filter((type) => type === 'Immediate')).toHaveLength(1)
    expect(decisions.every(({ degraded }) => degraded)).toBe(true)
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(500)
  })

  it('cached rejections still apply, and do not count as recovery', async () => {
    const server = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(server.port))
    // Time does not advance, so the cached rejection does not expire.
    const clock = manualClock(Date.now())
    const store = redisStore(`redis://127.0.0.1:${proxy.port}`, { clock, timeoutMs: 10_000, openMs: 100 })
    onTestFinished(() => store.close())
    const gate = await open({ store })
    const events = eventsOf(gate)
    await gate.check({ userId: 'ada' }, { permits: 10 })
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ allowed: false, degraded: false })
    await proxy.refuse()
    proxy.cut()
    expect(await gate.check({ userId: 'bob' })).toMatchObject({ allowed: true, degraded: true })
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ allowed: false, degraded: false })
    expect(events).toEqual(['degraded'])
    await proxy.accept()
    let users = 0
    await eventually('recovery is reported', async () => {
      // A user who has used up the limit is rejected from the cache.
      await gate.check({ userId: `user${users++}` })
      return events.length > 1
    })
    expect(events).toEqual(['degraded', 'recovered'])
  })

  it('few calls are sent while it hangs, however long that lasts and however many callers there are', async () => {
    const server = await stopAfterTest(startRedis())
    const [callers, rounds, timeoutMs] = [20, 50, 100]
    const clock = manualClock(Date.now())
    const connection = openRedis({ uri: server.uri })
    onTestFinished(() => connection.close())
    // The gate adds deadlines and a circuit breaker with a manual clock to such a store.
    const store = new RedisBuckets(connection)
    const gate = await open({ store, clock, resilience: { timeoutMs, openMs: 1_000 } })
    expect(await gate.check({ userId: 'ada' })).toMatchObject({ degraded: false })
    const callsOf = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await server.call('INFO', 'commandstats')))?.[1] ?? 0)
    const before = await callsOf()
    server.pause()
    for (let round = 0; round < rounds; round++) {
      const decisions: Promise<Decision>[] = []
      for (let caller = 0; caller < callers; caller++) {
        decisions.push(gate.check({ userId: `user${caller}` }))
        // Calls of one turn are batched; these should be sent separately.
        await new Promise(setImmediate)
      }
      clock.advance(timeoutMs)
      expect((await Promise.all(decisions)).every(({ degraded }) => degraded)).toBe(true)
    }
    server.resume()
    await eventually('Redis decides again', async () => {
      clock.advance(1_000)
      return !(await gate.check({ userId: 'ada' })).degraded
    })
    // The circuit breaker opens after at most five rounds of failures. From then on at most one call is pending, as a
    // probe.
    expect((await callsOf()) - before).toBeLessThan(5 * callers + rounds)
  })
})

describe('while Redis is read-only', () => {
  it('the failure is reported once, whatever it replies in between', async () => {
    const server = await stopAfterTest(startRedis())
    const gate = await open({ store: { uri: server.uri, timeoutMs: 10_000 }, resilience: { openMs: 20 } })
    const events = eventsOf(gate)
    await gate.check({ userId: 'ada' })
    await server.call('CONFIG', 'SET', 'maxmemory', 1)
    for (let i = 0; i < 20; i++) {
      expect(await gate.check({ userId: 'ada' })).toMatchObject({ degraded: true })
      await gate.check({ userId: 'ada' }, { peek: true })
    }
    expect(events).toEqual(['degraded'])
    await server.call('CONFIG', 'SET', 'maxmemory', 0)
    await eventually('the failure is reported', async () => {
      await gate.check({ userId: 'bob' })
      return events.length > 1
    })
    expect(events).toEqual(['degraded', 'recovered'])
  })
})

describe('two gates on one Redis', () => {
  it('fail independently and have the configured number of connections', async () => {
    const server = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(server.port))
    const prefix = freshPrefix()
    const resilience = { timeoutMs: 10_000, openMs: 100 }
    const one = await open({ store: { uri: `redis://127.0.0.1:${proxy.port}`, prefix, connections: 3 }, resilience })
    const other = await open({ store: { uri: server.uri, prefix, connections: 2 }, resilience })
    const connections = async () => String(await server.call('CLIENT', 'LIST')).split('name=fluxgate').length - 1
    const load = startLoad((caller) => (caller % 2 ? one : other).check({ userId: `user${caller % 4}` }))
    await eventually('all are connected', async () => (await connections()) === 5)
    // Four users with ten permits each, however the two gates share them.
    await eventually('all permits are used', () => load.tally.admitted === 40)
    for (let round = 0; round < 3; round++) {
      await proxy.refuse()
      proxy.cut()
      await eventually('one gate fails', async () => (await one.health()).store.status === 'DOWN')
      expect((await other.health()).store.status).toBe('UP')
      expect((await other.check({ userId: 'ada' })).degraded).toBe(false)
      await proxy.accept()
      await eventually('the gate has recovered', async () => (await one.health()).store.status === 'UP')
      expect(await connections()).toBeLessThanOrEqual(5)
    }
    await eventually('all are connected again', async () => (await connections()) === 5)
    const { errors, admitted } = await load.stop()
    expect(errors).toEqual([])
    expect(admitted).toBe(40)
  })
})
