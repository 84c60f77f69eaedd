/** What a gate does with a Redis that is not there, or not to be used, when it starts. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { FluxGateError } from '../../../src/core/errors.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { startRedis } from '../../servers/redis-server.js'

const rules = {
  id: 'api',
  rules: [{ id: 'rule', limitScope: 'GLOBAL', bands: [{ capacity: 10, window: '1h' }] }],
} as const

/** Nobody is there to be waited for. */
const resilience = { timeoutMs: 10_000 }

async function open(store: FluxGateOptions['store']) {
  const gate = await createFluxGate({ rules, resilience, ...(store !== undefined && { store }) })
  onTestFinished(() => gate.close())
  return gate
}

const refusal = (store: FluxGateOptions['store']): Promise<FluxGateError> =>
  open(store).then(
    () => expect.unreachable('it was opened'),
    (error: FluxGateError) => error,
  )

function ioredis(uri: string): Redis {
  const client = new Redis(uri)
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

describe('a server that does not let us in', () => {
  it.each([
    [
      'no password',
      '',
      /NOAUTH.* Set the password, and the username if the server requires one: redis:\/\/user:password@host/,
    ],
    [
      'a wrong password',
      ':wrong@',
      /(WRONGPASS|NOAUTH).* Set the password, and the username if the server requires one/,
    ],
  ])('is told at once: %s, by URI and by a client', async (_, credentials, sentence) => {
    const { host, port } = await stopAfterTest(startRedis({ password: 's3cret' }))
    const uri = `redis://${credentials}${host}:${port}`
    for (const store of [uri, { uri }, redisStore(ioredis(uri))])
      expect(await refusal(store)).toMatchObject({
        code: 'FLUXGATE_STORE_MISCONFIGURED',
        message: expect.stringMatching(sentence),
      })
  })

  it('is told at once by a client of node-redis', async () => {
    const { host, port } = await stopAfterTest(startRedis({ password: 's3cret' }))
    // With RESP3 its own connect() does not resolve before it is let in.
    const client = createClient({ url: `redis://${host}:${port}`, RESP: 2 })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    expect(await refusal(redisStore(client))).toMatchObject({
      code: 'FLUXGATE_STORE_MISCONFIGURED',
      message: expect.stringMatching(/NOAUTH.* Set the password/),
    })
  })

  it('is told by a client that was never connected', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' })
    expect(await refusal(redisStore(client))).toMatchObject({
      code: 'FLUXGATE_STORE_MISCONFIGURED',
      message: expect.stringContaining('await client.connect()'),
    })
  })

  it('forbids commands or keys: which user needs more is told', async () => {
    const server = await stopAfterTest(startRedis())
    await server.call('ACL', 'SETUSER', 'poor', 'on', '>pw', '~*', '+@all', '-evalsha')
    await server.call('ACL', 'SETUSER', 'elsewhere', 'on', '>pw', '~other:*', '+@all')
    for (const user of ['poor', 'elsewhere'])
      expect(await refusal(`redis://${user}:pw@${server.host}:${server.port}`)).toMatchObject({
        code: 'FLUXGATE_STORE_MISCONFIGURED',
        message: expect.stringMatching(/NOPERM.* Grant the ACL user the commands and keys/),
      })
  })
})

describe('a server that is not there', () => {
  it('only degrades, and is used when it comes', async () => {
    const port = await freePort()
    const gate = await open(`redis://127.0.0.1:${port}`)
    const events: string[] = []
    gate.on('degraded', () => events.push('degraded'))
    gate.on('recovered', () => events.push('recovered'))
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true, remaining: 9 })
    expect(await gate.health()).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN' } })
    await stopAfterTest(startRedis({ port }))
    const decision = await eventually('it is used', async () => {
      const decision = await gate.check({})
      return !decision.degraded && decision
    })
    // The first that it was asked for.
    expect(decision).toMatchObject({ allowed: true, remaining: 9 })
    await eventually('it is told', async () => {
      await gate.check({})
      return events.length > 1
    })
    expect(events).toEqual(['degraded', 'recovered'])
  })

  it('does not keep a limiter from limiting either', async () => {
    const port = await freePort()
    const store = redisStore(`redis://127.0.0.1:${port}`, resilience)
    const limiter = createLimiter({ capacity: 2, window: '1h', store })
    onTestFinished(() => Promise.all([limiter.close(), store.close()]).then(() => {}))
    const early = [await limiter.consume('a'), await limiter.consume('a'), await limiter.consume('a')]
    expect(early.map(({ allowed, degraded }) => [allowed, degraded])).toEqual([
      [true, true],
      [true, true],
      [false, true],
    ])
    await stopAfterTest(startRedis({ port }))
    const decision = await eventually('it is used', async () => {
      const decision = await limiter.consume('a')
      return !decision.degraded && decision
    })
    expect(decision).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('is waited for by a client of its own choice without holding up the start', async () => {
    const port = await freePort()
    const gate = await open(redisStore(ioredis(`redis://127.0.0.1:${port}`)))
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true, remaining: 9 })
    await stopAfterTest(startRedis({ port }))
    await eventually('it is used', async () => !(await gate.check({})).degraded)
  })
})
