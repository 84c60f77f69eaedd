/** Bulk loading into one server: stored records, reported failures, and resume points after an outage. */
import { createHash } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type BulkOptions, bulkCheck, bulkEmit, bulkLoad } from '../../../src/bulk.js'
import type { Command } from '../../../src/redis/bulk/commands/writer.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { startRedis } from '../../servers/redis-server.js'
import { callOnce } from '../../servers/resp.js'
import { selfSigned } from '../../servers/self-signed.js'
import { startSentinel } from '../../servers/sentinel.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { startProxy } from '../../servers/tcp-proxy.js'

const textOf = (...texts: (string | Buffer)[]): Readable => Readable.from(texts.map((text) => Buffer.from(text)))
const values = (prefix: string, count: number): string =>
  Array.from({ length: count }, (_, i) => `SET ${prefix}${i} value-${i}\n`).join('')

describe('bulkLoad', () => {
  it.each([false, true])('stores every record, fast: %s', async (fast) => {
    const server = await stopAfterTest(startRedis())
    const report = await bulkLoad(server.uri, textOf(values('k', 20_000)), { format: 'commands', fast })
    expect(report).toMatchObject({ records: 20_000, done: 20_000, failed: 0, failures: [] })
    expect(report.stoppedBy).toBeUndefined()
    expect(await server.call('DBSIZE')).toBe(20_000)
    expect(await server.call('GET', 'k19999')).toBe('value-19999')
  })

  it('stores binary data and text in any script unchanged', async () => {
    const prefix = freshPrefix()
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const commands: Command[] = [
      ['SET', `${prefix}bytes`, bytes],
      ['SET', `${prefix}서울`, '🙂\r\n'],
      ['HSET', `${prefix}sizes`, 'empty', ''],
    ]
    expect(await bulkLoad(sharedRedis().uri, commands)).toMatchObject({ done: 3, failed: 0 })
    const look = "return {redis.sha1hex(redis.call('GET', KEYS[1])), redis.call('GET', KEYS[2])}"
    const found = await callOnce(sharedRedis(), 'EVAL', look, 2, `${prefix}bytes`, `${prefix}서울`)
    expect(found).toEqual([createHash('sha1').update(bytes).digest('hex'), '🙂\r\n'])
  })

  it('reports each failed record by line and loads the others', async () => {
    const server = await stopAfterTest(startRedis())
    const lines = Array.from({ length: 5_000 }, (_, i) => `SET k${i} v`)
    lines[41] = 'LPUSH k3 x'
    lines[999] = 'SET k "no end'
    lines[4_998] = 'NOSUCH thing'
    const report = await bulkLoad(server.uri, textOf(lines.join('\n')), { format: 'commands' })
    expect(report).toMatchObject({ records: 5_000, done: 4_997, failed: 3 })
    expect(report.failures).toEqual([
      { line: 42, message: expect.stringMatching(/^WRONGTYPE/) },
      { line: 1_000, message: 'a quote is not closed, or is not followed by a space' },
      { line: 4_999, message: expect.stringMatching(/^ERR unknown command/) },
    ])
    expect(await server.call('DBSIZE')).toBe(4_997)
  })

  it('reports an invalid command of an iterable by its index and loads the others', async () => {
    const prefix = freshPrefix()
    const commands = [
      ['SET', `${prefix}a`, 7],
      ['SET', `${prefix}b`, null],
      undefined,
      'SET c 1',
      Buffer.from('SET c 1'),
      [],
      ['SET', Number.NaN, 'x'],
      ['SET', `${prefix}d`, 12n],
    ] as unknown as Command[]
    async function* oneByOne(): AsyncGenerator<Command> {
      yield* commands
    }
    for (const input of [commands, oneByOne()]) {
      const report = await bulkLoad(sharedRedis().uri, input)
      expect(report).toMatchObject({ records: 8, done: 2, failed: 6 })
      expect(report.failures).toEqual([
        { line: 2, message: 'argument 2 must be a string, a number or bytes; received null' },
        { line: 3, message: expect.stringMatching(/^a command must be a list .*; received undefined$/) },
        { line: 4, message: expect.stringMatching(/^a command must be a list .*; received a string$/) },
        {
          line: 5,
          message: expect.stringMatching(/^a command must be a list .*; received bytes\. Set format to load bytes$/),
        },
        { line: 6, message: 'a command must have a name' },
        { line: 7, message: 'argument 1 must be a string, a number or bytes; received NaN' },
      ])
    }
    expect(await callOnce(sharedRedis(), 'MGET', `${prefix}a`, `${prefix}d`)).toEqual(['7', '12'])
  })

  it('lists at most maxFailures failures and counts all of them', async () => {
    const report = await bulkLoad(sharedRedis().uri, textOf('NOSUCH\n'.repeat(1_000)), {
      format: 'commands',
      maxFailures: 5,
    })
    expect(report).toMatchObject({ records: 1_000, done: 0, failed: 1_000 })
    expect(report.failures.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5])
  })

  it('reports a transaction as failed if one of its commands failed', async () => {
    const key = freshPrefix()
    const text = `MULTI\nSET ${key} x\nLPUSH ${key} y\nEXEC\nGET ${key}\n`
    const report = await bulkLoad(sharedRedis().uri, textOf(text), { format: 'commands' })
    expect(report.failures).toEqual([{ line: 4, message: expect.stringMatching(/^WRONGTYPE/) }])
  })

  it.each(['SUBSCRIBE c', 'monitor', 'HELLO 3', 'CLIENT REPLY OFF', 'QUIT'])(
    'rejects %s, which would make replies impossible to count',
    async (command) => {
      const report = await bulkLoad(sharedRedis().uri, textOf(`PING\n${command}\nPING\n`), { format: 'commands' })
      expect(report).toMatchObject({ done: 2, failures: [{ line: 2, message: expect.stringContaining('cannot be') }] })
    },
  )

  it('reads CSV and JSON lines, compressed or not, in chunks of any size', async () => {
    const server = await stopAfterTest(startRedis())
    const csv = Buffer.from('id,name\n1,"Kim, Min"\n2,서울\n')
    const command = 'SET csv:<id> <name>'
    await bulkLoad(server.uri, textOf(gzipSync(csv)), { format: 'csv', command })
    expect(await server.call('MGET', 'csv:1', 'csv:2')).toEqual(['Kim, Min', '서울'])
    const packed = gzipSync('{"id": 7, "tags": ["a"]}\n')
    const pieces = Array.from(packed, (_, i) => packed.subarray(i, i + 1))
    await bulkLoad(server.uri, textOf(...pieces), { format: 'jsonl', command: 'SET json:<id> <tags>' })
    expect(await server.call('GET', 'json:7')).toBe('["a"]')
  })

  it('rejects invalid options and input before it sends anything', async () => {
    const { uri } = sharedRedis()
    const options = { format: 'csv', command: 'SET <id> x' } as const
    await expect(bulkLoad(uri, textOf('name\nann\n'), options)).rejects.toThrow('The first line has no column id')
    await expect(bulkLoad(uri, '/nowhere/at/all', options)).rejects.toThrow('Cannot read /nowhere/at/all')
    await expect(bulkLoad(uri, 'file')).rejects.toThrow(
      'format must be one of commands, csv, jsonl if the input is a file; received nothing.',
    )
    await expect(bulkLoad(uri, [], { ratePerSecond: 0 })).rejects.toThrow(
      'ratePerSecond must be an integer from 1 to 1000000000; received 0.',
    )
    await expect(bulkLoad(uri, [], { rate: 5 } as BulkOptions)).rejects.toThrow(
      'options.rate: unknown field "rate"; allowed: format, command, delimiter',
    )
    await expect(bulkLoad(uri, [], { signal: 'stop' } as never)).rejects.toThrow(
      'options.signal must be an AbortSignal; received "stop".',
    )
    await expect(bulkLoad(uri, undefined as never)).rejects.toThrow(
      'input must be a file path, bytes with a format, or an iterable of commands; received nothing.',
    )
    await expect(bulkLoad(uri, textOf(gzipSync('id\n1\n').subarray(0, 14)), options)).rejects.toThrow(
      'The gzip input is corrupt',
    )
    const port = await freePort()
    await expect(bulkLoad(`redis://127.0.0.1:${port}`, [])).rejects.toMatchObject({
      code: 'FLUXGATE_STORE_FAILED',
      message: expect.stringContaining(`Redis at 127.0.0.1:${port} failed to accept a connection`),
    })
  })

  it('connects with a password, an ACL user, a database and TLS', async () => {
    const tls = selfSigned()
    const server = await stopAfterTest(startRedis({ password: 's3cret', tls }))
    const address = server.uri.replace(/.*@/, '')
    const options = { password: 's3cret', tls: { ca: tls.cert } }
    await server.call('ACL', 'SETUSER', 'loader', 'on', '>pw', '~allowed:*', '+set', '+select', '+ping', '+echo')
    expect(await bulkLoad({ uri: `rediss://${address}/3`, ...options }, [['SET', 'a', '1']])).toMatchObject({ done: 1 })
    expect(String(await server.call('INFO', 'keyspace'))).toContain('db3:keys=1')
    const asLoader = { uri: `rediss://${address}`, ...options, username: 'loader', password: 'pw' }
    const commands = [
      ['SET', 'allowed:1', 'x'],
      ['SET', 'other', 'x'],
    ]
    expect(await bulkLoad(asLoader, commands)).toMatchObject({
      done: 1,
      failures: [{ line: 2, message: expect.stringMatching(/^NOPERM/) }],
    })
    for (const [wrong, code] of [
      [{ ...options, password: 'wrong' }, 'FLUXGATE_STORE_MISCONFIGURED'],
      [{ tls: options.tls }, 'FLUXGATE_STORE_MISCONFIGURED'],
    ] as const)
      await expect(bulkLoad({ uri: `rediss://${address}`, ...wrong }, [])).rejects.toMatchObject({ code })
  })

  it('finds the primary through its sentinels', async () => {
    const group = await stopAfterTest(startSentinel())
    const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }))
    const report = await bulkLoad({ sentinels, sentinelName: group.name }, [['SET', 'a', '1']])
    expect(report).toMatchObject({ done: 1, failed: 0 })
    expect(await (await group.primary()).call('GET', 'a')).toBe('1')
    await expect(bulkLoad({ sentinels, sentinelName: 'other' }, [])).rejects.toThrow('No such master with that name')
  })
})

describe('bulkLoad without a server', () => {
  it('writes the protocol that redis-cli --pipe reads, and reports invalid records', async () => {
    const written: Buffer[] = []
    const stream = new Writable({
      write(chunk, _, done) {
        written.push(Buffer.from(chunk))
        setImmediate(done)
      },
    })
    const report = await bulkEmit(stream, textOf(values('k', 10_000), 'SET x "\n'), { format: 'commands' })
    expect(report).toMatchObject({ records: 10_001, done: 10_000, failed: 1 })
    const text = Buffer.concat(written).toString()
    expect(text.startsWith('*3\r\n$3\r\nSET\r\n$2\r\nk0\r\n$7\r\nvalue-0\r\n')).toBe(true)
    expect(text.match(/\*3/g)).toHaveLength(10_000)
  })

  it('validates only, in a dry run', async () => {
    const report = await bulkCheck(textOf('SET a 1\nSET b "\n'), { format: 'commands' })
    expect(report).toMatchObject({ records: 2, done: 1, failed: 1, failures: [{ line: 2 }] })
  })
})

/** Generates records until the consumer stops. */
async function* endless(onRecord: (count: number) => void): AsyncGenerator<Command> {
  for (let i = 1; ; i++) {
    onRecord(i)
    yield ['SET', `k${i}`, String(i)]
    if (i % 100 === 0) await sleep(0)
  }
}

describe('an interrupted bulkLoad', () => {
  it('reports a resume point when Redis is killed, with every earlier record stored', async () => {
    const server = await stopAfterTest(startRedis({ config: ['appendonly yes', 'appendfsync always'] }))
    let killed: Promise<unknown> | undefined
    const loading = bulkLoad(
      server.uri,
      endless((count) => {
        if (count === 2_000) killed = server.kill()
      }),
    )
    const report = await loading
    const { stoppedBy, resumeFromLine = 0 } = report
    expect(stoppedBy?.code).toBe('FLUXGATE_BULK_STOPPED')
    expect(stoppedBy?.message).toContain(`127.0.0.1:${server.port}`)
    expect(report).toMatchObject({ done: resumeFromLine - 1, failed: 0 })
    expect(report.records - report.done).toBeLessThanOrEqual(128)
    await killed
    await server.restart()
    for (const line of [1, resumeFromLine - 1]) expect(await server.call('GET', `k${line}`)).toBe(String(line))
    const rest = Array.from({ length: report.records }, (_, i) => ['SET', `k${i + 1}`, String(i + 1)])
    const second = await bulkLoad(server.uri, rest, { fromLine: resumeFromLine })
    expect(second).toMatchObject({ records: report.records - resumeFromLine + 1, failed: 0 })
    expect(await server.call('DBSIZE')).toBe(report.records)
  })

  it('fails when Redis stops responding', async () => {
    const server = await stopAfterTest(startRedis())
    const report = await bulkLoad(
      server.uri,
      endless((count) => {
        if (count === 500) server.pause()
      }),
      { silenceMs: 200 },
    )
    server.resume()
    expect(report.stoppedBy?.message).toContain('no reply in 200 ms')
    expect(report.resumeFromLine).toBe(report.done + 1)
  })

  it('fails at once when the connection is lost while the input is idle', async () => {
    const server = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(server.port))
    async function* silent(): AsyncGenerator<Command> {
      yield ['SET', 'a', '1']
      await eventually('the first record is stored', async () => (await server.call('GET', 'a')) === '1')
      proxy.cut()
      await new Promise(() => {})
    }
    const report = await bulkLoad(`redis://127.0.0.1:${proxy.port}`, silent())
    // Its reply may have been lost with the connection.
    expect(report).toMatchObject({ records: 1, failed: 0, resumeFromLine: report.done + 1 })
    expect(report.stoppedBy?.code).toBe('FLUXGATE_BULK_STOPPED')
  })

  it('fails when Redis rejects writes, without reporting the records as failed', async () => {
    const server = await stopAfterTest(startRedis({ config: ['maxmemory 3mb', 'maxmemory-policy noeviction'] }))
    const text = Array.from({ length: 10_000 }, (_, i) => `SET k${i} ${'x'.repeat(1_000)}\n`).join('')
    const report = await bulkLoad(server.uri, textOf(text), { format: 'commands' })
    expect(report.stoppedBy?.message).toContain('rejects further commands: OOM')
    expect(report).toMatchObject({ failed: 0, resumeFromLine: report.done + 1 })
    expect(await server.call('DBSIZE')).toBe(report.done)
  })

  it('stops on an abort signal once the pending commands are answered', async () => {
    const server = await stopAfterTest(startRedis())
    const interruption = new AbortController()
    const report = await bulkLoad(
      server.uri,
      endless((count) => {
        if (count === 1_000) interruption.abort()
      }),
      { signal: interruption.signal },
    )
    expect(report.stoppedBy?.message).toBe('The load was stopped: it was interrupted.')
    expect(report).toMatchObject({ done: report.records, failed: 0, resumeFromLine: report.records + 1 })
    expect(await server.call('DBSIZE')).toBe(report.done)
  })
})

describe('rate control', () => {
  it.each([
    [false, 128],
    [true, 2_000],
  ])('has at most 128 replies outstanding, unless it is fast: %s', async (fast, most) => {
    const server = await stopAfterTest(startRedis())
    const proxy = await stopAfterTest(startProxy(server.port))
    let taken = 0
    function* commands(): Generator<Command> {
      proxy.hang()
      while (taken < 2_000) yield ['SET', `k${++taken}`, 'v']
    }
    const loading = bulkLoad(`redis://127.0.0.1:${proxy.port}`, commands(), { fast })
    await eventually('no more records are read', () => taken >= most)
    expect(taken).toBe(most)
    proxy.resume()
    expect(await loading).toMatchObject({ done: 2_000, failed: 0 })
  })

  it('does not exceed ratePerSecond', async () => {
    const startedAt = performance.now()
    const prefix = freshPrefix()
    const report = await bulkLoad(sharedRedis().uri, textOf(values(prefix, 300)), {
      format: 'commands',
      ratePerSecond: 1_000,
    })
    expect(report.done).toBe(300)
    expect(performance.now() - startedAt).toBeGreaterThan(250)
  })
})
