/** Gates, limiters, configuration files and the command line with limits in Redis. */
import { writeFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { parseRuleSets } from '../../../src/rules/schema/parse-rules.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { commandLine } from '../../e2e/command-line.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startCluster } from '../../servers/cluster.js'
import { startRedis } from '../../servers/redis-server.js'
import { startSentinel } from '../../servers/sentinel.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const { uri } = sharedRedis()
const client = new Redis(uri)
afterAll(() => client.quit())

const opened: { close(): Promise<void> }[] = []
afterEach(() => Promise.all(opened.splice(0).map((one) => one.close())))
const closing = <T extends { close(): Promise<void> }>(one: T): T => {
  opened.push(one)
  return one
}

const rule = (capacity: number, given: Partial<RuleInput> = {}): RuleInput => ({
  id: 'rule',
  bands: [{ capacity, window: '1h' }],
  ...given,
})
const gateOn = async (store: FluxGateOptions['store'], rules: readonly RuleInput[] = [rule(5)]): Promise<FluxGate> =>
  closing(
    await createFluxGate({ rules: { id: 'api', rules }, resilience: { timeoutMs: 20_000 }, ...(store && { store }) }),
  )
const ask = (gate: FluxGate, times: number, clientIp = '203.0.113.7') =>
  Promise.all(Array.from({ length: times }, () => gate.check({ clientIp })))
const allowed = (decisions: readonly { allowed: boolean; degraded: boolean }[]): number => {
  expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
  return decisions.filter((decision) => decision.allowed).length
}

describe('an ambiguous path', () => {
  it('counts under each interpretation, in one decision', async () => {
    const byPath = rule(2, { limitScope: 'COMPOSITE', compositeKeyFields: ['PATH'] })
    const gate = await gateOn(redisStore(uri, { prefix: freshPrefix() }), [byPath])
    const decisions = []
    for (let i = 0; i < 3; i++) decisions.push(await gate.check({ path: `/login;v=${i}` }))
    expect(allowed(decisions)).toBe(2)
    expect(decisions[1]?.bands.map(({ key, remaining }) => [key, remaining])).toEqual([
      ['/login;v=1', 1],
      ['/login', 0],
    ])
  })
})

describe('two gates that name the same Redis share its limits', () => {
  async function share(store: FluxGateOptions['store']): Promise<void> {
    const gates = [await gateOn(store), await gateOn(store)]
    expect(allowed((await Promise.all(gates.map((gate) => ask(gate, 20)))).flat())).toBe(5)
  }

  it('by its URI', async () => {
    const server = await stopAfterTest(startRedis({ password: 'se cret' }))
    await share(server.uri)
    expect(await server.call('KEYS', 'fluxgate:{203.0.113.7}:*')).toHaveLength(1)
  })

  it('by its URI and a prefix', () => share({ uri, prefix: freshPrefix() }))

  it('by nodes of a cluster', async () => {
    const cluster = await stopAfterTest(startCluster())
    await share({ clusterNodes: cluster.nodes.slice(0, 2).map(({ host, port }) => `${host}:${port}`) })
    const gate = await gateOn(
      { clusterNodes: cluster.nodes.map(({ host, port }) => ({ host, port })), prefix: 'wide' },
      [rule(5), rule(8, { id: 'all', limitScope: 'GLOBAL' })],
    )
    const asked = await Promise.all(['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => ask(gate, 4, ip)))
    expect(allowed(asked.flat())).toBeLessThanOrEqual(8)
    expect(
      allowed((await Promise.all([1, 2, 3, 4].map((i) => ask(gate, 9, `10.0.1.${i}`)))).flat()),
    ).toBeLessThanOrEqual(8)
  })

  it('by sentinels', async () => {
    const group = await stopAfterTest(startSentinel())
    await share({
      sentinels: group.sentinels.map(({ host, port }) => `${host}:${port}`),
      sentinelName: group.name,
    })
  })

  it('by a store over a client of the caller, which stays open', async () => {
    const own = createClient({ url: uri })
    await own.connect()
    const prefix = freshPrefix()
    const gates = [
      await gateOn(redisStore(client, { prefix, timeoutMs: 20_000 })),
      await gateOn(redisStore(own, { prefix, timeoutMs: 20_000 })),
    ]
    expect(allowed((await Promise.all(gates.map((gate) => ask(gate, 20)))).flat())).toBe(5)
    for (const gate of gates) await gate.close()
    expect([await client.ping(), await own.ping()]).toEqual(['PONG', 'PONG'])
    await own.close()
  })

  it('by a fluxgate.yaml', async () => {
    const { file, remove } = commandLine()
    const prefix = freshPrefix()
    try {
      writeFileSync(file('rules.yaml'), 'id: api\nrules:\n  - { id: rule, bands: [{ capacity: 5, window: 1h }] }\n')
      writeFileSync(
        file('fluxgate.yaml'),
        `store:\n  uri: ${uri}\n  prefix: "${prefix}"\n  timeoutMs: 20000\nrules:\n  path: ${file('rules.yaml')}\n`,
      )
      const gates = [closing(await createFluxGate(file('fluxgate.yaml'))), await gateOn({ uri, prefix })]
      expect(allowed((await Promise.all(gates.map((gate) => ask(gate, 20)))).flat())).toBe(5)
    } finally {
      remove()
    }
  })

  it('on the command line', async () => {
    const { file, fluxgate, remove } = commandLine()
    const prefix = freshPrefix()
    try {
      writeFileSync(file('rules.yaml'), 'id: api\nrules:\n  - { id: rule, bands: [{ capacity: 3, window: 1h }] }\n')
      writeFileSync(file('fluxgate.yaml'), `store:\n  uri: ${uri}\n  prefix: "${prefix}"\n  timeoutMs: 20000\n`)
      const check = (...more: string[]) => fluxgate(['check', '--config', 'fluxgate.yaml', '--ip', '10.0.0.1', ...more])
      const first = check('--repeat', '2')
      expect([first.status, JSON.parse(first.stdout)]).toMatchObject([
        0,
        { allowed: true, remaining: 1, degraded: false },
      ])
      // Another process, on the same buckets.
      const second = check('--repeat', '2', '--json')
      expect([second.status, JSON.parse(second.stdout)]).toMatchObject([
        1,
        [{ allowed: true }, { allowed: false, limit: 3 }],
      ])
      expect(await client.keys(`${prefix}:{10.0.0.1}:*`)).toHaveLength(1)
    } finally {
      remove()
    }
  })
})

describe('limiters', () => {
  /** The first call may find no connection yet and is then degraded. */
  const connected = (limiter: Limiter) => expect.poll(async () => (await limiter.peek('warm')).degraded).toBe(false)

  it('on the same Redis share their limits', async () => {
    const server = await stopAfterTest(startRedis())
    const limiters = [1, 2].map(() => closing(createLimiter({ capacity: 5, window: '1h', store: server.uri })))
    for (const limiter of limiters) await connected(limiter)
    const asked = await Promise.all(
      limiters.flatMap((limiter) => Array.from({ length: 10 }, () => limiter.consume('a'))),
    )
    expect(allowed(asked)).toBe(5)
    await limiters[0]?.refund('a', 2)
    expect(await limiters[1]?.peek('a')).toMatchObject({ allowed: true, remaining: 1 })
    await limiters[1]?.reset('a')
    expect(await limiters[0]?.consume('a')).toMatchObject({ allowed: true, remaining: 4 })
    expect(() => limiters[0]?.consumeSync('a')).toThrow(expect.objectContaining({ code: 'FLUXGATE_SYNC_UNSUPPORTED' }))
  })

  it('do not close a store of the caller', async () => {
    const store = closing(redisStore(uri, { prefix: freshPrefix(), timeoutMs: 20_000 }))
    const limiter = createLimiter({ capacity: 5, window: '1h', store })
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: false })
    await limiter.close()
    const other = createLimiter({ capacity: 5, window: '1h', store })
    expect(await other.consume('a')).toMatchObject({ allowed: true, degraded: false, remaining: 3 })
  })

  it('that close reject and refund waiting requests', async () => {
    const server = await stopAfterTest(startRedis())
    const options = { capacity: 2, window: '1h', store: server.uri }
    const [closes, stays] = [createLimiter(options), closing(createLimiter(options))]
    for (const limiter of [closes, stays]) await connected(limiter)
    await closes.consume('a', 2)
    const before = await stays.peek('a')
    const waiting = closes.wait('a', { maxWaitMs: 10_000_000 })
    const rejected = expect(waiting).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await closes.peek('a')
    await closes.close()
    await rejected
    const after = await stays.peek('a')
    expect(after.degraded).toBe(false)
    expect(after.resetAt).toBe(before.resetAt)
  })
})

describe('a reset', () => {
  it('of one key removes its data only', async () => {
    const prefix = freshPrefix()
    const gate = await gateOn({ uri, prefix }, [rule(2), rule(2, { id: 'other' })])
    await Promise.all(['10.0.0.1', '10.0.0.2'].map((ip) => ask(gate, 2, ip)))
    expect(await client.keys(`${prefix}:{*`)).toHaveLength(4)
    await gate.reset({ ruleSetId: 'api', ruleId: 'rule', key: '10.0.0.1' })
    expect(await client.keys(`${prefix}:{10.0.0.1}:*`)).toHaveLength(1)
    await gate.reset({ ruleSetId: 'api', key: '10.0.0.1' })
    expect(await client.keys(`${prefix}:{10.0.0.1}:*`)).toEqual([])
    expect(allowed(await ask(gate, 3, '10.0.0.1'))).toBe(2)
    expect(allowed(await ask(gate, 3, '10.0.0.2'))).toBe(0)
  })

  it('of a rule or rule set applies here at once and in other gates within a second, however many buckets there are', async () => {
    const server = await stopAfterTest(startRedis())
    const rules = [rule(2), rule(3, { id: 'other', limitScope: 'GLOBAL' })]
    const [here, there] = [await gateOn(server.uri, rules), await gateOn(server.uri, rules)]
    const remaining = async (gate: FluxGate) => {
      const { bands } = await gate.check({ clientIp: '10.0.0.1' }, { peek: true })
      return Object.fromEntries(bands.map((one) => [one.ruleId, one.remaining]))
    }
    expect(allowed(await ask(here, 2, '10.0.0.1'))).toBe(2)
    expect(await remaining(there)).toEqual({ rule: 0, other: 1 })
    const commands = async () => String(await server.call('INFO', 'commandstats'))
    await here.reset({ ruleSetId: 'api', ruleId: 'rule' })
    expect(await remaining(here)).toEqual({ rule: 1, other: 0 })
    await expect.poll(() => remaining(there)).toEqual({ rule: 1, other: 0 })
    await there.reset({ ruleSetId: 'api' })
    expect(await remaining(there)).toEqual({ rule: 1, other: 2 })
    await expect.poll(() => remaining(here)).toEqual({ rule: 1, other: 2 })
    expect(await commands()).not.toMatch(/cmdstat_(keys|scan|del|unlink|flush)/)
    const keys = (await server.call('KEYS', '*')) as string[]
    expect(keys).toContain('fluxgate:resets')
    for (const key of keys) expect([key, Number(await server.call('PTTL', key)) > 0]).toEqual([key, true])
    // A gate that starts later applies it as well.
    expect(await remaining(await gateOn(server.uri, rules))).toEqual({ rule: 1, other: 2 })
  })

  it('of an unknown rule throws', async () => {
    const gate = await gateOn({ uri, prefix: freshPrefix() })
    await expect(gate.reset({ ruleSetId: 'api', ruleId: 'nothing' })).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
    })
  })
})

describe('an edited rule', () => {
  /** A gate whose rules can be replaced. */
  async function editable(resetBucketsOnReload: boolean, first: readonly RuleInput[]) {
    let rules = first
    const provider = {
      source: 'a test',
      load: async () => parseRuleSets({ ruleSets: [{ id: 'api', rules }] }),
    }
    const gate = closing(
      await createFluxGate({
        rules: provider,
        store: { uri, prefix: freshPrefix() },
        reload: { strategy: 'NONE', resetBucketsOnReload },
        resilience: { timeoutMs: 20_000 },
      }),
    )
    const look = async () => {
      const { bands, degraded } = await gate.check({ clientIp: '10.0.0.1' }, { peek: true })
      expect(degraded).toBe(false)
      return Object.fromEntries(bands.map((one) => [one.ruleId, one.remaining]))
    }
    return {
      gate,
      look,
      edit: (next: readonly RuleInput[]) => {
        rules = next
        return gate.reload()
      },
    }
  }
  const bands = (capacity: number, given: object = {}) => [{ label: 'b', capacity, window: '1h', ...given }]

  it('starts with new buckets; the other rules of its set keep theirs', async () => {
    const untouched = rule(10, { id: 'untouched' })
    const { gate, look, edit } = await editable(true, [rule(10, { bands: bands(10) }), untouched])
    await ask(gate, 5, '10.0.0.1')
    expect(await look()).toEqual({ rule: 4, untouched: 4 })
    await edit([rule(10, { bands: bands(8), description: 'less' }), untouched])
    expect(await look()).toEqual({ rule: 7, untouched: 4 })
    // A changed description does not change the bands.
    await ask(gate, 1, '10.0.0.1')
    await edit([rule(10, { bands: bands(8), description: 'less than before' }), untouched])
    expect(await look()).toEqual({ rule: 6, untouched: 3 })
  })

  it('keeps its levels, up to the new capacity, if buckets are not reset', async () => {
    const { gate, look, edit } = await editable(false, [rule(10, { bands: bands(10) })])
    await ask(gate, 3, '10.0.0.1')
    await edit([rule(10, { bands: bands(20) })])
    expect(await look()).toEqual({ rule: 6 })
    await edit([rule(10, { bands: bands(4) })])
    expect(await look()).toEqual({ rule: 3 })
    await ask(gate, 4, '10.0.0.1')
    expect(await look()).toEqual({ rule: 0 })
  })

  it.each(['LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER'])(
    'restarts without an error when its algorithm changes to %s and back',
    async (algorithm) => {
      const { gate, look, edit } = await editable(false, [rule(10, { bands: bands(10) })])
      await ask(gate, 3, '10.0.0.1')
      await edit([rule(10, { bands: bands(10, { algorithm }) })])
      expect(await look()).toEqual({ rule: 9 })
      expect(allowed(await ask(gate, 2, '10.0.0.1'))).toBe(2)
      expect(await look()).toEqual({ rule: 7 })
      await edit([rule(10, { bands: bands(10) })])
      expect(await look()).toEqual({ rule: 9 })
    },
  )
})

describe('invalid options', () => {
  it.each([
    [{ prefix: '' }, /prefix: must be 1 to 64 characters .*; received ""/],
    [{ prefix: 'a b' }, /prefix: must be .*; received "a b"/],
    [{ prefix: '{a}' }, /prefix: must be .*; received "\{a\}"/],
    [{ prefix: 7 }, /prefix: must be .*; received 7/],
    [{ prefx: 'a' }, /prefx: unknown field "prefx"; did you mean prefix\?/],
    [{ cachedRejections: 'no' }, /cachedRejections: must be true or false; received "no"/],
    [{ timeoutMs: -1 }, /timeoutMs: must be a number of milliseconds .*; received -1/],
    [{ failures: 0 }, /failures: must be .*; received 0/],
    [{ leaseShare: 2 }, /leaseShare: must be .*; received 2/],
  ])('of a store are rejected: %j', (options, message) => {
    expect(() => redisStore(client, options as object)).toThrow(message)
    expect(() => redisStore(client, options as object)).toThrow(
      expect.objectContaining({ code: 'FLUXGATE_CONFIG_INVALID' }),
    )
  })

  it.each([
    ['http://127.0.0.1', 'FLUXGATE_CONFIG_INVALID', /uri must be redis:\/\//],
    ['127.0.0.1:6379', 'FLUXGATE_CONFIG_INVALID', /uri must be redis:\/\//],
    [
      { uri: 'redis://h', tsl: true },
      'FLUXGATE_CONFIG_INVALID',
      /tsl: unknown field "tsl"; allowed: uri, clusterNodes, .*, tls, connections/,
    ],
    [
      { uri: 'redis://h', sentinels: ['h'] },
      'FLUXGATE_CONFIG_INVALID',
      /exactly one of uri, clusterNodes, sentinels; received uri and sentinels/,
    ],
    [{ clusterNodes: [] }, 'FLUXGATE_CONFIG_INVALID', /clusterNodes must be a list of host:port/],
    [{}, 'FLUXGATE_ARGUMENT_INVALID', /client must be an ioredis Redis or Cluster, .*; received an object\./],
    [null, 'FLUXGATE_ARGUMENT_INVALID', /client must be .*; received null\./],
    [undefined, 'FLUXGATE_ARGUMENT_INVALID', /client must be .*; received undefined\./],
  ])('for the Redis address are rejected: %j', (where, code, message) => {
    expect(() => redisStore(where as object)).toThrow(message)
    expect(() => redisStore(where as object)).toThrow(expect.objectContaining({ code }))
  })

  it.each([
    ['redis://127.0.0.1:6379?x=1', /store must be "memory".*received "redis:\/\/127.0.0.1:6379\?x=1"/],
    [{ uri: 'nonsense' }, /store\.uri: /],
    [{ uri, prefix: 'a b' }, /store\.prefix: must be .*; received "a b"/],
    [{ uri, prefx: 'a' }, /store\.prefx: unknown.*prefix/],
    [{ prefix: 'a' }, /store: needs exactly one of uri, clusterNodes, sentinels; received none/],
  ])('for the store of a gate are rejected: %j', async (store, message) => {
    await expect(gateOn(store as never)).rejects.toThrow(message)
    await expect(gateOn(store as never)).rejects.toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
  })
})

describe('after close()', () => {
  it('gates, limiters and stores throw FLUXGATE_CLOSED', async () => {
    const gate = await gateOn({ uri, prefix: freshPrefix() })
    const limiter = createLimiter({ capacity: 1, window: '1h', store: uri })
    await gate.check({})
    for (const one of [gate, limiter]) await one.close()
    for (const one of [gate, limiter]) await one.close()
    const closed = { code: 'FLUXGATE_CLOSED' }
    await expect(gate.check({})).rejects.toMatchObject(closed)
    await expect(gate.reset({ ruleSetId: 'api' })).rejects.toMatchObject(closed)
    for (const ask of [limiter.consume, limiter.peek, limiter.refund, limiter.reset, limiter.wait])
      await expect(ask('a')).rejects.toMatchObject(closed)

    for (const where of [uri, client]) {
      const store = redisStore(where, { clock: manualClock(startMs), prefix: freshPrefix(), timeoutMs: 20_000 })
      const one = group('rule', [band()])
      expect((await store.charge([chargeOf(one, 'a')], false)).granted).toBe(true)
      const last = store.charge([chargeOf(one, 'a')], false)
      await store.close()
      expect((await last).granted).toBe(true)
      await expect(store.charge([chargeOf(one, 'a')], false)).rejects.toMatchObject(closed)
      await expect(store.reset(one, 'a')).rejects.toMatchObject(closed)
    }
  })
})
