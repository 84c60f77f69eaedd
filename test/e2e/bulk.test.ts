/** `fluxgate bulk` as a process: loaded data, output and exit status. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../fixtures/eventually.js'
import { type RedisServer, startRedis } from '../servers/redis-server.js'
import { commandLine, root } from './command-line.js'

const { file, fluxgate, shell, remove } = commandLine()
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  await server.stop()
  remove()
})

const bulk = (args: readonly string[], input = '') => fluxgate(['bulk', ...args, '--redis', server.uri], { input })
const plain = (text: string): string => text.replaceAll(/[\d.,]+(µs|ms|s)\b, [\d,]+\/s/g, '…')

describe('fluxgate bulk', () => {
  it('detects the format of a file by its name', async () => {
    writeFileSync(file('a.csv'), 'id,name\n1,ann\n2,"bob, jr"\n')
    writeFileSync(file('b.jsonl.gz'), gzipSync('{"id":3,"name":"chris"}\n'))
    writeFileSync(file('c.txt'), 'SET user:4 "dora d"\n')
    const template = ['--command', 'SET user:<id> <name>']
    const first = bulk([file('a.csv'), ...template])
    expect({ ...first, stdout: plain(first.stdout) }).toEqual({
      status: 0,
      stdout: '2 of 2 records loaded, in …\n',
      stderr: '',
    })
    expect(bulk([file('b.jsonl.gz'), ...template]).status).toBe(0)
    expect(bulk([file('c.txt')]).status).toBe(0)
    const names = await server.call('MGET', 'user:1', 'user:2', 'user:3', 'user:4')
    expect(names).toEqual(['ann', 'bob, jr', 'chris', 'dora d'])
  })

  it('reads standard input, and exits with 1 and the lines if records fail', async () => {
    const { status, stdout, stderr } = bulk([], 'SET x 1\nLPUSH x 2\nSET y 1\n')
    expect({ status, stdout: plain(stdout) }).toEqual({ status: 1, stdout: '2 of 3 records loaded, 1 failed, in …\n' })
    expect(stderr).toBe('✗ line 2: WRONGTYPE Operation against a key holding the wrong kind of value\n')
    const json = bulk(['--json'], 'SET x 1\nLPUSH x 2\nSET y 1\n')
    expect(json.status).toBe(1)
    expect(JSON.parse(json.stdout)).toMatchObject({ records: 3, done: 2, failed: 1, failures: [{ line: 2 }] })
  })

  it('limits the number of listed failures', () => {
    const { stderr } = bulk([], 'NOSUCH\n'.repeat(150))
    expect(stderr.trimEnd().split('\n')).toHaveLength(101)
    expect(stderr).toContain('\n  … and 50 more\n')
  })

  it('sends nothing in a dry run and needs no server', async () => {
    const { status, stdout } = fluxgate(['bulk', '--dry-run', '--redis', 'redis://127.0.0.1:1'], {
      input: 'SET dry 1\n',
    })
    expect({ status, stdout: plain(stdout) }).toEqual({ status: 0, stdout: '1 of 1 records valid, in …\n' })
    expect(await server.call('EXISTS', 'dry')).toBe(0)
  })

  it('fails if the reader of --emit closes the pipe before the end', async () => {
    // More than the buffer of a pipe, so that writing fails once the reader has closed it.
    writeFileSync(file('long.txt'), `SET key ${'x'.repeat(1_000)}\n`.repeat(5_000))
    const { stdout, stderr } = shell(`{ fluxgate bulk long.txt --emit; echo "status $?" >&2; } | head -c 5`)
    expect([stdout.length, stderr]).toEqual([
      5,
      expect.stringMatching(
        /^error: The load was stopped: the output was closed after \d+ commands?\.\n.*\nstatus 1\n$/,
      ),
    ])
  })

  it('writes the format of redis-cli --pipe', async () => {
    writeFileSync(file('many.txt'), Array.from({ length: 5_000 }, (_, i) => `SET piped:${i} "안녕 ${i}"\n`).join(''))
    const { stdout } = shell(`fluxgate bulk many.txt --emit | redis-cli -p ${server.port} --pipe`)
    expect(stdout).toContain('errors: 0, replies: 5000')
    expect(await server.call('GET', 'piped:4999')).toBe('안녕 4999')
  })

  it('resumes from a line', async () => {
    expect(bulk(['--from-line', '3'], 'SET from:1 a\nSET from:2 a\nSET from:3 a\n').status).toBe(0)
    expect(await server.call('EXISTS', 'from:1', 'from:2', 'from:3')).toBe(1)
  })

  it.each([
    [['nothing.txt'], 'File not found: nothing.txt.'],
    [['.'], '. is a directory'],
    [['--command', 'SET a <b>'], '--command needs records with fields'],
    [['--format', 'xml'], 'Allowed choices are commands, csv, jsonl.'],
    [['--rate', '0'], 'It must be an integer from 1'],
    [['--emit', '--json'], 'cannot be used with'],
    [['--redis', 'localhost'], 'uri must be redis://'],
    [['--redis', 'redis://127.0.0.1:1'], 'Redis at 127.0.0.1:1 failed to accept a connection'],
  ])('rejects %j with status 2 and a message', (args, message) => {
    const { status, stdout, stderr } = fluxgate(['bulk', ...args])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('loads into the configured store', async () => {
    writeFileSync(file('fluxgate.yaml'), `store: { uri: '${server.uri}/5' }\n`)
    expect(fluxgate(['bulk', '--config', file('fluxgate.yaml')], { input: 'SET configured 1\n' }).status).toBe(0)
    expect(String(await server.call('INFO', 'keyspace'))).toContain('db5:keys=1')
  })
})

describe('fluxgate bulk overrides', () => {
  it('replaces all overrides of a rule, or changes nothing', async () => {
    const bands = '[{ capacity: 10, window: 1m }]'
    writeFileSync(
      file('rules.yaml'),
      `id: api\nrules:\n  - { id: per-key, limitScope: API_KEY, overrides: true, bands: ${bands} }\n`,
    )
    writeFileSync(file('good.csv'), 'key,action,capacity,window\nacme,LIMIT,5000,1m\nours,ALLOW,,\n')
    writeFileSync(file('bad.jsonl'), '{"key":"acme","action":"DENY"}\n{"key":"x","action":"LIMIT"}\n')
    const overrides = (name: string, ...args: string[]) =>
      fluxgate(['bulk', 'overrides', file(name), '--rules', file('rules.yaml'), '--redis', server.uri, ...args])
    const good = overrides('good.csv', '--rule', 'per-key')
    expect({ ...good, stdout: plain(good.stdout) }).toEqual({
      status: 0,
      stdout:
        '2 of 2 records written, in …\nThe overrides are in effect and replace all previous overrides of the rule.\n',
      stderr: '',
    })
    const live = await server.call('HGET', 'fluxgate:{overrides}:live', '["api","per-key"]')
    const bad = overrides('bad.jsonl', '--rule', 'per-key')
    expect({ ...bad, stdout: plain(bad.stdout) }).toEqual({
      status: 1,
      stdout: '1 of 2 records written, 1 failed, in …\nNothing has changed.\n',
      stderr:
        '✗ line 2: bands: must be a list of 1 to 8 bands with LIMIT, unless there is a balance; received nothing\n',
    })
    expect(await server.call('HGET', 'fluxgate:{overrides}:live', '["api","per-key"]')).toBe(live)
    expect(overrides('good.csv', '--rule', 'per-kay')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Did you mean "per-key"?'),
    })
  })
})

describe('an interrupted fluxgate bulk', () => {
  async function endless(uri: string): Promise<{ child: ChildProcess; ended: Promise<[number, string]> }> {
    const program = join(root, 'dist', 'command', 'main.js')
    const child = spawn(process.execPath, [program, 'bulk', '--redis', uri, '--rate', '20000'], {
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    let reported = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      reported += chunk
    })
    const feed = setInterval(() => child.stdin?.write('INCR stopped:count\n'.repeat(500)), 5)
    child.stdin?.on('error', () => {})
    const ended = once(child, 'exit').then(([status]): [number, string] => {
      clearInterval(feed)
      return [status as number, reported]
    })
    return { child, ended }
  }

  it.each(['SIGINT', 'SIGTERM'] as const)('prints the line to resume from after %s', async (signal) => {
    await server.call('DEL', 'stopped:count')
    const { child, ended } = await endless(server.uri)
    await eventually('the load is running', async () => Number(await server.call('GET', 'stopped:count')) > 1_000)
    child.kill(signal)
    const [status, reported] = await ended
    expect(status).toBe(1)
    const [, line] = /it was interrupted\. Resume with --from-line (\d+)/.exec(reported) ?? []
    expect(Number(line)).toBe(Number(await server.call('GET', 'stopped:count')) + 1)
  })

  it('prints the line to resume from after Redis has exited', async () => {
    const mortal = await startRedis()
    try {
      const { ended } = await endless(mortal.uri)
      await eventually('the load is running', async () => Number(await mortal.call('GET', 'stopped:count')) > 1_000)
      await mortal.kill()
      const [status, reported] = await ended
      expect(status).toBe(1)
      expect(reported).toMatch(
        /The load was stopped: 127\.0\.0\.1:\d+: .+ Resume with --from-line \d+: Redis has replied to every record before it/,
      )
    } finally {
      await mortal.stop()
    }
  })
})
