import { describe, expect, it } from 'vitest'
import { parseDocument } from '../rules/document/document.js'
import { noIssues } from '../validation/issues.js'
import type { Environment } from './placeholders.js'
import { readSettings } from './read-settings.js'

function read(text: string, env: Environment = {}) {
  const issues = noIssues()
  const settings = readSettings(parseDocument(text, 'yaml'), env, issues)
  return { ...settings, issues: issues.kept.map(({ path, message }) => `${path}: ${message}`) }
}

const mongo = 'mongodb://db.example.org/x'
const redis = 'redis://cache.example.org:6379'

describe('rule store settings', () => {
  it.each([
    [`rules: { type: mongo, uri: "${mongo}" }`, {}],
    [`rules: { mongo: { uri: "${mongo}", database: fluxgate } }`, {}],
    [`rules: { uri: "${mongo}" }`, {}],
    ['', { FLUXGATE_MONGO_URI: mongo }],
    ['', { FLUXGATE_RULES_URI: mongo }],
    ['rules: { type: file, path: a.yaml }', { FLUXGATE_MONGO_URI: mongo }],
    [`rules: { type: mongo, uri: "${redis}" }`, { FLUXGATE_MONGO_URI: mongo }],
  ])('select MongoDB: %s %j', (text, env) => {
    const { rules, issues } = read(text, env)
    expect(issues).toEqual([])
    expect(rules).toMatchObject({ type: 'mongo', uri: mongo, collection: 'rate_limit_rules' })
  })

  it.each([
    [`rules: { type: redis, uri: "${redis}" }`, {}],
    [`rules: { redis: { uri: "${redis}" } }`, {}],
    [`rules: { uri: "${redis}" }`, {}],
    ['rules: { type: redis }', { FLUXGATE_RULES_URI: redis }],
  ])('select a separate Redis: %s %j', (text, env) => {
    const { rules, store, issues } = read(text, env)
    expect(issues).toEqual([])
    expect([rules.type, rules.uri, store.type]).toEqual(['redis', redis, 'memory'])
  })

  it('share the Redis of the bucket store if there is no URI', () => {
    const { rules, issues } = read('rules: { type: redis }', { FLUXGATE_REDIS_URI: redis })
    expect(issues).toEqual([])
    expect([rules.type, rules.uri]).toEqual(['redis', undefined])
  })

  it('select a file if the environment sets the type, despite any URI', () => {
    const env = { FLUXGATE_RULES_TYPE: 'file', FLUXGATE_MONGO_URI: mongo }
    expect(read(`rules: { uri: "${redis}" }`, env).rules).toMatchObject({ type: 'file', uri: undefined })
  })

  it.each([
    [
      'rules: { type: redis }',
      {},
      'rules: type redis needs a Redis URI; set rules.uri, or configure a Redis store to share it',
    ],
    ['rules: { type: mongo }', {}, 'rules: type mongo needs a MongoDB URI; set rules.uri or FLUXGATE_MONGO_URI'],
    [
      `rules: { type: redis, uri: "${mongo}" }`,
      {},
      'rules.uri: must be redis://… or rediss://… for type redis; the received value is hidden',
    ],
    [
      'rules: { type: mongo, uri: "mongodb:///" }',
      {},
      'rules.uri: must be redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo; the received value is hidden',
    ],
    ['rules: { mongo: { path: x } }', {}, 'rules.mongo.path: unknown key; allowed: uri, database, collection'],
    [
      '',
      { FLUXGATE_MONGO_URI: mongo, FLUXGATE_RULES_URI: mongo },
      'FLUXGATE_MONGO_URI: duplicates FLUXGATE_RULES_URI; keep only one of them',
    ],
  ])('reject %s', (text, env, issue) => {
    expect(read(text, env).issues).toContain(issue)
  })
})

describe('server settings', () => {
  it('read the tokens from environment variables with short names', () => {
    const { server, issues } = read('server: { adminToken: old }', {
      FLUXGATE_ADMIN_TOKEN: 'admin',
      FLUXGATE_CHECK_TOKEN: 'check',
      FLUXGATE_SERVER_PORT: '9000',
    })
    expect(issues).toEqual([])
    expect(server).toMatchObject({ adminToken: 'admin', checkToken: 'check', port: 9_000 })
  })

  it('never show an invalid token', () => {
    expect(read('server: { adminToken: "s3cr3t s3cr3t" }').issues).toEqual([
      'server.adminToken: must be 1 to 1024 printable ASCII characters without spaces; the received value is hidden',
    ])
  })

  it.each([
    ['server: { tls: { cert: a.pem } }', 'server', 'key'],
    ['server: { tlsKey: a.pem }', 'server', 'cert'],
    ['gateway: { tls: { cert: a.pem } }', 'gateway', 'key'],
    ['gateway: { tlsKey: a.pem }', 'gateway', 'cert'],
  ])('require both certificate and key: %s', (text, section, missing) => {
    expect(read(text).issues).toEqual([
      `${section}.tls: ${missing} is missing; set both cert and key (paths of PEM files), or neither`,
    ])
  })
})
