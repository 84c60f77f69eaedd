import { describe, expect, it } from 'vitest'
import { parseDocument } from '../rules/document/document.js'
import { noMistakes } from '../validation/issues.js'
import type { Environment } from './placeholders.js'
import { readSettings } from './reader.js'

function read(text: string, env: Environment = {}) {
  const mistakes = noMistakes()
  const settings = readSettings(parseDocument(text, 'yaml'), env, mistakes)
  return { ...settings, mistakes: mistakes.kept.map(({ path, message }) => `${path}: ${message}`) }
}

const mongo = 'mongodb://db.example.org/x'
const redis = 'redis://cache.example.org:6379'

describe('where rules are kept', () => {
  it.each([
    [`rules: { type: mongo, uri: "${mongo}" }`, {}],
    [`rules: { mongo: { uri: "${mongo}", database: fluxgate } }`, {}],
    [`rules: { uri: "${mongo}" }`, {}],
    ['', { FLUXGATE_MONGO_URI: mongo }],
    ['', { FLUXGATE_RULES_URI: mongo }],
    ['rules: { type: file, path: a.yaml }', { FLUXGATE_MONGO_URI: mongo }],
    [`rules: { type: mongo, uri: "${redis}" }`, { FLUXGATE_MONGO_URI: mongo }],
  ])('is MongoDB: %s %j', (text, env) => {
    const { rules, mistakes } = read(text, env)
    expect(mistakes).toEqual([])
    expect(rules).toMatchObject({ type: 'mongo', uri: mongo, collection: 'rate_limit_rules' })
  })

  it.each([
    [`rules: { type: redis, uri: "${redis}" }`, {}],
    [`rules: { redis: { uri: "${redis}" } }`, {}],
    [`rules: { uri: "${redis}" }`, {}],
    ['rules: { type: redis }', { FLUXGATE_RULES_URI: redis }],
  ])('is a Redis of its own: %s %j', (text, env) => {
    const { rules, store, mistakes } = read(text, env)
    expect(mistakes).toEqual([])
    expect([rules.type, rules.uri, store.type]).toEqual(['redis', redis, 'memory'])
  })

  it('is the Redis of the buckets where it has no address of its own', () => {
    const { rules, mistakes } = read('rules: { type: redis }', { FLUXGATE_REDIS_URI: redis })
    expect(mistakes).toEqual([])
    expect([rules.type, rules.uri]).toEqual(['redis', undefined])
  })

  it('is a file if the environment says so, whatever addresses there are', () => {
    const env = { FLUXGATE_RULES_TYPE: 'file', FLUXGATE_MONGO_URI: mongo }
    expect(read(`rules: { uri: "${redis}" }`, env).rules).toMatchObject({ type: 'file', uri: undefined })
  })

  it.each([
    [
      'rules: { type: redis }',
      {},
      'rules: found no address of Redis; allowed: uri, or buckets in Redis (store), which rules may share',
    ],
    [
      'rules: { type: mongo }',
      {},
      'rules: found no address of MongoDB; allowed: uri, or the variable FLUXGATE_MONGO_URI',
    ],
    [
      `rules: { type: redis, uri: "${mongo}" }`,
      {},
      'rules.uri: not an address for type redis; allowed: redis://… or rediss://…',
    ],
    [
      'rules: { type: mongo, uri: "mongodb:///" }',
      {},
      'rules.uri: not understood; allowed: redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo',
    ],
    ['rules: { mongo: { path: x } }', {}, 'rules.mongo.path: unknown key; allowed: uri, database, collection'],
    [
      '',
      { FLUXGATE_MONGO_URI: mongo, FLUXGATE_RULES_URI: mongo },
      'FLUXGATE_MONGO_URI: found beside FLUXGATE_RULES_URI, which means the same; allowed: only one of them',
    ],
  ])('has a mistake in %s', (text, env, mistake) => {
    expect(read(text, env).mistakes).toContain(mistake)
  })
})

describe('the server', () => {
  it('takes its tokens from the environment, under their short names', () => {
    const { server, mistakes } = read('server: { adminToken: old }', {
      FLUXGATE_ADMIN_TOKEN: 'admin',
      FLUXGATE_CHECK_TOKEN: 'check',
      FLUXGATE_SERVER_PORT: '9000',
    })
    expect(mistakes).toEqual([])
    expect(server).toMatchObject({ adminToken: 'admin', checkToken: 'check', port: 9_000 })
  })

  it('shows no token that it refuses', () => {
    expect(read('server: { adminToken: "s3cr3t s3cr3t" }').mistakes).toEqual([
      'server.adminToken: not understood; allowed: 1 to 1024 visible characters of ASCII, without spaces',
    ])
  })

  it.each([
    ['server: { tls: { cert: a.pem } }', 'server', 'key'],
    ['server: { tlsKey: a.pem }', 'server', 'cert'],
    ['gateway: { tls: { cert: a.pem } }', 'gateway', 'key'],
    ['gateway: { tlsKey: a.pem }', 'gateway', 'cert'],
  ])('needs both a certificate and its key: %s', (text, section, missing) => {
    expect(read(text).mistakes).toEqual([
      `${section}.tls: found no ${missing}; allowed: both cert and key, paths of files in PEM, or neither`,
    ])
  })
})
