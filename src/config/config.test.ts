import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { FluxGateError } from '../core/errors.js'
import { loadConfig } from './config.js'
import type { Environment } from './placeholders.js'

const directory = mkdtempSync(join(tmpdir(), 'fluxgate-config-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function write(text: string, name = 'fluxgate.yaml'): string {
  writeFileSync(join(directory, name), text)
  return name
}

const load = (text: string, env: Environment = {}) => loadConfig({ path: write(text), env, cwd: directory })

async function failure(promise: Promise<unknown>): Promise<FluxGateError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof FluxGateError) return error
  throw new Error(`expected a FluxGateError, got ${String(error)}`)
}

const issues = async (text: string, env: Environment = {}) =>
  (await failure(load(text, env))).errors.map(({ path, message }) => `${path}: ${message}`)

const defaults = {
  server: {
    host: '127.0.0.1',
    port: 8_090,
    workers: 1,
    revealKeys: false,
    drainTimeout: 10_000,
    grpcAuthentication: 'TOKEN',
    grpcMaxConnectionAge: 3_600_000,
  },
  gateway: {
    host: '127.0.0.1',
    port: 8080,
    workers: 1,
    connectTimeout: 5_000,
    responseTimeout: 60_000,
    idleTimeout: 300_000,
    maxConnections: 1_024,
    clientShare: 0.5,
    minUploadRate: 240,
    uploadGracePeriod: 10_000,
    keepAlive: 4_000,
    clientKeepAlive: 75_000,
    maxHeaderSize: 16_384,
    maxUrlLength: 8_192,
    drainTimeout: 10_000,
    metricsHost: '127.0.0.1',
  },
  store: {
    type: 'memory',
    maxKeys: 1_000_000,
    maxReservations: 200_000,
    sentinelName: 'mymaster',
    tls: false,
    prefix: 'fluxgate',
    timeoutMs: 100,
    connectTimeoutMs: 2_000,
    connections: 1,
    leaseShare: 0.1,
    cachedRejections: true,
  },
  rules: { type: 'file', path: join(directory, 'rules.yaml'), collection: 'rate_limit_rules' },
  ratelimit: {
    missingRuleBehavior: 'ALLOW',
    clientIpHeader: 'X-Forwarded-For',
    ipv6Prefix: 56,
    headers: 'both',
    onStoreFailure: 'LOCAL',
    localShare: 1,
  },
  reload: {
    strategy: 'AUTO',
    pollingInterval: 30_000,
    resetBucketsOnReload: true,
    channel: 'fluxgate:rule-reload',
  },
  waitForRefill: { maxWaitTime: 5_000, maxConcurrentWaits: 100 },
  log: { level: 'info', format: 'auto' },
  areRulesOptional: true,
  locate: expect.any(Function),
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('loadConfig', () => {
  it('needs no file: every setting has a default', async () => {
    const cwd = join(directory, 'nowhere')
    const rules = { ...defaults.rules, path: join(cwd, 'rules.yaml') }
    expect(await loadConfig({ env: {}, cwd })).toEqual({ ...defaults, rules, file: undefined })
  })

  it.each(['', '# nothing yet', 'gateway:\nrules: {}'])('reads %j as a file without settings', async (text) => {
    expect(await load(text)).toEqual({
      ...defaults,
      file: join(directory, 'fluxgate.yaml'),
      fileDigest: digestOf(text),
    })
  })

  it('finds fluxgate.yaml in the working directory', async () => {
    write('gateway: { port: 1234 }')
    expect((await loadConfig({ env: {}, cwd: directory })).gateway.port).toBe(1234)
  })

  it('reads every setting', async () => {
    const text = `
server:
  { host: 0.0.0.0, port: 81, adminToken: "\${TOKEN:a}", check-token: c, tls: { cert: tls/cert.pem, key: /etc/key.pem }, workers: auto, revealKeys: true,
    drainTimeout: 6s, grpc: { port: 82, host: 10.0.0.2, authentication: NONE, max-connection-age: 5m } }
gateway:
  { host: 0.0.0.0, port: 0, routes: [], workers: auto, connectTimeout: 1s, responseTimeout: 2s, idleTimeout: 0s, maxConnections: 9, clientShare: 1, minUploadRate: 0, uploadGracePeriod: 1s,
    keepAlive: 3s, client-keep-alive: 4s, maxHeaderSize: 2048, maxUrlLength: 100, drainTimeout: 5s, accessLog: log/access.jsonl,
    metricsHost: 10.0.0.1, metricsPort: 9 }
store: { type: memory, maxKeys: 10 }
rules: { type: file, path: conf/api.yaml, prefix: p, database: d, collection: c }
ratelimit:
  { defaultRuleSetId: api, filterEnabled: true, includePatterns: [/api/**], excludePatterns: "/api/open, /health", missingRuleBehavior: REJECT,
    trustedProxies: [10.0.0.0/8], clientIpHeader: X-Real-IP, ipv6Prefix: 64, userIdHeader: X-User, apiKeyHeader: X-Key, headers: false,
    onStoreFailure: DENY, localShare: 0.25 }
reload: { strategy: POLLING, pollingInterval: 1.5s, resetBucketsOnReload: false, channel: news }
waitForRefill: { maxWaitTime: 250ms, maxConcurrentWaits: 7 }
log: { level: warn, format: json }
`
    expect(await load(text)).toEqual({
      file: join(directory, 'fluxgate.yaml'),
      fileDigest: digestOf(text),
      locate: expect.any(Function),
      server: {
        host: '0.0.0.0',
        port: 81,
        adminToken: 'a',
        checkToken: 'c',
        tlsCert: join(directory, 'tls/cert.pem'),
        tlsKey: '/etc/key.pem',
        workers: 'auto',
        revealKeys: true,
        drainTimeout: 6_000,
        grpcPort: 82,
        grpcHost: '10.0.0.2',
        grpcAuthentication: 'NONE',
        grpcMaxConnectionAge: 300_000,
      },
      gateway: {
        host: '0.0.0.0',
        port: 0,
        routes: [],
        workers: 'auto',
        connectTimeout: 1_000,
        responseTimeout: 2_000,
        idleTimeout: 0,
        maxConnections: 9,
        clientShare: 1,
        minUploadRate: 0,
        uploadGracePeriod: 1_000,
        keepAlive: 3_000,
        clientKeepAlive: 4_000,
        maxHeaderSize: 2_048,
        maxUrlLength: 100,
        drainTimeout: 5_000,
        accessLog: join(directory, 'log/access.jsonl'),
        metricsHost: '10.0.0.1',
        metricsPort: 9,
      },
      store: { ...defaults.store, maxKeys: 10 },
      rules: { type: 'file', path: join(directory, 'conf/api.yaml'), prefix: 'p', database: 'd', collection: 'c' },
      ratelimit: {
        defaultRuleSetId: 'api',
        filterEnabled: true,
        includePatterns: ['/api/**'],
        excludePatterns: ['/api/open', '/health'],
        missingRuleBehavior: 'DENY',
        trustedProxies: ['10.0.0.0/8'],
        clientIpHeader: 'X-Real-IP',
        ipv6Prefix: 64,
        userIdHeader: 'X-User',
        apiKeyHeader: 'X-Key',
        headers: false,
        onStoreFailure: 'DENY',
        localShare: 0.25,
      },
      reload: { strategy: 'POLLING', pollingInterval: 1_500, resetBucketsOnReload: false, channel: 'news' },
      waitForRefill: { maxWaitTime: 250, maxConcurrentWaits: 7 },
      log: { level: 'warn', format: 'json' },
      areRulesOptional: false,
    })
  })

  it('accepts kebab-case and camelCase on every level', async () => {
    const config = await load('wait-for-refill: { max-wait-time: 1s }\nratelimit: { ipv6-prefix: 48 }')
    expect([config.waitForRefill.maxWaitTime, config.ratelimit.ipv6Prefix]).toEqual([1_000, 48])
  })

  it('reads JSON from a .json file', async () => {
    const path = write(`{ "gateway": { "port": "\${PORT:81}" } }`, 'fluxgate.json')
    expect((await loadConfig({ path, env: {}, cwd: directory })).gateway.port).toBe(81)
  })

  it('resolves the rules path relative to the configuration file', async () => {
    const config = await loadConfig({ path: join(directory, write('rules: { path: a.yaml }')), env: {}, cwd: '/' })
    expect(config.rules.path).toBe(join(directory, 'a.yaml'))
  })
})

describe('environment variables', () => {
  it('override the file', async () => {
    const env = {
      FLUXGATE_GATEWAY_PORT: '9090',
      FLUXGATE_RELOAD_RESET_BUCKETS_ON_RELOAD: 'false',
      FLUXGATE_RATELIMIT_LOCAL_SHARE: '0.5',
      FLUXGATE_RATELIMIT_DEFAULT_RULE_SET_ID: '2026',
      FLUXGATE_WAIT_FOR_REFILL_MAX_WAIT_TIME: '2',
    }
    const config = await load('gateway: { port: 1 }\nwait-for-refill: { max-wait-time: 9s }', env)
    expect(config.gateway.port).toBe(9090)
    expect(config.reload.resetBucketsOnReload).toBe(false)
    expect(config.ratelimit).toMatchObject({ localShare: 0.5, defaultRuleSetId: '2026' })
    expect(config.waitForRefill.maxWaitTime).toBe(2_000)
  })

  it('contain comma-separated lists, and routes as JSON', async () => {
    const env = {
      FLUXGATE_GATEWAY_ROUTES: '[{ "id": "api", "uri": "http://127.0.0.1:3000", "predicates": ["Path=/api/**"] }]',
      FLUXGATE_RATELIMIT_TRUSTED_PROXIES: '10.0.0.1, 192.168.0.0/16',
      FLUXGATE_RATELIMIT_HEADERS: 'false',
      FLUXGATE_GATEWAY_ACCESS_LOG: 'stdout',
    }
    const { gateway, ratelimit } = await load('gateway: { accessLog: x, routes: [] }', env)
    expect(gateway.routes).toMatchObject([{ id: 'api', origin: { hostname: '127.0.0.1', port: 3_000 } }])
    expect(gateway.accessLog).toBe('stdout')
    expect(ratelimit).toMatchObject({ trustedProxies: ['10.0.0.1', '192.168.0.0/16'], headers: false })
    expect(await issues('', { FLUXGATE_GATEWAY_ROUTES: 'none' })).toEqual([
      'FLUXGATE_GATEWAY_ROUTES: must be a list of routes: { id, uri, predicates, filters }; received "none"',
    ])
  })

  it('contain paths relative to the working directory, not to the file', async () => {
    const path = join(directory, write('rules: { path: a.yaml }'))
    const config = await loadConfig({ path, env: { FLUXGATE_RULES_PATH: 'b.yaml' }, cwd: '/srv' })
    expect(config.rules.path).toBe('/srv/b.yaml')
  })

  it('are ignored if they are empty or unknown', async () => {
    const env = { FLUXGATE_GATEWAY_PORT: '', FLUXGATE_SEED: '7', FLUXGATE_TEST_X: 'y' }
    expect((await load('gateway: { port: 1 }', env)).gateway.port).toBe(1)
  })

  it('appear by name in error messages', async () => {
    expect(await issues('', { FLUXGATE_STORE_TYPE: 'disk', FLUXGATE_GATEWAY_PORT: 'http' })).toEqual([
      'FLUXGATE_GATEWAY_PORT: must be an integer from 0 to 65535; received "http"',
      'FLUXGATE_STORE_TYPE: must be one of memory, redis; received "disk"',
    ])
  })

  it('fill in placeholders, also inside braces, and as numbers and booleans where needed', async () => {
    const text = `
gateway: { port: \${PORT:8081}, host: \${HOST} }
ratelimit: { defaultRuleSetId: \${SET:}, localShare: \${SHARE} }
reload: { resetBucketsOnReload: \${RESET}, pollingInterval: "\${N}m" }
rules: { path: \${DIR:conf}/rules.yaml }
`
    const config = await load(text, { HOST: 'localhost', RESET: 'false', SHARE: '0.5', N: '2' })
    expect(config.gateway).toEqual({ ...defaults.gateway, host: 'localhost', port: 8081 })
    expect(config.ratelimit).toMatchObject({ defaultRuleSetId: undefined, localShare: 0.5 })
    expect(config.reload).toMatchObject({ resetBucketsOnReload: false, pollingInterval: 120_000 })
    expect(config.rules.path).toBe(join(directory, 'conf/rules.yaml'))
  })
})

describe('validation errors', () => {
  it('are reported all at once, with path, received value and allowed values', async () => {
    const error = await failure(
      load(`
gatway: {}
gateway: { prot: 80, port: 65536, host: '' }
store: memory
wait-for-refill: { max-wait-time: soon, maxConcurrentWaits: 1.5, max-concurrent-waits: 2 }
reload: { strategy: SOMETIMES, pollingInterval: \${EVERY} }
rules: { path: "\${A}\${B}" }
ratelimit: { missingRuleBehavior: MAYBE, localShare: 0, color: red, ipv6Prefix: }
`),
    )
    expect(error.code).toBe('FLUXGATE_CONFIG_INVALID')
    expect(error.message.split('\n')).toEqual([
      'fluxgate.yaml: 16 errors',
      '  gatway: unknown key; did you mean gateway? (line 2, column 1)',
      '  gateway.prot: unknown key; did you mean port? (line 3, column 12)',
      '  gateway.host: must be a non-empty string; received "" (line 3, column 41)',
      '  gateway.port: must be an integer from 0 to 65535; received 65536 (line 3, column 28)',
      '  store: must be an object with type, maxKeys, maxReservations, uri, clusterNodes, sentinels, sentinelName, username, password, sentinelUsername, sentinelPassword, tls, prefix, timeoutMs, connectTimeoutMs, connections, leaseShare, cachedRejections, knownRefusals, redis; received "memory" (line 4, column 8)',
      `  rules.path: environment variable A is not set; set it, or add a default: \${A:default} (line 7, column 16)`,
      `  rules.path: environment variable B is not set; set it, or add a default: \${B:default} (line 7, column 16)`,
      '  ratelimit.color: unknown key; allowed: defaultRuleSetId, filterEnabled, includePatterns, excludePatterns, missingRuleBehavior, trustedProxies, clientIpHeader, ipv6Prefix, userIdHeader, apiKeyHeader, headers, onStoreFailure, localShare (line 8, column 57)',
      '  ratelimit.missingRuleBehavior: must be one of ALLOW, DENY; received "MAYBE" (line 8, column 35)',
      '  ratelimit.ipv6Prefix: must be an integer from 1 to 128; received null (line 8, column 81)',
      '  ratelimit.localShare: must be a number greater than 0 and at most 1; received 0 (line 8, column 54)',
      '  reload.strategy: must be one of AUTO, WATCH, PUBSUB, POLLING, NONE; received "SOMETIMES" (line 6, column 21)',
      `  reload.pollingInterval: environment variable EVERY is not set; set it, or add a default: \${EVERY:default} (line 6, column 49)`,
      '  wait-for-refill.max-concurrent-waits: duplicates maxConcurrentWaits; keep only one of them (line 5, column 88)',
      '  wait-for-refill.max-wait-time: must be a duration from 0s to 366d (a number of seconds, or text such as 500ms, 1.5s, 1m, 2h, 30d); received "soon" (line 5, column 35)',
      '  wait-for-refill.maxConcurrentWaits: must be an integer from 0 to 1000000; received 1.5 (line 5, column 61)',
    ])
  })

  it('of the syntax have a line and a column, even after placeholders', async () => {
    expect(await issues(`gateway:\n  { host: \${A:b}, port: 1, port: 2 }`)).toEqual([
      'line 2, column 28: "port" is given twice',
    ])
  })

  it.each(['constructor: {}', '__proto__: { port: 1 }', 'gateway: { toString: 1 }', '- 1', 'text'])(
    '%s is an error without side effects',
    async (text) => expect(await issues(text)).toHaveLength(1),
  )

  it('never show a secret, wherever the file is malformed', async () => {
    const lines = [
      'server:\n  adminToken: "@"',
      'server:\n  adminToken: @',
      'store:\n  password: "@"',
      'store:\n  password: @',
    ]
    for (const line of lines) {
      const text = `${line.replace('@', 's3cr3t-s3cr3t')}\n  maxKeys: 0\ngateway: { port: 1 }\n`
      for (let at = 0; at <= text.length; at++) {
        for (const damage of ['', '"', "'", '{', '}', '[', ':', '\n', '\t', '*', '&', '!', '|', '>', '%', ' - ']) {
          const error = await failure(load(text.slice(0, at) + damage + text.slice(at + 1)))
          expect(error.message).not.toMatch(/s3cr3t-s3cr3t/)
        }
      }
    }
  })

  it('name a missing or unreadable file', async () => {
    const missing = await failure(loadConfig({ path: 'none.yaml', env: {}, cwd: directory }))
    expect(missing.code).toBe('FLUXGATE_CONFIG_UNREADABLE')
    expect(missing.message).toBe('Configuration file not found: none.yaml. Create it, or correct the path.')
    const folder = await failure(loadConfig({ path: '.', env: {}, cwd: directory }))
    expect(folder).toMatchObject({ code: 'FLUXGATE_CONFIG_UNREADABLE' })
    writeFileSync(join(directory, 'latin.yaml'), Buffer.from([0x23, 0xe9]))
    const latin = await failure(loadConfig({ path: 'latin.yaml', env: {}, cwd: directory }))
    expect(latin.message).toBe('latin.yaml is not valid UTF-8. Save the file as UTF-8.')
  })
})
