/** Rules that change while processes apply them. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { RuleStore } from '../../../src/core/contracts/rule-store.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { GateEvents } from '../../../src/gate/events.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { fileRuleStore } from '../../../src/rules/file/file-rule-store.js'
import { type RedisRuleStoreOptions, redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { manualClock } from '../../../src/testing/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { startProxy } from '../../servers/tcp-proxy.js'
import { startRuleProcess } from './editor-processes.js'

const { uri } = sharedRedis()
const client = new Redis(uri)
afterAll(() => client.disconnect())

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})
const closing = <T extends { close(): Promise<void> }>(one: T): T => {
  opened.push(one)
  return one
}

const by = 'ann'
const rule = (id: string, capacity: number, more: object = {}) => ({
  id,
  bands: [{ capacity, window: '1h' }],
  ...more,
})
const context = { clientIp: '192.0.2.1' }

/** A location in Redis with the rule `all` of the rule set `api`. */
async function place(where: string | object = uri, given: RedisRuleStoreOptions = {}) {
  const prefix = freshPrefix()
  const options = { prefix, channel: `${prefix}reload`, ...given }
  const open = (more: RedisRuleStoreOptions = {}): RuleStore => closing(redisRuleStore(where, { ...options, ...more }))
  const store = open()
  await store.putRuleSet({ id: 'api', rules: [rule('all', 10)] }, { by })
  return { open, store, ...options }
}

const gateWith = async (options: FluxGateOptions): Promise<FluxGate> => closing(await createFluxGate(options))
const limitOf = async (gate: FluxGate) => (await gate.check(context, { peek: true })).limit

/** Resolves with the next reload that satisfies the predicate. */
const reloaded = (gate: FluxGate, holds: (event: GateEvents['reload']) => boolean = ({ changed }) => changed) =>
  new Promise<GateEvents['reload']>((resolve) => {
    const stop = gate.on('reload', (event) => {
      if (!holds(event)) return
      stop()
      resolve(event)
    })
  })

describe('four processes on one Redis', () => {
  it('apply a change made through one of them', async ({ annotate }) => {
    const { prefix, channel } = await place()
    // Only the announcement can spread a change while the test runs.
    const pollingIntervalMs = 3_600_000
    const processes = Array.from({ length: 4 }, () => startRuleProcess({ uri, prefix, channel, pollingIntervalMs }))
    for (const one of processes)
      expect(await one.reported(({ limit }) => limit === 10)).toMatchObject({ reload: 'PUBSUB' })
    const times: number[] = []
    for (const limit of [20, 30, 40, 50]) {
      const at = Date.now()
      processes[limit % 3]?.tell({ put: limit })
      const reports = await Promise.all(processes.map((one) => one.reported((report) => report.limit === limit)))
      times.push(Math.max(...reports.map((report) => report.at)) - at)
    }
    await annotate(`in effect in the last of four processes after ${times.join(', ')} ms`)
  })

  it('apply it by polling if the announcement is lost', async ({ annotate }) => {
    const { prefix, channel, open } = await place()
    const processes = Array.from({ length: 4 }, () =>
      startRuleProcess({ uri, prefix, channel, pollingIntervalMs: 500 }),
    )
    for (const one of processes) await one.reported(({ limit }) => limit === 10)
    const at = Date.now()
    // Announced on another channel.
    await open({ channel: `${prefix}elsewhere` }).putRule('api', rule('all', 20), { by })
    const reports = await Promise.all(processes.map((one) => one.reported(({ limit }) => limit === 20)))
    const tookMs = Math.max(...reports.map((report) => report.at)) - at
    await annotate(`in effect after ${tookMs} ms with an interval of 500 ms`)
  })
})

describe('an announcement', () => {
  it.each(['*', '', 'api', '{"ruleSetId":"api","fullReload":false,"timestamp":1,"source":"x"}', '{"broken', '\u0000'])(
    '%j makes every listener reload the rules',
    async (message) => {
      const { open, channel, prefix } = await place()
      const gate = await gateWith({ rules: open(), reload: { strategy: 'PUBSUB', pollingInterval: '1h' } })
      await reloaded(gate, () => true)
      // Bypasses the store, so that nothing else announces it.
      const key = `${prefix}:{${prefix}:rules}:`
      await client.hset(`${key}rules:api`, 'all', JSON.stringify(rule('all', 77)))
      await client.set(`${key}latest`, Math.random())
      const changed = reloaded(gate)
      await client.publish(channel, message)
      await changed
      expect(await limitOf(gate)).toBe(77)
    },
  )

  it('contains the change, its time and its source as JSON', async () => {
    const { store, channel } = await place(uri, { clock: manualClock(1_790_000_000_000) })
    const listener = new Redis(uri)
    closing({ close: async () => listener.disconnect() })
    await listener.subscribe(channel)
    const heard = new Promise<string>((resolve) => listener.once('message', (_, message) => resolve(message)))
    await store.putRule('api', rule('b', 1), { by })
    expect(JSON.parse(await heard)).toEqual({
      ruleSetId: 'api',
      fullReload: false,
      timestamp: 1_790_000_000_000,
      source: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  const clients: Readonly<Record<string, () => Promise<readonly [client: object, end: () => unknown]>>> = {
    async ioredis() {
      const client = new Redis(uri)
      return [client, () => client.disconnect()]
    },
    async 'node-redis'() {
      const client = await createClient({ url: uri }).connect()
      return [client, () => client.destroy()]
    },
    async 'node-redis 4'() {
      const client = await createClient4({ url: uri }).connect()
      return [client, () => client.disconnect()]
    },
  }
  it.each(Object.entries(clients))('is received through a %s client of the caller', async (_, connect) => {
    const [own, end] = await connect()
    closing({ close: async () => void (await end()) })
    const { open, store } = await place(own)
    const gate = await gateWith({ rules: open(), reload: { pollingInterval: '1h' } })
    expect((await gate.health()).rules.reload).toBe('PUBSUB')
    await reloaded(gate, () => true)
    const changed = reloaded(gate)
    await store.putRule('api', rule('all', 20), { by })
    await changed
    expect(await limitOf(gate)).toBe(20)
  })
})

describe('a lost subscription', () => {
  it('is restored, and missed changes are loaded once', async () => {
    const proxy = await stopAfterTest(startProxy(sharedRedis().port))
    const { prefix, channel, store } = await place()
    const rules = closing(redisRuleStore(`redis://${proxy.host}:${proxy.port}`, { prefix, channel }))
    const gate = await gateWith({ rules, reload: { pollingInterval: '1h' } })
    await reloaded(gate, () => true)
    await proxy.refuse()
    proxy.cut()
    await store.putRule('api', rule('all', 20), { by })
    expect(await limitOf(gate)).toBe(10)
    const changed = reloaded(gate)
    await proxy.accept()
    await changed
    expect(await limitOf(gate)).toBe(20)
  })

  it('is replaced by polling, and health reports the cause', async () => {
    const server = await stopAfterTest(startRedis())
    const { open } = await place(server.uri)
    const gate = await gateWith({ rules: open(), reload: { pollingIntervalMs: 100 } })
    await server.kill()
    await eventually('health reports stale rules', async () => (await gate.health()).rules.status === 'STALE')
    expect(await gate.health()).toMatchObject({ status: 'DEGRADED', rules: { reload: 'PUBSUB' } })
    expect((await gate.health()).rules.error).toMatch(/^Rules in Redis .* could not be read: /)
    expect(await limitOf(gate)).toBe(10)
  })

  it('of a Redis that was emptied keeps the current rules', async () => {
    const server = await stopAfterTest(startRedis())
    const { open, store } = await place(server.uri)
    const gate = await gateWith({ rules: open(), reload: { pollingIntervalMs: 100 } })
    await server.call('FLUSHALL')
    const { error } = await reloaded(gate, (event) => event.error !== null)
    expect(error?.message).toContain('had rules and is empty now. Restore the rules.')
    expect(await limitOf(gate)).toBe(10)
    await store.putRuleSet({ id: 'api', rules: [rule('all', 30)] }, { by })
    await eventually('the restored rules apply', async () => (await limitOf(gate)) === 30)
  })
})

describe('a reload', () => {
  it('30 times without a change reloads nothing and resets no bucket', async () => {
    const clock = manualClock(1_790_000_000_000)
    const { open } = await place()
    const reload = { strategy: 'POLLING', pollingIntervalMs: 1_000 } as const
    const gate = await gateWith({ rules: open(), clock, reload })
    const { changedAt } = (await gate.health()).rules
    await gate.check(context)
    const events: unknown[] = []
    gate.on('reload', (event) => events.push(event))
    for (let poll = 0; poll < 30; poll++) {
      clock.advance(1_100)
      await eventually('the rules are read', async () => (await gate.health()).rules.loadedAt === clock.now())
      // The next poll is scheduled when the previous one is complete.
      await new Promise(setImmediate)
    }
    expect(events).toEqual([])
    expect((await gate.health()).rules.changedAt).toBe(changedAt)
    expect((await gate.check(context)).remaining).toBe(8)
  })

  it('completes before an edit in the same process is confirmed', async () => {
    const { store } = await place()
    const gate = await gateWith({ rules: store, reload: { strategy: 'NONE' } })
    for (const limit of [20, 30, 40]) {
      await store.putRule('api', rule('all', limit), { by })
      expect(await limitOf(gate)).toBe(limit)
    }
    await store.deleteRuleSet('api', { by })
    expect((await gate.check(context)).reason).toBe('NO_RULE_SET')
  })

  it('keeps the current rules if the new ones are invalid, until they are fixed', async () => {
    const { open, prefix } = await place()
    const gate = await gateWith({ rules: open(), reload: { strategy: 'NONE' } })
    const key = `${prefix}:{${prefix}:rules}:`
    for (const broken of ['{"id":"all"}', 'not JSON']) {
      await client.hset(`${key}rules:api`, 'all', broken)
      await client.set(`${key}latest`, Math.random())
      await expect(gate.reload()).rejects.toMatchObject({ code: expect.stringMatching(/^FLUXGATE_RULES_/) })
      expect((await gate.health()).rules.status).toBe('STALE')
      expect(await limitOf(gate)).toBe(10)
    }
    await client.hset(`${key}rules:api`, 'all', JSON.stringify(rule('all', 20)))
    await client.set(`${key}latest`, Math.random())
    await gate.reload()
    expect((await gate.health()).rules.status).toBe('UP')
    expect(await limitOf(gate)).toBe(20)
  })

  it('under load fails no request, never applies a partial rule set, and keeps the buckets of unchanged rules', async () => {
    const { open, store } = await place()
    const many = { capacity: 1_000_000, refillTokens: 1, window: '1h' }
    const labelled = (label: string) => [
      { id: 'a', bands: [{ ...many, label }] },
      { id: 'b', bands: [{ ...many, label }] },
      { id: 'same', bands: [many] },
    ]
    await store.putRuleSet({ id: 'api', rules: labelled('v0') }, { by })
    const gate = await gateWith({ rules: open() })
    const seen = new Set<string>()
    let checks = 0
    let isOver = false
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!isOver) {
          const { allowed, bands } = await gate.check(context)
          checks += 1
          expect(allowed).toBe(true)
          expect(bands.map(({ ruleId }) => ruleId)).toEqual(['a', 'b', 'same'])
          expect(bands[0]?.label).toBe(bands[1]?.label)
          seen.add(String(bands[0]?.label))
          await new Promise(setImmediate)
        }
      }),
    )
    for (let i = 1; i <= 20; i++) {
      const changed = reloaded(gate)
      await store.putRuleSet({ id: 'api', rules: labelled(`v${i}`) }, { by })
      await changed
    }
    isOver = true
    await load
    expect(seen.size).toBeGreaterThan(1)
    const { bands } = await gate.check(context, { peek: true })
    expect(bands[2]?.remaining).toBe(1_000_000 - checks - 1)
  })
})

describe('removing a rule', () => {
  it.each(['memory', 'redis'])('resets its own buckets and no others, with buckets in %s', async (kind) => {
    const { store, prefix } = await place()
    const options = kind === 'memory' ? {} : { store: { uri, prefix } }
    const gate = await gateWith({ rules: store, ...options, resilience: { timeoutMs: 20_000 } })
    const rules = [rule('gone', 5), rule('stays', 100)]
    await store.putRuleSet({ id: 'api', rules }, { by })
    const remaining = async () => (await gate.check(context, { peek: true })).bands.map((band) => band.remaining)
    for (let i = 0; i < 3; i++) await gate.check(context)
    expect(await remaining()).toEqual([1, 96])
    await store.deleteRule('api', 'gone', { by })
    expect(await remaining()).toEqual([96])
    await store.putRule('api', rule('gone', 5), { by })
    expect(await remaining()).toEqual([4, 96])
  })

  it('a reset of one rule set does not affect another whose name starts with its name', async () => {
    const { prefix } = await place()
    const rules = ['api', 'api:v2', 'api:all'].map((id) => ({ id, rules: [rule('all', 5)] }))
    const gate = await gateWith({ rules, store: { uri, prefix }, resilience: { timeoutMs: 20_000 } })
    const remaining = async (ruleSetId: string) => (await gate.check(context, { ruleSetId, peek: true })).remaining
    for (const { id } of rules) await gate.check(context, { ruleSetId: id })
    await gate.reset({ ruleSetId: 'api' })
    expect(await Promise.all(rules.map(({ id }) => remaining(id)))).toEqual([4, 3, 3])
  })
})

describe('four processes that edit one file', () => {
  it('lose no edit', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
    const file = join(directory, 'rules.yaml')
    await writeFile(
      file,
      '# Everybody\nid: api\nrules:\n  - { id: all, bands: [{ capacity: 10, window: 1h }] } # mine\n',
    )
    const processes = Array.from({ length: 4 }, () => startRuleProcess({ file }))
    for (const one of processes) await one.reported(({ limit }) => limit === 10)
    for (const [n, one] of processes.entries()) one.tell({ add: Array.from({ length: 5 }, (_, i) => `r${n}-${i}`) })
    for (const one of processes) await one.reported(({ added }) => added === 5)
    const store = closing(fileRuleStore(file))
    const set = await store.getRuleSet('api')
    expect(set?.rules).toHaveLength(21)
    expect(set?.version).toBe(21)
    expect((await store.history('api', { limit: 100 })).items).toHaveLength(21)
    expect(await readdir(directory)).toHaveLength(3)
    await rm(directory, { recursive: true })
  })
})

describe('rules in another store', () => {
  async function inFile() {
    const directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
    closing({ close: () => rm(directory, { recursive: true }) })
    const file = join(directory, 'rules.json')
    await writeFile(file, JSON.stringify({ id: 'api', rules: [rule('all', 10)] }))
    return file
  }
  /** Only announcements trigger a reload: this strategy does not watch the file. */
  const announced = (prefix: string) =>
    ({ strategy: 'PUBSUB', channel: `${prefix}reload`, pollingInterval: '1h' }) as const

  it('are announced through the Redis of the buckets', async () => {
    const [file, prefix] = [await inFile(), freshPrefix()]
    const store = closing(fileRuleStore(file))
    // Settings of the store that are not options of a connection.
    const own = { connectTimeoutMs: 5_000, leaseShare: 0.2, cachedRejections: true }
    const options = { store: { uri, prefix, ...own }, reload: announced(prefix) }
    const here = await gateWith({ ...options, rules: store })
    const there = await gateWith({ ...options, rules: file })
    await reloaded(there, () => true)
    expect((await there.health()).rules.reload).toBe('PUBSUB')
    const changed = reloaded(there)
    await store.putRule('api', rule('all', 20), { by })
    expect(await limitOf(here)).toBe(20)
    await changed
    expect(await limitOf(there)).toBe(20)
  })

  it('are polled by a process that may not subscribe, even if another polls for all', async () => {
    const server = await stopAfterTest(startRedis())
    await server.call('ACL', 'SETUSER', 'deaf', 'on', '>secret', '~*', '+@all', 'resetchannels')
    const [file, reload] = [await inFile(), { strategy: 'PUBSUB', pollingIntervalMs: 100 } as const]
    const poller = await gateWith({ rules: file, store: server.uri, reload })
    await reloaded(poller, () => true)
    const deaf = await gateWith({ rules: file, store: `redis://deaf:secret@${server.host}:${server.port}`, reload })
    const changed = reloaded(deaf)
    await writeFile(file, JSON.stringify({ id: 'api', rules: [rule('all', 20)] }))
    await changed
    expect(await limitOf(deaf)).toBe(20)
  })

  it('cannot be announced without Redis', async () => {
    const file = await inFile()
    await expect(createFluxGate({ rules: file, reload: { strategy: 'PUBSUB' } })).rejects.toMatchObject({
      code: 'FLUXGATE_CONFIG_INVALID',
      message: `The reload strategy PUBSUB needs a Redis store given by URI or options for rules from ${file}. Configure such a store, or use the reload strategy AUTO.`,
    })
  })
})

describe('a rule that this process cannot use', () => {
  it('is rejected by the store that belongs to its gate', async () => {
    const { store } = await place()
    const gate = await createFluxGate({ rules: store, keyResolvers: { tenant: () => 'x' } })
    const custom = (keyResolver: string) => rule('custom', 1, { limitScope: 'CUSTOM', keyResolver })
    await expect(store.putRule('api', custom('tennant'), { by })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [{ path: 'keyResolver', message: 'key resolver "tennant" is not registered; registered: "tenant"' }],
    })
    await expect(store.putRuleSet({ id: 'web', rules: [custom('x')] }, { by })).rejects.toMatchObject({
      errors: [{ path: 'ruleSets[0].rules[0].keyResolver' }],
    })
    await store.putRule('api', custom('tenant'), { by })
    await gate.close()
    // A store without a gate cannot know.
    await store.putRule('api', custom('tennant'), { by })
  })
})
