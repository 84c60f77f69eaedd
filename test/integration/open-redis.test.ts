/** Connections that FluxGate opens by itself, to one server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type OpenedRedis, openRedis, type RedisOptions } from '../../src/app/open-redis.js'
import { FluxGateError } from '../../src/core/errors.js'
import { wrapRedisError } from '../../src/redis/connection-errors.js'
import { eventually } from '../servers/eventually.js'
import { freePort } from '../servers/free-port.js'
import { type RedisServer, startRedis } from '../servers/redis-server.js'
import { selfSigned } from '../servers/self-signed.js'

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

async function msOf(action: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await action()
  return performance.now() - begin
}

describe('a connection of our own', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('answers calls that were made before it was there, in their order', async () => {
    const connection = open({ uri: server.uri })
    const replies = [1, 2, 3].map((n) => connection.call('list', ['RPUSH', 'list', String(n)]))
    expect(await Promise.all(replies)).toEqual([1, 2, 3])
    expect(await connection.call('list', ['LRANGE', 'list', '0', '-1'])).toEqual(['1', '2', '3'])
  })

  it('is ready when it is connected', async () => {
    const connection = open({ uri: server.uri })
    expect(await msOf(() => connection.ready(10_000))).toBeLessThan(5_000)
    expect(connection.isCluster).toBe(false)
  })

  it('uses the database that the URI names', async () => {
    const connection = open({ uri: `${server.uri}/3` })
    await connection.call('where', ['SET', 'where', 'here'])
    expect(await server.call('GET', 'where')).toBeNull()
  })

  it('shares the calls between as many sockets as it is told', async () => {
    const connection = open({ uri: server.uri, connections: 3 })
    await connection.ready(10_000)
    const ids = await Promise.all(Array.from({ length: 9 }, () => connection.call('', ['CLIENT', 'ID'])))
    expect(ids.map((id) => ids.filter((other) => other === id).length)).toEqual(Array(9).fill(3))
  })

  it('is gone after close, and says so', async () => {
    const connection = open({ uri: server.uri, connections: 2 })
    await connection.ready(10_000)
    expect(await server.call('CLIENT', 'LIST')).toContain('name=fluxgate')
    await connection.close()
    await eventually('no client', async () => !String(await server.call('CLIENT', 'LIST')).includes('name=fluxgate'))
    expect(await failureOf(connection.call('k', ['GET', 'k']))).toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await connection.close()
  })

  it('may be closed before it was there', async () => {
    const connection = open({ uri: server.uri })
    const call = failureOf(connection.call('k', ['GET', 'k']))
    await connection.close()
    expect(await call).toMatchObject({ code: 'FLUXGATE_CLOSED' })
    await connection.ready(10_000)
  })

  it('says how to get the package that it needs', async () => {
    const connection = openRedis({ uri: server.uri }, { load: () => Promise.reject(new Error('Cannot find package')) })
    const error = await failureOf(connection.ready(10_000))
    expect(error).toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    expect(error.message).toContain('npm install ioredis')
    expect(await failureOf(connection.call('k', ['GET', 'k']))).toBe(error)
    await connection.close()
  })
})

describe('a server that refuses', () => {
  /** What `ready` says, and that a call says the same. */
  async function refusal(options: RedisOptions): Promise<string> {
    const connection = open(options)
    const error = await failureOf(connection.ready(5_000))
    expect(error).toBeInstanceOf(FluxGateError)
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect((await failureOf(connection.call('k', ['GET', 'k']))).code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    return `${error.message} ${JSON.stringify(error.cause, Object.getOwnPropertyNames(error.cause ?? {}))}`
  }

  it('is said at once, without the password', async () => {
    const { host, port } = await start({ password: 's3cret' })
    const missing = await refusal({ uri: `redis://${host}:${port}` })
    expect(missing).toContain(`failed to connect to Redis at 127.0.0.1:${port}: NOAUTH`)
    expect(missing).toContain('Give the password')
    const wrong = await refusal({ uri: `redis://:hunter22@${host}:${port}` })
    expect(wrong).toMatch(/WRONGPASS .* Give the password/)
    expect(wrong).not.toContain('hunter22')
    expect(await refusal({ uri: `redis://nobody:hunter22@${host}:${port}` })).toContain('WRONGPASS')
  })

  it('lets in those who come with the password, in the URI or beside it', async () => {
    const { host, port } = await start({ password: 'p@ss:w/rd%#?' })
    const encoded = encodeURIComponent('p@ss:w/rd%#?')
    for (const options of [
      { uri: `redis://:${encoded}@${host}:${port}` },
      { uri: `redis://default:${encoded}@${host}:${port}` },
      { uri: `redis://:wrong@${host}:${port}`, username: 'default', password: 'p@ss:w/rd%#?' },
    ]) {
      const connection = open(options)
      await connection.ready(5_000)
      expect(await works(connection)()).toBe(true)
    }
  })

  it('recovers by itself when the password is put right on the server', async () => {
    const server = await start({ password: 'old' })
    const connection = open({ uri: `redis://:new@${server.host}:${server.port}` })
    await expect(connection.ready(5_000)).rejects.toThrow('WRONGPASS')
    await server.call('CONFIG', 'SET', 'requirepass', 'new')
    await eventually('it works', works(connection))
  })

  it('because of an ACL is named with what is not allowed', async () => {
    const server = await start({ config: ['user app on >pw ~fluxgate:* +evalsha'] })
    const connection = open({ uri: `redis://app:pw@${server.host}:${server.port}` })
    await connection.ready(5_000)
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(error.message).toMatch(/failed to decide: NOPERM .* Allow the ACL user/)
  })

  it('because of a database that it does not have is not used at all', async () => {
    const server = await start()
    expect(await refusal({ uri: `${server.uri}/99` })).toMatch(/DB index is out of range. Name a database/)
    expect(await server.call('DBSIZE')).toBe(0)
  })

  it('because nobody trusts its certificate is said, and the certificate may be given', async () => {
    const tls = selfSigned()
    const server = await start({ tls })
    expect(await refusal({ uri: server.uri })).toMatch(/no TLS connection \(.*NODE_EXTRA_CA_CERTS/)
    const connection = open({ uri: server.uri, tls: { ca: tls.cert, checkServerIdentity: () => undefined } })
    await connection.ready(5_000)
    expect(await works(connection)()).toBe(true)
  })

  it('to be a cluster is said', async () => {
    const { host, port } = await start()
    expect(await refusal({ clusterNodes: [`${host}:${port}`] })).toMatch(
      /cluster support disabled. Give its address as uri/,
    )
  })
})

describe('a server that is not there', () => {
  it('does not keep anybody waiting, and is used as soon as it comes', async () => {
    const port = await freePort()
    const connection = open({ uri: `redis://127.0.0.1:${port}` })
    const early = failureOf(connection.call('k', ['GET', 'k']))
    expect(await msOf(() => connection.ready(200))).toBeGreaterThan(190)
    expect((await early).message).toContain(`ECONNREFUSED 127.0.0.1:${port}`)
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_UNREACHABLE')
    expect(error.message).toMatch(
      /^The bucket store failed to decide: there is no connection to Redis at 127.0.0.1:\d+ \(/,
    )
    await start({ port })
    expect(await msOf(() => eventually('it works', works(connection)))).toBeLessThan(2_000)
  })

  it('may have a name with several addresses', async () => {
    const connection = open({ uri: `redis://localhost:${await freePort()}` })
    expect((await failureOf(connection.call('k', ['GET', 'k']))).message).toMatch(/ \(connect ECONNREFUSED .*\)$/)
  })

  it('is closed quickly', async () => {
    const connection = open({ uri: `redis://127.0.0.1:${await freePort()}` })
    await connection.ready(100)
    expect(await msOf(() => connection.close())).toBeLessThan(1_000)
  })

  it('may be one that speaks no TLS, or nothing else', async () => {
    const plain = await start()
    const silent = open({ uri: `rediss://${plain.host}:${plain.port}` })
    expect((await failureOf(silent.call('k', ['GET', 'k']))).message).toContain('does it speak TLS?')
    const { host, port } = await start({ tls: selfSigned() })
    const deaf = open({ uri: `redis://${host}:${port}` })
    const error = await failureOf(deaf.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_UNREACHABLE')
    expect(error.message).toContain(`no connection to Redis at ${host}:${port}`)
  })

  it('has a name that nobody knows', async () => {
    const connection = open({ uri: 'redis://no-such-host.invalid' })
    expect((await failureOf(connection.call('k', ['GET', 'k']))).message).toContain('no-such-host.invalid')
  })
})

describe('a server that goes and comes', () => {
  it('works again within a second after a crash', async () => {
    const server = await start()
    const connection = open({ uri: server.uri, connections: 2 })
    await connection.ready(5_000)
    await server.kill()
    await eventually('it fails', async () => (await failureOf(connection.call('k', ['GET', 'k']))).code)
    expect(await msOf(() => failureOf(connection.call('k', ['GET', 'k'])))).toBeLessThan(500)
    await server.restart()
    expect(await msOf(() => eventually('it works', works(connection)))).toBeLessThan(2_000)
  })

  it('is given up for a new connection when it hangs, and works again within a second after it', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(5_000)
    server.pause()
    const error = await failureOf(connection.call('k', ['GET', 'k']))
    expect(error.code).toBe('FLUXGATE_STORE_FAILED')
    server.resume()
    expect(await msOf(() => eventually('it works', works(connection)))).toBeLessThan(2_000)
  })

  it('is closed quickly when it hangs, and whoever waits is told', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(5_000)
    server.pause()
    const pending = failureOf(connection.call('k', ['GET', 'k']))
    expect(await msOf(() => connection.close())).toBeLessThan(1_000)
    expect((await pending).code).toBe('FLUXGATE_STORE_FAILED')
    server.resume()
  })

  it('is closed quickly when it hangs from the beginning', async () => {
    const server = await start()
    server.pause()
    const connection = open({ uri: server.uri })
    await connection.ready(100)
    expect(await msOf(() => connection.close())).toBeLessThan(1_000)
    server.resume()
  })

  it('never does a command twice, whenever the connection is lost', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(5_000)
    let sent = 0
    let answered = 0
    for (let round = 0; round < 30; round++) {
      const calls = Array.from({ length: 50 }, () => connection.call('n', ['INCR', 'n']))
      sent += calls.length
      const kill = server.call('CLIENT', 'KILL', 'TYPE', 'normal')
      const outcomes = await Promise.allSettled(calls)
      answered += outcomes.filter(({ status }) => status === 'fulfilled').length
      await kill
      await eventually('it works', async () => (await connection.call('m', ['GET', 'm'])) === null)
    }
    const done = Number(await server.call('GET', 'n'))
    expect(done).toBeLessThanOrEqual(sent)
    expect(done).toBeGreaterThanOrEqual(answered)
    expect(answered).toBeLessThan(sent)
  })

  it('is left for another one when it turns into a replica', async () => {
    const server = await start()
    const connection = open({ uri: server.uri })
    await connection.ready(5_000)
    const before = await connection.call('', ['CLIENT', 'ID'])
    await server.call('REPLICAOF', '127.0.0.1', String(await freePort()))
    expect((await failureOf(connection.call('k', ['SET', 'k', '1']))).message).toContain('READONLY')
    await eventually('another connection', async () => (await connection.call('', ['CLIENT', 'ID'])) !== before)
  })
})
