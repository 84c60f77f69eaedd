import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { connectionOf } from './connection-of.js'
import { isMisconfigured, isNoScript, wrapRedisError } from './errors.js'

const withCode = (message: string, code: string) => Object.assign(new Error(message), { code })

describe('wrapRedisError', () => {
  it.each([
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
    "NOPERM this user has no permissions to run the 'evalsha' command",
    'ERR AUTH <password> called without any password configured for the default user. Are you sure?',
    'ERR invalid password',
    'ERR DB index is out of range',
    'ERR SELECT is not allowed in cluster mode',
    'ERR This instance has cluster support disabled',
    'MOVED 12182 127.0.0.1:7000',
  ])('reports "%s" as a misconfiguration and says how to fix it', (message) => {
    const error = wrapRedisError(new Error(message), 'decide')
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(error.message.split(message.replace(/\.$/, ''))).toEqual([
      'The bucket store failed to decide: ',
      expect.stringMatching(/^\. [A-Z].*\.$/),
    ])
    expect(error.cause).toMatchObject({ message })
  })

  it.each([
    withCode('write EPROTO … wrong version number', 'EPROTO'),
    withCode('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'),
    withCode('unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    withCode('certificate has expired', 'CERT_HAS_EXPIRED'),
    withCode("Hostname/IP does not match certificate's altnames", 'ERR_TLS_CERT_ALTNAME_INVALID'),
  ])('reports $code as a misconfiguration', (error) => {
    expect(isMisconfigured(error)).toBe(true)
    expect(wrapRedisError(error, 'decide').message).toContain(`the TLS handshake failed (${error.code}). Use rediss://`)
  })

  it.each([
    ['LOADING Redis is loading the dataset in memory', 'LOADING Redis is loading the dataset in memory'],
    ["READONLY You can't write against a read only replica.", "READONLY You can't write against a read only replica."],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN The cluster is down'],
    [
      "OOM command not allowed when used memory > 'maxmemory'.",
      "OOM command not allowed when used memory > 'maxmemory'.",
    ],
    ['connect ECONNREFUSED 10.0.0.7:6379', 'connect ECONNREFUSED 10.0.0.7:6379'],
    ['Connection is closed.', 'the connection is closed'],
    ['Reached the max retries per request limit (which is 0).', 'the connection was lost before the reply arrived'],
    ["ERR unknown command 'X', with args beginning with: 'api-key-7'", "ERR unknown command 'X'"],
  ])('reports "%s" as a temporary failure', (message, reason) => {
    const error = wrapRedisError(new Error(message), 'take permits back')
    expect(error).toBeInstanceOf(FluxGateError)
    expect(error.code).toBe('FLUXGATE_STORE_FAILED')
    expect(error.message).toBe(`The bucket store failed to take permits back: ${reason}`)
  })

  it.each([
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request during rehashing of slot',
    'Too many Cluster redirections. Last error: ReplyError: MOVED 12182 127.0.0.1:7000',
  ])('reports "%s" as a failure of single buckets, not of the store', (message) => {
    expect(wrapRedisError(new Error(message), 'decide')).toMatchObject({
      code: 'FLUXGATE_BUCKET_MOVING',
      message: 'The bucket store failed to decide: a slot is being migrated. Try again.',
      cause: { message },
    })
  })

  it('reports the first address of a host name that resolves to several', () => {
    const error = new AggregateError([
      new Error('connect ECONNREFUSED ::1:6379'),
      new Error('connect ECONNREFUSED 127.0.0.1:6379'),
    ])
    expect(wrapRedisError(error, 'decide').message).toContain('connect ECONNREFUSED ::1:6379')
  })

  it('removes the command and its arguments from the cause', () => {
    const error = Object.assign(new Error('WRONGPASS'), {
      command: { name: 'hello', args: ['3', 'AUTH', 'u', 'secret'] },
    })
    expect(wrapRedisError(error, 'decide').cause).not.toHaveProperty('command')
  })

  it('returns a FluxGateError unchanged and wraps values that are not errors', () => {
    const error = new FluxGateError('FLUXGATE_CLOSED', 'closed')
    expect(wrapRedisError(error, 'decide')).toBe(error)
    expect(wrapRedisError('odd', 'decide').message).toBe('The bucket store failed to decide: odd')
  })

  it('isNoScript recognises the reply to an unknown script digest', () => {
    expect(isNoScript(new Error('NOSCRIPT No matching script. Please use EVAL.'))).toBe(true)
    expect(isNoScript(new Error('ERR'))).toBe(false)
    expect(isNoScript('NOSCRIPT')).toBe(false)
  })
})

describe('connectionOf', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['redis://localhost', 'a string'],
    [() => {}, 'a function'],
    [{}, 'an object'],
    [new Map(), 'an object of class Map'],
    [Promise.resolve(), 'a promise; await it first'],
    [Object.create(null), 'an object'],
  ])('rejects %s and reports the type that it received', (client, found) => {
    expect(() => connectionOf(client)).toThrow(
      `client must be an ioredis Redis or Cluster, a node-redis client, pool, cluster or sentinel, or a URI such as redis://127.0.0.1:6379; received ${found}.`,
    )
    expect(() => connectionOf(client)).toThrow(expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }))
  })
})
