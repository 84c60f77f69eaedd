/** Gates that start while Redis is unavailable or rejects the connection. */
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

/** There is no server to wait for. */
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

describe('a server that rejects the connection', () => {
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
  ])('is reported at once: %s, by URI and by a client', async (_, credentials, sentence) => {
    const { host, port } = await stopAfterTest(startRedis({ password: 's3cret' }))
    const uri = `redis://${credentials}${host}:${port}`
    for (const store of [uri, { uri }, redisStore(ioredis(uri))])
      expect(await refusal(store)).toMatchObject({
        code: 'FLUXGATE_STORE_MISCONFIGURED',
        message: expect.stringMatching(sentence),
      })
  })

  it('is reported at once by a node-redis client', async () => {
    const { host, port } = await stopAfterTest(startRedis({ password: 's3cret' }))
    // With RESP3, connect() resolves only after authentication.
    const client = createClient({ url: `redis://${host}:${port}`, RESP: 2 })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    expect(await refusal(redisStore(client))).toMatchObject({
      code: 'FLUXGATE_STORE_MISCONFIGURED',
      message: expect.stringMatching(/NOAUTH.* Set the password/),
    })
  })

  it('is reported for a client that was never connected', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' })
    expect(await refusal(redisStore(client))).toMatchObject({
      code: 'FLUXGATE_STORE_MISCONFIGURED',
      message: expect.stringContaining('await client.connect()'),
    })
  })

  it('with missing permissions is reported with the user that needs them', async () => {
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

describe('an unavailable server', () => {
  it('only degrades decisions, and is used once it starts', async () => {
    const port = await freePort()
    const gate = await open(`redis://127.0.0.1:${port}`)
    const events: string[] = []
    gate.on('degraded', () => events.push('degraded'))
    gate.on('recovered', () => events.push('recovered'))
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true, remaining: 9 })
    expect(await gate.health()).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN' } })
    await stopAfterTest(startRedis({ port }))
    const decision = await eventually('Redis decides', async () => {
      const decision = await gate.check({})
      return !decision.degraded && decision
    })
    // The first permit.
    expect(decision).toMatchObject({ allowed: true, remaining: 9 })
    await eventually('the recovery is reported', async () => {
      await gate.check({})
      return events.length > 1
    })
    expect(events).toEqual(['degraded', 'recovered'])
  })

  it('does not prevent a limiter from limiting', async () => {
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
    const decision = await eventually('Redis decides', async () => {
      const decision = await limiter.consume('a')
      return !decision.degraded && decision
    })
    expect(decision).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('does not delay the start with a client of the caller', async () => {
    const port = await freePort()
    const gate = await open(redisStore(ioredis(`redis://127.0.0.1:${port}`)))
    expect(await gate.check({})).toMatchObject({ allowed: true, degraded: true, remaining: 9 })
    await stopAfterTest(startRedis({ port }))
    await eventually('Redis decides', async () => !(await gate.check({})).degraded)
  })
})
