/**
 * However Redis fails, callers get the same decisions, the same events are emitted, and recovery is automatic. Every test has a
 * server of its own and mostly waits for deadlines, so several run at the same time.
 */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, type TestContext } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { OnStoreFailure } from '../../../src/core/rule.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { type RedisOptions, type RedisServer, startRedis } from '../../servers/redis-server.js'
import { openConnection } from '../../servers/resp.js'
import { startProxy, type TcpProxy } from '../../servers/tcp-proxy.js'

interface Scene {
  readonly server: RedisServer
  /** The gate reaches the server through this proxy. */
  readonly proxy: TcpProxy
}

interface Outage {
  readonly name: string
  readonly options?: RedisOptions
  /** The cause that health reports. */
  readonly cause: RegExp
  /** Starts the failure and returns the function that ends it. */
  begin(scene: Scene): Promise<() => Promise<void>>
  /** True if clients pass the error on unchanged. */
  readonly isWithoutClient?: boolean
  /** Calls may have been sent without a reply, so it is unknown whether they were charged. */
  readonly isSilent?: boolean
}

/** The timeout for outages in which no call is answered. */
const silentTimeoutMs = 800
/** The timeout for outages in which every call fails immediately, so it never passes. */
const errorTimeoutMs = 10_000
const timedOut = /did not reply within \d+ ms/

interface Mode {
  readonly name: string
  resilience(isSilent: boolean): Resilience
  /** On a busy machine, any call may exceed its deadline. */
  readonly mayTimeOut: boolean
}

interface Resilience {
  readonly timeoutMs?: number
  readonly openMs?: number
}

const modes: readonly Mode[] = [
  {
    name: 'long deadlines',
    mayTimeOut: false,
    resilience: (isSilent) => ({ timeoutMs: isSilent ? silentTimeoutMs : errorTimeoutMs, openMs: 300 }),
  },
  { name: 'the default options', mayTimeOut: true, resilience: () => ({}) },
]

const outages: readonly Outage[] = [
  {
    name: 'refuses connections',
    cause: /not connected to Redis at 127.0.0.1:.* \(connect ECONNREFUSED/,
    async begin({ proxy }) {
      await proxy.refuse()
      proxy.cut()
      return () => proxy.accept()
    },
  },
  {
    name: 'hangs',
    // The connection is eventually closed, and there is no other.
    cause: /did not reply within \d+ ms|the server does not answer/,
    isSilent: true,
    async begin({ server }) {
      server.pause()
      return async () => server.resume()
    },
  },
  {
    name: 'is slower than the deadline',
    isWithoutClient: true,
    cause: /did not reply within \d+ ms|the server does not answer/,
    isSilent: true,
    async begin({ proxy }) {
      proxy.setDelay(1_500)
      return async () => proxy.setDelay(0)
    },
  },
  {
    name: 'is loading',
    cause: /LOADING/,
    options: { config: ['loading-process-events-interval-bytes 1024', 'rdbcompression no'] },
    async begin({ server }) {
      // A debugging option of the server: a delay in microseconds for each key that it loads from disk.
      await server.call('CONFIG', 'SET', 'key-load-delay', 20_000)
      for (let i = 0; i < 10; i++)
        await server.call('MSET', ...Array.from({ length: 200 }, (_, n) => [`filler:${i}:${n}`, 'x'.repeat(50)]).flat())
      await server.call('SAVE')
      await server.call('CONFIG', 'REWRITE')
      await server.kill()
      const restarted = server.restart()
      await eventually('it is loading', async () => String(await server.call('INFO')).includes('loading:1'))
      return async () => {
        await server.call('CONFIG', 'SET', 'key-load-delay', 0)
        await restarted
      }
    },
  },
  {
    name: 'has become a replica',
    isWithoutClient: true,
    cause: /READONLY/,
    async begin({ server }) {
      await server.call('REPLICAOF', '127.0.0.1', await freePort())
      return async () => void (await server.call('REPLICAOF', 'NO', 'ONE'))
    },
  },
  {
    name: 'has no memory left',
    isWithoutClient: true,
    cause: /OOM/,
    async begin({ server }) {
      await server.call('CONFIG', 'SET', 'maxmemory', 1)
      return async () => void (await server.call('CONFIG', 'SET', 'maxmemory', 0))
    },
  },
  {
    name: 'requires a password that was not needed before',
    cause: /NOAUTH.*Set the password/,
    async begin({ server }) {
      const administrator = await openConnection(server.address)
      await administrator.call('CONFIG', 'SET', 'requirepass', 's3cret')
      await administrator.call('CLIENT', 'KILL', 'TYPE', 'normal')
      return async () => {
        await administrator.call('CONFIG', 'SET', 'requirepass', '')
        administrator.close()
      }
    },
  },
]

const ruleSet = (onStoreFailure: OnStoreFailure): RuleSetInput => ({
  id: onStoreFailure,
  rules: [{ id: 'rule', limitScope: 'GLOBAL', onStoreFailure, bands: [{ capacity: 10, window: '1h' }] }],
})

interface Client {
  readonly name: string
  /** Queues calls while disconnected, so only the deadline is visible. */
  readonly keepsCalls: boolean
  /** The store of the gate. A client of the caller has the defaults of its library. */
  store(uri: string, resilience: Resilience, context: TestContext): string | BucketStore | Promise<BucketStore>
}

const clients: readonly Client[] = [
  { name: 'a URI', keepsCalls: false, store: (uri) => uri },
  {
    name: 'a client of ioredis',
    keepsCalls: true,
    store(uri, resilience, { onTestFinished }) {
      // Otherwise it would trust the loading time that the server reports, and wait for ten seconds.
      const client = new Redis(uri, { maxLoadingRetryTime: 100 })
      client.on('error', () => {})
      onTestFinished(() => client.disconnect())
      return redisStore(client, resilience)
    },
  },
  {
    name: 'a client of node-redis',
    keepsCalls: true,
    async store(uri, resilience, { onTestFinished }) {
      const client = createClient({ url: uri })
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.destroy())
      return redisStore(client, resilience)
    },
  },
]

async function openGate(
  { port }: TcpProxy,
  client: Client,
  resilience: Resilience,
  context: TestContext,
): Promise<FluxGate> {
  const gate = await createFluxGate({
    rules: (['LOCAL', 'ALLOW', 'DENY'] as const).map(ruleSet),
    store: await client.store(`redis://127.0.0.1:${port}`, resilience, context),
    resilience,
  })
  context.onTestFinished(() => gate.close())
  return gate
}

const ask = (gate: FluxGate, ruleSetId: OnStoreFailure) => gate.check({}, { ruleSetId })

/** Refunds fail during the outage; the error states whether the refund was sent. */
const codeOfRefund = (gate: FluxGate): Promise<string> =>
  gate.refund({}, { ruleSetId: 'ALLOW' }).then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

const ways = modes.flatMap((mode) =>
  clients.map((client) => ({ mode, client, name: `${client.name} with ${mode.name}` })),
)

describe.each(ways)('through $name, Redis that', { concurrent: true }, ({ mode, client }) => {
  it.for(client.keepsCalls ? outages.filter(({ isWithoutClient }) => !isWithoutClient) : outages)(
    '$name: rules follow their failure policy, each event is emitted once, and recovery is automatic',
    async (scenario, context) => {
      const server = await stopAfterTest(startRedis(scenario.options), context)
      const proxy = await stopAfterTest(startProxy(server.port), context)
      const isSilent = scenario.isSilent || client.keepsCalls || mode.mayTimeOut
      const gate = await openGate(proxy, client, mode.resilience(isSilent), context)
      const events: string[] = []
      gate.on('degraded', () => events.push('degraded'))
      gate.on('recovered', () => events.push('recovered'))
      await eventually('Redis decides', async () => {
        const { degraded } = await gate.check({}, { ruleSetId: 'DENY', peek: true })
        return !degraded && (await gate.health()).status === 'UP'
      })
      events.length = 0
      expect(await ask(gate, 'LOCAL')).toMatchObject({ degraded: false, remaining: 9 })
      expect(await ask(gate, 'LOCAL')).toMatchObject({ degraded: false, remaining: 8 })
      expect(await gate.check({}, { ruleSetId: 'ALLOW', permits: 5 })).toMatchObject({ degraded: false, remaining: 5 })

      const end = await scenario.begin({ server, proxy })
      const startedAt = Date.now()
      const [local, allow, deny] = await Promise.all([ask(gate, 'LOCAL'), ask(gate, 'ALLOW'), ask(gate, 'DENY')])
      expect(local).toMatchObject({ allowed: true, reason: 'ALLOWED', degraded: true, limit: 10, remaining: 9 })
      expect(allow).toMatchObject({ allowed: true, reason: 'STORE_FAILURE', degraded: true, remaining: -1 })
      expect(deny).toMatchObject({ allowed: false, reason: 'STORE_FAILURE', degraded: true, retryAfterMs: 1_000 })
      const more = await Promise.all(Array.from({ length: 12 }, () => ask(gate, 'LOCAL')))
      expect(more.filter(({ allowed }) => allowed)).toHaveLength(9)
      expect(more.at(-1)).toMatchObject({ allowed: false, reason: 'LIMITED', degraded: true, remaining: 0 })

      const { status, store } = await gate.health()
      expect({ status, store: store.status }).toEqual({ status: 'DEGRADED', store: 'DOWN' })
      // `sinceAt` is measured with a monotonic clock, which may differ from the system clock.
      expect(store.sinceAt).toBeGreaterThan(startedAt - 1_000)
      const known = await eventually('the cause is known', async () => {
        await ask(gate, 'DENY')
        const { store } = await gate.health()
        const causes = client.keepsCalls ? [scenario.cause, timedOut] : [scenario.cause]
        return causes.some((cause) => cause.test(store.error ?? '')) && store
      })
      expect(known).toMatchObject({ status: 'DOWN', sinceAt: store.sinceAt })

      const codes = new Set<string>()
      await eventually('calls fail without being sent, apart from occasional probes', async () => {
        codes.add(await codeOfRefund(gate))
        return codes.has('FLUXGATE_STORE_UNREACHABLE') || codes.has('FLUXGATE_STORE_MISCONFIGURED') || codes.size > 1
      })
      expect([...codes].join()).toMatch(/^(FLUXGATE_STORE_(FAILED|TIMEOUT|MISCONFIGURED|OPEN|UNREACHABLE),?)+$/)
      expect(events).toEqual(['degraded'])

      await end()
      const first = await eventually('Redis is called again', async () => {
        const decision = await ask(gate, 'LOCAL')
        return !decision.degraded && decision
      })
      if (isSilent) expect(first.remaining).toBeLessThanOrEqual(7)
      else expect(first).toMatchObject({ allowed: true, remaining: 7 })
      await eventually('the recovery is reported', async () => {
        // Up to a second passes until the next probe, and a rule has only ten permits.
        await gate.check({}, { ruleSetId: 'DENY', peek: true })
        return events.length > 1
      })
      expect(await ask(gate, 'DENY')).toMatchObject({ allowed: true, degraded: false })
      expect(events).toEqual(['degraded', 'recovered'])
      expect(await gate.health()).toMatchObject({ status: 'UP', store: { status: 'UP', error: null } })
    },
  )
})
