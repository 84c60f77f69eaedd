/** Connections that FluxGate opens to a single server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FluxGateError } from '../../../src/core/errors.js'
import { wrapRedisError } from '../../../src/redis/client/errors.js'
import { type OpenedRedis, openRedis, type RedisOptions } from '../../../src/redis/client/open/open-redis.js'
import { eventually } from '../../fixtures/eventually.js'
import { settlesWithin } from '../../fixtures/settles-within.js'
import { freePort } from '../../servers/free-port.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { selfSigned } from '../../servers/self-signed.js'

/** Shorter than the timeout of a test, so that a connection that never becomes ready is reported as such. */
const readyMs = 20_000
/** `close` waits at most 250 ms for the sockets to end. */
const closeMs = 1_000

const opened: OpenedRedis[] = []
const started: RedisServer[] = []

const open = (options: RedisOptions): OpenedRedis => {
  const connection = openRedis(options)
  opened.push(connection)
  return connection
}

async function start(...options: Parameters<typeof startRedis>): Promise<RedisServer> {
  const server = await startRedis(...options)
  started.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((connection) => connection.close()))
  await Promise.all(started.splice(0).map((server) => server.stop()))
})

const failureOf = async (promise: Promise<unknown>): Promise<FluxGateError> =>
  promise.then(
    (value) => expect.unreachable(`resolved with ${String(value)}`),
    (error: unknown) => wrapRedisError(error, 'decide'),
  )

const works = (connection: OpenedRedis) => async (): Promise<boolean> =>
  (await connection.call('k', ['GET', 'k'])) === null

describe('a connection opened by FluxGate', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('answers calls made before it was connected, in order', async () => {
    const connection = open({ uri: server.uri })
    const replies = [1, 2, 3].map((n) => connection.call('list', ['RPUSH', 'list', String(n)]))
    expect(await Promise.all(replies)).toEqual([1, 2, 3])
    expect(await connection.call('list', ['LRANGE', 'list', '0', '-1'])).toEqual(['1', '2', '3'])
  })

  it('is ready when it is connected', async () => {
    const connection = open({ uri: server.uri })
    // Longer than the test timeout: `ready` resolves because the connection is established.
    await connection.ready(600_000)
    expect(await works(connection)()).toBe(true)
    expect(connection.isCluster).toBe(false)
  })

  it('uses the database that the URI names', async () => {
    const connection = open({ uri: `${server.uri}/3` })
    await connection.call('where', ['SET', 'where', 'here'])
    expect(await server.call('GET', 'where')).toBeNull()
  })

  it('distributes calls over the configured number of sockets', async () => {
    const connection = open({ uri: server.uri, connections: 3 })
    await connection.ready(readyMs)
    const ids = await Promise.all(Array.from({ length: 9 }, () => connection.call('', ['CLIENT', 'ID'])))
    expect(ids.map((id) => ids.filter((other) => other === id).length)).toEqual(Array(9).fill(3))
  })

  it('is closed by close, and rejects further calls', async () => {
    const connection = open({ uri: server.uri, connections: 2 })
    await connection.ready(readyMs)
    expect(await server.call('CLIENT', 'LIST')).toContain('name=fluxgate')
    await connection.close()
    await eventually('no client', async () => !String(await server.call('CLIENT', 'LIST')).includes('name=fluxgate'))
    expect(await failureOf(connection.call('k', ['GET', 'k']))).toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await connection.close()
  })

  it('can be closed before it is connected', async () => {
    const connection = open({ uri: server.uri })
    const call = failureOf(connection.call('k', ['GET', 'k']))
    await connection.close()
    expect(await call).toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await connection.ready(readyMs)
  })

  it('explains how to install the package that it needs', async () => {
    const connection = openRedis({ uri: server.uri }, { load: () => Promise.reject(new Error('Cannot find package')) })
    const error = await failureOf(connection.ready(readyMs))
    expect(error).toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    expect(error.message).toContain('npm install ioredis')
    expect(await failureOf(connection.call('k', ['GET', 'k']))).toBe(error)
    await connection.close()
  })
})

describe('a server that rejects the connection', () => {
  /** The error of `ready`; a call must fail with the same one. */
  async function refusal(options: RedisOptions): Promise<string> {
    const connection = open(options)
    const error = await failureOf(connection.ready(readyMs))
    expect(error).toBeInstanceOf(FluxGateError)
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect((await failureOf(connection.call('k', ['GET', 'k']))).code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    return `${error.message} ${JSON.stringify(error.cause, Object.getOwnPropertyNames(error.cause ?? {}))}`
  }

  it('is reported at once, without the password', async () => {
    const { host, port } = await start({ password: 's3cret' })
    const missing = await refusal({ uri: `redis://${host}:${port}` })
    expect(missing).toContain(`failed to connect to Redis at 127.0.0.1:${port}: NOAUTH`)
    expect(missing).toContain('Set the password')
    const wrong = await refusal({ uri: `redis://:hunter22@${host}:${port}` })
    expect(wrong).toMatch(/WRONGPASS .* Set the password/)
    expect(wrong).not.toContain('hunter22')
    expect(await refusal({ uri: `redis://nobody:hunter22@${host}:${port}` })).toContain('WRONGPASS')
  })

  it('accepts the password in the URI or as an option', async () => {
    const { host, port } = await start({ password: 'p@ss:w/rd%#?' })
    const encoded = encodeURIComponent('p@ss:w/rd%#?')
    for (const options of [
      { uri: `redis://:${encoded}@${host}:${port}` },
      { uri: `redis://default:${encoded}@${host}:${port}` },
      { uri: `redis://:wrong@${host}:${port}`, username: 'default', password: 'p@ss:w/rd%#?' },
    ]) {
      const connection = open(options)
      await connection.ready(readyMs)
      expect(await works(connection)()).toBe(true)
    }
  })

  it('is used as soon as its password is corrected', async () => {
    const server = await start({ password: 'old' })
    const connection = open({ uri: `redis://:new@${server.host}:${server.port}` })
    await expect(connection.ready(readyMs)).rejects.toThrow('WRONGPASS')
    await server.call('CONFIG', 'SET', 'requirepass', 'new')
    await eventually('the connection works', works(connection))
  })

  it('because of an ACL is reported with the missing permission', async () => {
    const server = await start({ config: ['user app on >pw ~fluxgate:* +evalsha'] })
    const connection = open({ uri: `redis://app:pw@${server.host}:${server.port}` })
    await connection.ready(readyMs)
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(error.message).toMatch(/failed to decide: NOPERM .* Grant the ACL user/)
  })

  it('because of a missing database is not used at all', async () => {
    const server = await start()
    expect(await refusal({ uri: `${server.uri}/99` })).toMatch(/DB index is out of range. Use a database that exists/)
    expect(await server.call('DBSIZE')).toBe(0)
  })

  it('because of an untrusted certificate is reported; the certificate can be configured', async () => {
    const tls = selfSigned()
    const server = await start({ tls })
    expect(await refusal({ uri: server.uri })).toMatch(/the TLS handshake failed \(.*NODE_EXTRA_CA_CERTS/)
    const connection = open({ uri: server.uri, tls: { ca: tls.cert, checkServerIdentity: () => undefined } })
    await connection.ready(readyMs)
    expect(await works(connection)()).toBe(true)
  })

  it.each([
    ['that does not use TLS', 'rediss', undefined, /the server does not use TLS\. Use redis:\/\//],
    ['that requires TLS', 'redis', selfSigned(), /the server requires TLS\. Use rediss:\/\//],
  ] as const)('%s is reported with the scheme to use, on every call', async (_, scheme, tls, message) => {
    const { host, port } = await start({ ...(tls && { tls }) })
    const uri = `${scheme}://${host}:${port}`
    const connection = open({ uri })
    await expect(connection.ready(readyMs)).rejects.toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    for (let i = 0; i < 3; i++) {
      const error = await failureOf(connection.call('k', ['GET', 'k']))
      expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
      expect(error.message).toMatch(message)
    }
  })

  it('that enables TLS later is used then', async () => {
    const plain = await start()
    const tls = selfSigned()
    const uri = `rediss://${plain.host}:${plain.port}`
    const connection = open({ uri, tls: { ca: tls.cert, checkServerIdentity: () => undefined } })
    await expect(connection.ready(readyMs)).rejects.toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    await plain.stop()
    await start({ port: plain.port, tls })
    await eventually('the connection works', works(connection))
  })

  it('because it is a cluster is reported', async () => {
    const { host, port } = await start()
    expect(await refusal({ clusterNodes: [`${host}:${port}`] })).toMatch(
      /cluster support disabled. Set uri instead of clusterNodes/,
    )
  })
})

describe('an unavailable server', () => {
  it('fails calls while it is unreachable, and is used once it is up', async () => {
    const port = await freePort()
    const connection = open({ uri: `redis://127.0.0.1:${port}` })
    const early = failureOf(connection.call('k', ['GET', 'k']))
    await connection.ready(200)
    expect((await early).message).toContain(`ECONNREFUSED 127.0.0.1:${port}`)
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_UNREACHABLE')
    expect(error.message).toMatch(/^The bucket store failed to decide: not connected to Redis at 127.0.0.1:\d+ \(/)
    await start({ port })
    await eventually('the connection works', works(connection))
  })

  it('can have a name with several addresses', async () => {
    const connection = open({ uri: `redis://localhost:${await freePort()}` })
    expect((await failureOf(connection.call('k', ['GET', 'k']))).message).toMatch(/ \(connect ECONNREFUSED .*\)$/)
  })

  it('does not delay close', async () => {
    const connection = open({ uri: `redis://127.0.0.1:${await freePort()}` })
    await connection.ready(100)
    expect(await settlesWithin(closeMs, connection.close())).toBe(true)
  })

  it('can have an unknown name', async () => {
    const connection = open({ uri: 'redis://no-such-host.invalid' })
    expect((await failureOf(connection.call('k', ['GET', 'k']))).message).toContain('no-such-host.invalid')
  })
})

describe('a server that fails and recovers', () => {
  it('fails calls after a crash, and works again after a restart', async () => {
    const server = await start()
    const connection = open({ uri: server.uri, connections: 2 })
    await connection.ready(readyMs)
    await server.kill()
    await eventually('calls fail', async () => (await failureOf(connection.call('k', ['GET', 'k']))).code)
    // The server stays down, so this call can only fail.
    expect((await failureOf(connection.call('k', ['GET', 'k']))).code).toBe('FLUXGATE_STORE_UNREACHABLE')
    await server.restart()
    await eventually('the connection works', works(connection))
  })

  it('is replaced by a new connection when it hangs, and works again after it', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(readyMs)
    server.pause()
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_FAILED')
    server.resume()
    await eventually('the connection works', works(connection))
  })

  it('does not delay close when it hangs, and pending calls fail', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(readyMs)
    server.pause()
    const pending = failureOf(connection.call('k', ['GET', 'k']))
    expect(await settlesWithin(closeMs, connection.close())).toBe(true)
    expect((await pending).code).toBe('FLUXGATE_STORE_FAILED')
    server.resume()
  })

  it('does not delay close when it hangs from the start', async () => {
    const server = await start()
    server.pause()
    const connection = open({ uri: server.uri })
    await connection.ready(100)
    expect(await settlesWithin(closeMs, connection.close())).toBe(true)
    server.resume()
  })

  it('never runs a command twice, whenever the connection is lost', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(readyMs)
    const keys: string[] = []
    const answered: string[] = []
    for (let round = 0; round < 30; round++) {
      const sent = Array.from({ length: 50 }, (_, n) => `${round}:${n}`)
      keys.push(...sent)
      const calls = sent.map((key) => connection.call(key, ['INCR', key]))
      const kill = server.call('CLIENT', 'KILL', 'TYPE', 'normal')
      const outcomes = await Promise.allSettled(calls)
      answered.push(...sent.filter((_, n) => outcomes[n]?.status === 'fulfilled'))
      await kill
      await eventually('the connection works', works(connection))
    }
    const counts = (await server.call('MGET', ...keys)) as unknown[]
    expect(counts.filter((count) => count !== '1' && count !== null)).toEqual([])
    expect(new Set((await server.call('MGET', ...answered)) as unknown[])).toEqual(new Set(['1']))
  })

  it('never repeats a command that was executed and whose reply was lost', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(readyMs)
    const keys = Array.from({ length: 50 }, (_, n) => `once:${n}`)
    // Redis executes the commands that follow on this connection but sends no replies.
    const calls = [
      connection.call('', ['CLIENT', 'REPLY', 'OFF']),
      ...keys.map((key) => connection.call(key, ['INCR', key])),
    ]
    const outcomes = Promise.allSettled(calls)
    await eventually('all are executed', async () => (await server.call('EXISTS', ...keys)) === keys.length)
    await server.call('CLIENT', 'KILL', 'TYPE', 'normal')
    expect(new Set((await outcomes).map(({ status }) => status))).toEqual(new Set(['rejected']))
    await eventually('the connection works', works(connection))
    expect(await server.call('MGET', ...keys)).toEqual(keys.map(() => '1'))
  })

  it('is replaced by another connection when it becomes a replica', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(readyMs)
    const before = await connection.call('', ['CLIENT', 'ID'])
    await server.call('REPLICAOF', '127.0.0.1', String(await freePort()))
    expect((await failureOf(connection.call('k', ['SET', 'k', '1']))).message).toContain('READONLY')
    await eventually('another connection', async () => (await connection.call('', ['CLIENT', 'ID'])) !== before)
  })
})
