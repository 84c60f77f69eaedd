import { describe, expect, it } from 'vitest'
import { parseNode, parseRedisUri } from './address.js'
import { openRedis, type RedisOptions } from './open-redis.js'
import { redisTarget } from './target.js'

describe('Redis URI', () => {
  it.each([
    ['redis://localhost', { host: 'localhost', port: 6379, tls: false }],
    ['REDIS://localhost:7000/', { host: 'localhost', port: 7000, tls: false }],
    ['rediss://cache.example.org:6380/2', { host: 'cache.example.org', port: 6380, tls: true, database: 2 }],
    ['redis://:pw@10.0.0.7', { host: '10.0.0.7', port: 6379, tls: false, password: 'pw' }],
    ['redis://app:pw@h', { host: 'h', port: 6379, tls: false, username: 'app', password: 'pw' }],
    ['redis://app@h', { host: 'h', port: 6379, tls: false, username: 'app' }],
    ['redis://:%40%3A%2F%23%25%C3%A9@h/0', { host: 'h', port: 6379, tls: false, password: '@:/#%é', database: 0 }],
    ['redis://[::1]:7000', { host: '::1', port: 7000, tls: false }],
    ['redis://[fe80::1]', { host: 'fe80::1', port: 6379, tls: false }],
  ])('parses %s', (uri, address) => expect(parseRedisUri(uri)).toEqual(address))

  it.each([
    '',
    'localhost:6379',
    'http://localhost',
    'redis:',
    'redis://',
    'redis:///0',
    'redis://h:0',
    'redis://h:65536',
    'redis://h:port',
    'redis://h/name',
    'redis://h/1/2',
    'redis://h?db=1',
    'redis://h#x',
    'redis://:100%@h',
    'redis://:pa/ss@h',
    'redis://user:12/ss@h',
    'redis://a b',
    'redis://h,g',
    7,
    undefined,
  ])('rejects %s', (uri) => expect(parseRedisUri(uri)).toBeUndefined())

  it('is never shown in errors', () => {
    const uri = 'redis://user:s3cret/s3cret@s3cret'
    expect(() => openRedis({ uri })).toThrow(/^uri must be redis:\/\/user:password@host:port\/database/)
    expect(() => openRedis({ uri })).toThrow(expect.objectContaining({ code: 'FLUXGATE_CONFIG_INVALID' }))
    expect(() => openRedis({ uri })).not.toThrow('s3cret')
  })
})

describe('Redis node', () => {
  it.each([
    ['h', { host: 'h', port: 1 }],
    ['h:7000', { host: 'h', port: 7000 }],
    ['[::1]:7000', { host: '::1', port: 7000 }],
    ['[::1]', { host: '::1', port: 1 }],
    ['::1', { host: '::1', port: 1 }],
    [{ host: 'h' }, { host: 'h', port: 1 }],
    [
      { host: '::1', port: 7 },
      { host: '::1', port: 7 },
    ],
  ])('parses %j', (value, node) => expect(parseNode(value, 1)).toEqual(node))

  it.each([
    '',
    ':7000',
    'h:',
    'h:0',
    'h:65536',
    'h:7000/1',
    'a b',
    'redis://h:1',
    {},
    { host: 'h', port: '1' },
    { host: 'h', db: 1 },
    null,
    7,
  ])('rejects %j', (value) => expect(parseNode(value, 1)).toBeUndefined())
})

describe('Redis options', () => {
  it('require exactly one address', () => {
    const opening = (options: RedisOptions) => () => redisTarget(options)
    expect(opening({})).toThrow('The Redis options need exactly one of uri, clusterNodes, sentinels; received none.')
    expect(opening({ uri: 'redis://h', sentinels: ['h'] })).toThrow('sentinels; received uri and sentinels.')
    expect(opening({ clusterNodes: [] })).toThrow('clusterNodes must be a list of host:port')
    expect(opening({ sentinels: ['h', 'h:x'] })).toThrow('sentinels must be a list of host:port')
    expect(() => openRedis({ uri: 'redis://h', connections: 0 })).toThrow(
      'connections must be an integer from 1 to 64; received 0.',
    )
  })

  it('override the credentials and TLS of the URI', () => {
    expect(redisTarget({ uri: 'redis://a:b@h/1', username: 'c', password: 'd', tls: true })).toEqual({
      kind: 'server',
      node: { host: 'h', port: 6379 },
      database: 1,
      where: 'h:6379',
      username: 'c',
      password: 'd',
      tls: {},
    })
  })

  it('have default ports and names', () => {
    expect(redisTarget({ sentinels: ['a', 'b:1'], sentinelPassword: 's' })).toEqual({
      kind: 'sentinels',
      nodes: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 1 },
      ],
      name: 'mymaster',
      where: 'the sentinels a:26379, b:1 of mymaster',
      sentinelPassword: 's',
    })
    expect(redisTarget({ clusterNodes: ['a', { host: '::1', port: 7 }] })).toMatchObject({
      kind: 'cluster',
      where: 'the cluster of a:6379, [::1]:7',
    })
  })
})
