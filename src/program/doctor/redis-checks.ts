import { FluxGateError, messageOf } from '../../core/errors.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { parseRedisUri } from '../../redis/client/open/address.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import { isLoopback } from '../../server/request/loopback.js'
import type { Finding } from './finding.js'

interface RedisProbe {
  readonly connection: RedisConnection
  readonly key: string
  readonly timeoutMs: number
}

const readyMs = 3_000
const minVersion = [6, 2] as const
const maxSkewMs = 1_000

/** Checks Redis for use as a bucket store: connection, version, role, eviction policy, TLS, scripts, clock and latency. */
export async function checkRedis(
  address: RedisOptions,
  { prefix, timeoutMs }: { readonly prefix: string; readonly timeoutMs: number },
): Promise<Finding[]> {
  const connection = connectRedis(address, readyMs)
  const probe = { connection, key: `${prefix}:{doctor}:probe`, timeoutMs }
  try {
    await connection.ready?.(readyMs)
    await ask(probe, 'PING')
  } catch (error) {
    await connection.close()
    // A rejected connection is a configuration error: starting a server would not help.
    const isMisconfigured = error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_MISCONFIGURED'
    const advice = isMisconfigured
      ? 'Correct the configuration: store.uri and its credentials.'
      : 'Start Redis, or correct store.uri and its credentials.'
    return [{ name: 'redis', status: 'fail', message: messageOf(error), advice }]
  }
  try {
    return [
      ...(await server(probe)),
      ...transport(address),
      await script(probe),
      await clock(probe),
      await latency(probe),
    ]
  } catch (error) {
    return [{ name: 'redis', status: 'fail', message: messageOf(error), advice: 'Check the log of the Redis server.' }]
  } finally {
    await connection.close()
  }
}

const ask = ({ connection, key }: RedisProbe, ...command: string[]): Promise<unknown> => connection.call(key, command)

/** Findings from INFO. Warns if the ACL user may not run it. */
async function server(probe: RedisProbe): Promise<Finding[]> {
  let info: ReadonlyMap<string, string>
  try {
    info = infoOf(String(await ask(probe, 'INFO')))
  } catch (error) {
    const advice = 'Allow the ACL user to run INFO, so that version, role and eviction policy can be checked.'
    return [{ name: 'redis.version', status: 'warn', message: messageOf(error), advice }]
  }
  return [version(info), role(info), eviction(info)]
}

function version(info: ReadonlyMap<string, string>): Finding {
  const valkey = info.get('valkey_version')
  const redis = info.get('redis_version') ?? ''
  const name = 'redis.version'
  if (valkey !== undefined) return { name, status: 'ok', message: `Valkey ${valkey}` }
  const [major = 0, minor = 0] = redis.split('.').map(Number)
  const isSupported = major > minVersion[0] || (major === minVersion[0] && minor >= minVersion[1])
  if (isSupported) return { name, status: 'ok', message: `Redis ${redis}` }
  return {
    name,
    status: 'fail',
    message: `Redis ${redis || '(unknown version)'} is not supported`,
    advice: 'Use Redis 6.2 or later, or Valkey.',
  }
}

function role(info: ReadonlyMap<string, string>): Finding {
  const name = 'redis.role'
  if (info.get('role') !== 'slave') return { name, status: 'ok', message: 'the server accepts writes' }
  return {
    name,
    status: 'fail',
    message: 'the server is a replica and rejects writes',
    advice: 'Configure the primary, or Sentinels.',
  }
}

/** Warns if Redis may evict buckets: an evicted bucket counts as full. */
function eviction(info: ReadonlyMap<string, string>): Finding {
  const name = 'redis.maxmemory-policy'
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const isLimited = (info.get('maxmemory') ?? '0') !== '0'
  if (policy === 'noeviction' || policy === 'unknown') return { name, status: 'ok', message: policy }
  const advice = 'Set maxmemory-policy noeviction and provide enough memory: an evicted bucket counts as full.'
  if (isLimited) return { name, status: 'warn', message: `${policy}: buckets may be evicted`, advice }
  return { name, status: 'ok', message: `${policy}, but no maxmemory is set, so nothing is evicted` }
}

function transport({ uri, clusterNodes, sentinels, tls }: RedisOptions): Finding[] {
  const target = uri === undefined ? undefined : parseRedisUri(uri)
  const nodes = target === undefined ? [...(clusterNodes ?? []), ...(sentinels ?? [])] : [target]
  const isSecure = target?.tls === true || (tls !== undefined && tls !== false)
  const isLocal = nodes.every((node) => typeof node !== 'string' && isLoopback(node.host))
  if (isSecure) return [{ name: 'redis.tls', status: 'ok', message: 'TLS' }]
  if (isLocal) return [{ name: 'redis.tls', status: 'ok', message: 'no TLS, on loopback' }]
  const advice = 'Use rediss://, or a private network.'
  return [{ name: 'redis.tls', status: 'warn', message: 'passwords and keys are sent in plain text', advice }]
}

/** Runs a script that writes and deletes a key, as decisions do. */
async function script(probe: RedisProbe): Promise<Finding> {
  const name = 'redis.scripts'
  const text = "redis.call('SET', KEYS[1], '1', 'PX', 1000) redis.call('DEL', KEYS[1]) return redis.call('TIME')[1]"
  try {
    await ask(probe, 'EVAL', text, '1', probe.key)
    return { name, status: 'ok', message: 'scripts run and can write' }
  } catch (error) {
    const advice = 'Allow the ACL user to run EVAL and EVALSHA, and to write keys with this prefix.'
    return { name, status: 'fail', message: messageOf(error), advice }
  }
}

async function clock(probe: RedisProbe): Promise<Finding> {
  const name = 'redis.clock'
  const before = Date.now()
  const [seconds = 0, microseconds = 0] = ((await ask(probe, 'TIME')) as unknown[]).map(Number)
  const after = Date.now()
  const redisMs = seconds * 1_000 + microseconds / 1_000
  const skewMs = Math.round(redisMs < before ? before - redisMs : redisMs > after ? redisMs - after : 0)
  const message = `${skewMs} ms difference from the clock of this machine`
  if (skewMs <= maxSkewMs) return { name, status: 'ok', message }
  const advice = 'Run NTP on both machines: limits use the Redis clock, and clients compare reset times with their own.'
  return { name, status: 'warn', message, advice }
}

async function latency(probe: RedisProbe): Promise<Finding> {
  const name = 'redis.latency'
  const times: number[] = []
  for (let i = 0; i < 11; i++) {
    const startedAt = performance.now()
    await ask(probe, 'PING')
    times.push(performance.now() - startedAt)
  }
  const median = times.sort((a, b) => a - b)[5] as number
  const message = `median round trip ${median.toFixed(1)} ms, timeout ${probe.timeoutMs} ms`
  if (median < probe.timeoutMs / 2) return { name, status: 'ok', message }
  const advice = 'Move Redis closer, or increase store.timeoutMs.'
  return { name, status: 'warn', message, advice }
}

const infoOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(':')
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )
