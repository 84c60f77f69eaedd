import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { FluxGateError } from '../core/errors.js'
import { noIssues } from '../validation/issues.js'
import { loadConfig } from './config.js'
import type { Environment } from './placeholders.js'
import { checkRedisSettings, redisSettings } from './store.js'

const directory = mkdtempSync(join(tmpdir(), 'fluxgate-config-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function load(text: string, env: Environment) {
  writeFileSync(join(directory, 'fluxgate.yaml'), text)
  return loadConfig({ env, cwd: directory })
}

const failure = (text: string, env: Environment = {}): Promise<FluxGateError> =>
  load(text, env).then(
    () => expect.unreachable('expected a validation error'),
    (error: unknown) => (error instanceof FluxGateError ? error : Promise.reject(error)),
  )

const issues = async (text: string, env: Environment = {}) =>
  (await failure(text, env)).errors.map(({ path, message }) => `${path}: ${message}`)

const storeOf = async (text: string, env: Environment = {}) => (await load(text, env)).store
const gateStoreOf = async (text: string, env: Environment = {}) =>
  redisSettings((await load(text, env)).store) ?? 'memory'

const defaults = {
  sentinelName: 'mymaster',
  tls: false,
  prefix: 'fluxgate',
  timeoutMs: 100,
  connectTimeoutMs: 2_000,
  connections: 1,
  leaseShare: 0.1,
  cachedRejections: true,
}

describe('Redis store settings', () => {
  const nodes = [
    { host: 'a', port: 7000 },
    { host: '::1', port: 7001 },
  ]

  it.each([
    'store: { type: redis, uri: "redis://h:1", prefix: p, timeoutMs: 50, connections: 2 }',
    'store: { redis: { uri: "redis://h:1", prefix: p, timeoutMs: 50, connections: 2 } }',
    'store: { uri: "redis://h:1", prefix: p, timeout-ms: 50, connections: 2 }',
    'store: { type: redis, prefix: p, redis: { uri: "redis://h:1", timeout-ms: 50, connections: 2 } }',
  ])('accept %s', async (text) => {
    const store = { type: 'redis', uri: 'redis://h:1', prefix: 'p', timeoutMs: 50, connections: 2 }
    expect(await storeOf(text)).toEqual({ maxKeys: 1_000_000, maxReservations: 200_000, ...defaults, ...store })
  })

  it.each([
    ['store: { clusterNodes: [a:7000, "[::1]:7001"] }', {}],
    ['store: { clusterNodes: [{ host: a, port: 7000 }, { host: "::1", port: 7001 }] }', {}],
    ['store: { clusterNodes: "a:7000, [::1]:7001" }', {}],
    ['store: { type: redis }', { FLUXGATE_STORE_CLUSTER_NODES: 'a:7000,[::1]:7001' }],
    [
      `store: { cluster-nodes: [\${A}, "\${B:}", { host: "\${C}", port: \${D} }] }`,
      { A: 'a:7000', C: '::1', D: '7001' },
    ],
  ])('accept cluster nodes: %s', async (text, env) => {
    expect(await storeOf(text, env)).toMatchObject({ type: 'redis', clusterNodes: nodes })
  })

  it('accept the deprecated name of cachedRejections, which yields to the current one', async () => {
    const old = 'store: { uri: "redis://h", knownRefusals: false'
    expect(await gateStoreOf(`${old} }`)).toMatchObject({ cachedRejections: false })
    expect(await gateStoreOf(`${old}, cachedRejections: true }`)).toMatchObject({ cachedRejections: true })
    expect(await gateStoreOf('', { FLUXGATE_REDIS_URI: 'redis://h', FLUXGATE_STORE_KNOWN_REFUSALS: 'false' })).toEqual({
      ...defaults,
      uri: 'redis://h',
      cachedRejections: false,
    })
  })

  it('accept sentinels', async () => {
    expect(
      await storeOf('store: { sentinels: [a], sentinelName: main, password: p, sentinel-password: q }'),
    ).toMatchObject({
      type: 'redis',
      sentinels: [{ host: 'a', port: 26_379 }],
      sentinelName: 'main',
      password: 'p',
      sentinelPassword: 'q',
    })
  })

  it('are overridden by FLUXGATE_REDIS_URI', async () => {
    const env = { FLUXGATE_REDIS_URI: 'redis://:pw@other' }
    for (const text of [
      '',
      'store: { type: memory }',
      'store: { redis: { sentinels: [a], password: x, username: y } }',
    ]) {
      const { type, uri, sentinels, username, password } = await storeOf(text, env)
      expect([type, uri, sentinels, username, password]).toEqual([
        'redis',
        'redis://:pw@other',
        undefined,
        undefined,
        undefined,
      ])
    }
  })

  it('use the password of the file if the URI of the environment has none', async () => {
    const store = await storeOf('store: { password: x }', { FLUXGATE_REDIS_URI: 'redis://other' })
    expect(store).toMatchObject({ uri: 'redis://other', password: 'x' })
  })

  it.each([
    ['store: { type: memory, uri: "redis://h" }', {}],
    ['store: { redis: { uri: "redis://h" } }', { FLUXGATE_STORE_TYPE: 'memory' }],
    ['', { FLUXGATE_STORE_TYPE: 'memory', FLUXGATE_REDIS_URI: 'redis://h' }],
  ])('are ignored if the type is memory: %s %j', async (text, env) => {
    expect((await storeOf(text, env)).type).toBe('memory')
    expect(await gateStoreOf(text, env)).toBe('memory')
  })

  it('require exactly one address', async () => {
    expect(await issues('store: { type: redis }')).toEqual([
      'store: needs exactly one of uri, clusterNodes, sentinels; received none',
    ])
    expect(await issues('store: { redis: { uri: "redis://h", sentinels: [h] } }')).toEqual([
      'store: needs exactly one of uri, clusterNodes, sentinels; received uri and sentinels',
    ])
    expect(await issues('store: { uri: "redis://h", redis: { uri: "redis://h" } }')).toEqual([
      'store.redis.uri: duplicates store.uri; keep only one of them',
    ])
    expect(await issues('', { FLUXGATE_REDIS_URI: 'redis://a', FLUXGATE_STORE_URI: 'redis://b' })).toEqual([
      'FLUXGATE_REDIS_URI: duplicates FLUXGATE_STORE_URI; keep only one of them',
    ])
  })

  it('report errors with their path', async () => {
    const text =
      'store: { prefix: "a{b", timeoutMs: 0, leaseShare: 2, clusterNodes: [a, "b:x"], redis: { maxKeys: 1, conections: 2 } }'
    expect(await issues(text)).toEqual([
      expect.stringMatching(/^store.redis.maxKeys: unknown key; allowed: uri, /),
      'store.redis.conections: unknown key; did you mean connections?',
      'store.clusterNodes: must be a list of host:port or { host, port }, or a comma-separated string; received a list of 2 items',
      'store.prefix: must be 1 to 64 characters (letters, digits, . _ - :); received "a{b"',
      'store.timeoutMs: must be an integer from 1 to 60000; received 0',
      'store.leaseShare: must be a number greater than 0 and at most 1; received 2',
    ])
  })

  it.each([
    ['store: redis://:s3cret@h', {}],
    ['store: { uri: "redis://:s3cret" }', {}],
    ['store: { uri: s3cret }', {}],
    ['store: { password: [s3cret] }', {}],
    ['store: { type: "redis://:s3cret@h" }', {}],
    ['store: { clusterNodes: "redis://:s3cret@h" }', {}],
    ['store: { type: redis, "redis://:s3cret@h" }', {}],
    ['', { FLUXGATE_REDIS_URI: 'rediss://:s3cret@h/x' }],
    ['', { FLUXGATE_STORE_SENTINELS: 'redis://:s3cret@h' }],
    [`store: { uri: "redis://:\${PW}@h/x" }`, { PW: 's3cret' }],
  ])('never show passwords: %s', async (text, env) => {
    const { message, errors } = await failure(text, env)
    expect(message).toMatch(/the received value is hidden|unknown key/)
    expect(JSON.stringify([message, errors])).not.toContain('s3cret')
  })

  it('are passed to the gate completely', async () => {
    const store = await gateStoreOf('store: { uri: "redis://h", maxKeys: 5 }')
    expect(store).toEqual({ uri: 'redis://h', ...defaults })
  })

  it('are validated in code as in a file', () => {
    const check = (value: unknown) => {
      const found = noIssues()
      return [checkRedisSettings(value, 'store', found), found.kept.map(({ path, message }) => `${path}: ${message}`)]
    }
    const tls = { ca: 'x' }
    expect(check({ type: 'redis', clusterNodes: ['a:7000', '[::1]:7001'], tls, prefix: undefined })).toEqual([
      { clusterNodes: nodes, tls },
      [],
    ])
    const [, reported] = check({ type: 'memory', uri: 'redis://:s3cret', perfix: 'x', connections: '2' })
    expect(reported).toEqual([
      expect.stringMatching(/^store.type: unknown key; allowed: uri, /),
      expect.stringMatching(/^store.uri: must be redis:.*; the received value is hidden$/),
      'store.perfix: unknown key; did you mean prefix?',
      'store.connections: must be an integer from 1 to 64; received "2". Remove the quotes',
    ])
    expect(check('x')[1]).toEqual(['store: needs exactly one of uri, clusterNodes, sentinels; received none'])
  })
})
