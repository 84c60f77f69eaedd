/** An import replaces all overrides of a rule atomically, or changes nothing. */
import { Readable } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { bulkOverrides } from '../../../src/bulk.js'
import type { Rule } from '../../../src/core/rule.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'

const bands = [{ capacity: 2, window: '1h' }]
const rules = {
  id: 'api',
  rules: [
    { id: 'keys', limitScope: 'API_KEY', overrides: true, path: '/keys', bands } as const,
    { id: 'ips', limitScope: 'IP', overrides: true, path: '/ips', bands } as const,
    {
      id: 'monthly',
      limitScope: 'API_KEY',
      overrides: true,
      path: '/monthly',
      bands: [{ capacity: 5, algorithm: 'FIXED_WINDOW', calendar: 'MONTH', timeZone: 'Asia/Seoul', anchor: 15 }],
    } as const,
    { id: 'none', limitScope: 'IP', path: '/none', bands } as const,
  ],
}

async function open(): Promise<{ server: RedisServer; gate: FluxGate; rule: (id: string) => Rule }> {
  const server = await stopAfterTest(startRedis())
  const store = { uri: server.uri, timeoutMs: 20_000 }
  const gate = await createFluxGate({ rules, store })
  onTestFinished(() => gate.close())
  return { server, gate, rule: (id) => gate.ruleSets[0]?.rules.find((one) => one.id === id) as Rule }
}

const text = (...lines: string[]): Readable => Readable.from([Buffer.from(lines.join('\n'))])
const limitOf = async (gate: FluxGate, apiKey: string) =>
  (await gate.check({ apiKey, path: '/keys' }, { peek: true })).limit
const soon = (gate: FluxGate, apiKey: string) => expect.poll(() => limitOf(gate, apiKey))

it('replaces all existing overrides', async () => {
  const { server, gate, rule } = await open()
  await gate.overrides?.put('api', 'keys', { key: 'old', action: 'LIMIT', bands: [{ capacity: 50, window: '1h' }] })
  expect(await limitOf(gate, 'old')).toBe(50)
  const many = Array.from({ length: 3_000 }, (_, i) => `key-${i},LIMIT,${1_000 + (i % 3)},1m,`)
  const input = text('key,action,capacity,window,note', ...many, 'free,ALLOW,,,"ours, always"', 'key-7,LIMIT,9,1m,')
  const report = await bulkOverrides(server.uri, input, { format: 'csv', ruleSetId: 'api', rule: rule('keys') })
  expect(report).toMatchObject({ records: 3_002, done: 3_002, failed: 0, created: 3_001, isLive: true })
  await soon(gate, 'key-2999').toBe(1_002)
  expect(await Promise.all(['key-7', 'free', 'old', 'other'].map((key) => limitOf(gate, key)))).toEqual([9, -1, 2, 2])
  expect(await gate.overrides?.get('api', 'keys', 'free')).toEqual({
    key: 'free',
    action: 'ALLOW',
    note: 'ours, always',
  })
  const listed = new Set<string>()
  for (let cursor: string | undefined | null; cursor !== null; ) {
    const page = (await gate.overrides?.list('api', 'keys', { limit: 700, cursor })) ?? expect.unreachable()
    for (const { key } of page.items) listed.add(key)
    cursor = page.cursor
  }
  expect(listed).toEqual(new Set(['free', ...many.map((line) => line.slice(0, line.indexOf(',')))]))
  const { items } =
    (await gate.overrides?.list('api', 'keys', { limit: 20, prefix: 'key-299' })) ?? expect.unreachable()
  expect(items.map(({ key }) => key)).toEqual(['key-299', ...Array.from({ length: 10 }, (_, i) => `key-299${i}`)])
})

it('imports keys of every kind; the last line for a key wins', async () => {
  const { server, gate, rule } = await open()
  const odd = ['a:b', '한국', 'x'.repeat(200), 'quo,"ted', ' spaced ', '%41', '{tag}', 'y'.repeat(1_000), 'ends-in-}']
  const quoted = (key: string) => (/[",]/.test(key) ? `"${key.replaceAll('"', '""')}"` : key)
  const rows = Array.from({ length: 5_000 }, (_, i) => `plain-${i},LIMIT,${10 + (i % 7)},1m`)
  const lines = [
    'key,action,capacity,window',
    ...odd.map((key) => `${quoted(key)},LIMIT,5,1m`),
    ...rows,
    ...odd.map((key, i) => `${quoted(key)},LIMIT,${100 + i},1m`),
    ...rows.map((_, i) => `plain-${i},LIMIT,${20 + (i % 9)},1m`),
  ]
  for (const fast of [false, true]) {
    const options = { format: 'csv', ruleSetId: 'api', rule: rule('keys'), fast } as const
    const report = await bulkOverrides(server.uri, text(...lines, `mode-${fast},ALLOW,,`), options)
    expect(report).toMatchObject({ records: 10_019, done: 10_019, created: 5_010, isLive: true })
    await soon(gate, `mode-${fast}`).toBe(-1)
    const found = await Promise.all(odd.map((key) => limitOf(gate, key)))
    expect(found).toEqual(odd.map((_, i) => 100 + i))
    const plain = await Promise.all(rows.map((_, i) => limitOf(gate, `plain-${i}`)))
    expect(plain).toEqual(rows.map((_, i) => 20 + (i % 9)))
  }
})

it('imports quotas of a calendar', async () => {
  const { server, gate, rule } = await open()
  const input = text('key,action,capacity,calendar,timeZone,anchor', 'ann,LIMIT,70,MONTH,Asia/Seoul,15')
  const report = await bulkOverrides(server.uri, input, { format: 'csv', ruleSetId: 'api', rule: rule('monthly') })
  expect(report).toMatchObject({ records: 1, created: 1, failed: 0 })
  const stored = await gate.overrides?.get('api', 'monthly', 'ann')
  expect(stored?.bands).toMatchObject([{ capacity: 70, calendar: 'MONTH', timeZone: 'Asia/Seoul', anchor: 15 }])
})

it('imports remaining balances, so migrated customers keep their permits', async () => {
  const { server, gate, rule } = await open()
  const input = text(
    'key,action,capacity,window,balance',
    'ann,LIMIT,100,1d,37',
    'bob,LIMIT,,,0',
    'carol,LIMIT,100,1d,',
  )
  const report = await bulkOverrides(server.uri, input, { format: 'csv', ruleSetId: 'api', rule: rule('keys') })
  expect(report).toMatchObject({ records: 3, created: 3, isLive: true })
  await soon(gate, 'ann').toBe(100)
  const left = async (apiKey: string) => (await gate.check({ apiKey, path: '/keys' }, { peek: true })).remaining
  expect([await left('ann'), await left('bob'), await left('carol')]).toEqual([36, 0, 99])
  const used = await gate.check({ apiKey: 'ann', path: '/keys' }, { permits: 37 })
  expect([used.allowed, used.remaining]).toEqual([true, 0])
  const wrong = text('key,action,balance', 'ann,LIMIT,much', 'bob,DENY,1')
  const rejected = await bulkOverrides(server.uri, wrong, { format: 'csv', ruleSetId: 'api', rule: rule('keys') })
  expect(rejected.failures.map(({ line }) => line)).toEqual([2, 3])
  expect(rejected.isLive).toBe(false)
})

it('reports an invalid record by line and changes nothing', async () => {
  const { server, gate, rule } = await open()
  await gate.overrides?.put('api', 'keys', { key: 'old', action: 'ALLOW' })
  const before = Number(await server.call('DBSIZE'))
  const input = text('{"key":"a","action":"DENY"}', '{"key":"b","action":"MAYBE"}', 'x', '{"key":"","action":"DENY"}')
  const report = await bulkOverrides(server.uri, input, { format: 'jsonl', ruleSetId: 'api', rule: rule('keys') })
  expect(report).toMatchObject({ records: 4, done: 1, failed: 3, isLive: false })
  expect(report.failures.map(({ line }) => line)).toEqual([2, 3, 4])
  expect(report.failures[0]?.message).toBe('action: must be one of LIMIT, ALLOW, DENY; received "MAYBE"')
  // Only the generation counter, whose numbers are never reused, has changed.
  expect(await server.call('DBSIZE')).toBe(before + 1)
  expect([await limitOf(gate, 'old'), await limitOf(gate, 'a')]).toEqual([-1, 2])
})

it('changes nothing if it is aborted, and the next import removes its leftovers', async () => {
  const { server, gate, rule } = await open()
  const interruption = new AbortController()
  async function* endless(): AsyncGenerator<Buffer> {
    for (let i = 0; ; i++) {
      if (i === 20) interruption.abort()
      yield Buffer.from(`{"key":"endless-${i}","action":"DENY"}\n`)
    }
  }
  const options = { format: 'jsonl', ruleSetId: 'api', rule: rule('keys') } as const
  const stopped = await bulkOverrides(server.uri, endless(), { ...options, signal: interruption.signal })
  expect(stopped).toMatchObject({ isLive: false, stoppedBy: { code: 'FLUXGATE_BULK_STOPPED' } })
  expect(await limitOf(gate, 'endless-1')).toBe(2)
  // Simulates a killed process.
  await server.call('HSET', 'fluxgate:{overrides}:live', 'importing ["api","keys"]', 1)
  const report = await bulkOverrides(server.uri, text('{"key":"a","action":"ALLOW"}'), options)
  expect(report.isLive).toBe(true)
  await soon(gate, 'a').toBe(-1)
})

it('the import that started last wins over a concurrent one', async () => {
  const { server, gate, rule } = await open()
  const options = { format: 'jsonl', ruleSetId: 'api', rule: rule('keys') } as const
  async function* first(): AsyncGenerator<Buffer> {
    yield Buffer.from('{"key":"first","action":"ALLOW"}\n')
    await bulkOverrides(server.uri, text('{"key":"second","action":"ALLOW"}'), options)
  }
  await expect(bulkOverrides(server.uri, first(), options)).rejects.toThrow(/nothing has changed/)
  await soon(gate, 'second').toBe(-1)
  expect(await limitOf(gate, 'first')).toBe(2)
})

it('imports ranges and replaces the earlier ones', async () => {
  const { server, gate, rule } = await open()
  const reasonOf = async (clientIp: string) => (await gate.check({ clientIp, path: '/ips' }, { peek: true })).reason
  await gate.overrides?.put('api', 'ips', { key: '11.0.0.0/8', action: 'DENY' })
  expect(await reasonOf('11.0.0.1')).toBe('DENY_LISTED')
  const input = text('key,action', '10.0.0.0/8,DENY', '10.0.0.1,ALLOW')
  const report = await bulkOverrides(server.uri, input, { format: 'csv', ruleSetId: 'api', rule: rule('ips') })
  expect(report).toMatchObject({ created: 2, isLive: true })
  await expect.poll(() => reasonOf('10.9.9.9')).toBe('DENY_LISTED')
  expect([await reasonOf('10.0.0.1'), await reasonOf('11.0.0.1')]).toEqual(['ALLOW_LISTED', 'ALLOWED'])
  expect(await server.call('HLEN', 'fluxgate:{overrides}:ranges')).toBe(1)
})

it('rejects a rule without overrides, and changes nothing in a dry run', async () => {
  const { server, rule } = await open()
  const options = { format: 'csv', ruleSetId: 'api' } as const
  await expect(bulkOverrides(server.uri, text('key,action'), { ...options, rule: rule('none') })).rejects.toMatchObject(
    {
      code: 'FLUXGATE_OVERRIDE_INVALID',
    },
  )
  await expect(bulkOverrides(server.uri, text('id,action'), { ...options, rule: rule('keys') })).rejects.toThrow(
    'The first line must contain the columns key and action, and may contain',
  )
  const dry = await bulkOverrides(server.uri, text('key,action', 'a,DENY', 'b,LIMIT'), {
    ...options,
    rule: rule('keys'),
    dryRun: true,
  })
  expect(dry).toMatchObject({ records: 2, done: 1, failed: 1, isLive: false })
  expect(await server.call('DBSIZE')).toBe(1)
})
