import { FluxGateError, messageOf } from '../../core/errors.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { parseRedisUri } from '../../redis/client/open/address.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import { isLoopback } from '../../server/request/loopback.js'
import type { Finding } from './doctor.js'

interface Looked {
  readonly connection: RedisConnection
  readonly key: string
  readonly timeoutMs: number
}

const readyMs = 3_000
const oldest = [6, 2] as const
const mostSkewMs = 1_000

/** Redis as buckets use it: reached, new enough, running scripts, keeping what it is given, and quick enough. */
export async function examineRedis(
  address: RedisOptions,
  { prefix, timeoutMs }: { readonly prefix: string; readonly timeoutMs: number },
): Promise<Finding[]> {
  const connection = connectRedis(address, readyMs)
  const looked = { connection, key: `${prefix}:{doctor}:probe`, timeoutMs }
  try {
    await connection.ready?.(readyMs)
    await ask(looked, 'PING')
  } catch (error) {
    await connection.close()
    // Something is wrong on this side, and to start a server would not help.
    const isOurs = error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_MISCONFIGURED'
    const advice = `${isOurs ? 'See to that' : 'Start it'}, or correct store.uri or its credentials.`
    return [{ name: 'redis', status: 'fail', message: messageOf(error), advice }]
  }
  try {
    return [
      ...(await server(looked)),
      ...transport(address),
      await script(looked),
      await clock(looked),
      await latency(looked),
    ]
  } catch (error) {
    return [{ name: 'redis', status: 'fail', message: messageOf(error), advice: 'Look into the log of the server.' }]
  } finally {
    await connection.close()
  }
}

const ask = ({ connection, key }: Looked, ...command: string[]): Promise<unknown> => connection.call(key, command)

/** What INFO says; a user who may not ask is told that nothing is known. */
async function server(looked: Looked): Promise<Finding[]> {
  let info: ReadonlyMap<string, string>
  try {
    info = infoOf(String(await ask(looked, 'INFO')))
  } catch (error) {
    const advice = 'Allow the user the command INFO to have version, role and eviction looked at.'
    return [{ name: 'redis.version', status: 'warn', message: messageOf(error), advice }]
  }
  return [version(info), role(info), eviction(info)]
}

function version(info: ReadonlyMap<string, string>): Finding {
  const valkey = info.get('valkey_version')
  const found = info.get('redis_version') ?? ''
  const name = 'redis.version'
  if (valkey !== undefined) return { name, status: 'ok', message: `Valkey ${valkey}` }
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const isEnough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  if (isEnough) return { name, status: 'ok', message: `Redis ${found}` }
  return {
    name,
    status: 'fail',
    message: `Redis ${found || 'of an unknown version'}`,
    advice: 'Run Redis 6.2 or later, or Valkey.',
  }
}

function role(info: ReadonlyMap<string, string>): Finding {
  const name = 'redis.role'
  if (info.get('role') !== 'slave') return { name, status: 'ok', message: 'it takes writes' }
  return {
    name,
    status: 'fail',
    message: 'it is a replica, which takes no writes',
    advice: 'Name the primary, or Sentinels.',
  }
}

/** A bucket that is evicted is a full one: its owner may begin anew. */
function eviction(info: ReadonlyMap<string, string>): Finding {
  const name = 'redis.maxmemory-policy'
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const isLimited = (info.get('maxmemory') ?? '0') !== '0'
  if (policy === 'noeviction' || policy === 'unknown') return { name, status: 'ok', message: policy }
  const advice = 'Set maxmemory-policy noeviction, and enough memory: an evicted bucket is a full one.'
  if (isLimited) return { name, status: 'warn', message: `${policy}: buckets may be forgotten`, advice }
  return { name, status: 'ok', message: `${policy}, but without maxmemory nothing is evicted` }
}

function transport({ uri, clusterNodes, sentinels, tls }: RedisOptions): Finding[] {
  const target = uri === undefined ? undefined : parseRedisUri(uri)
  const nodes = target === undefined ? [...(clusterNodes ?? []), ...(sentinels ?? [])] : [target]
  const isSecure = target?.tls === true || (tls !== undefined && tls !== false)
  const isNear = nodes.every((node) => typeof node !== 'string' && isLoopback(node.host))
  if (isSecure) return [{ name: 'redis.tls', status: 'ok', message: 'TLS' }]
  if (isNear) return [{ name: 'redis.tls', status: 'ok', message: 'plain, on this machine' }]
  const advice = 'Use rediss://, or a network that nobody else is on.'
  return [{ name: 'redis.tls', status: 'warn', message: 'passwords and identities travel in plain text', advice }]
}

/** A script that writes a key and removes it, because that is what every decision does. */
async function script(looked: Looked): Promise<Finding> {
  const name = 'redis.scripts'
  const text = "redis.call('SET', KEYS[1], '1', 'PX', 1000) redis.call('DEL', KEYS[1]) return redis.call('TIME')[1]"
  try {
    await ask(looked, 'EVAL', text, '1', looked.key)
    return { name, status: 'ok', message: 'scripts run, and may write' }
  } catch (error) {
    const advice = 'Allow the user EVAL, EVALSHA, and to write keys of this prefix.'
    return { name, status: 'fail', message: messageOf(error), advice }
  }
}

async function clock(looked: Looked): Promise<Finding> {
  const name = 'redis.clock'
  const before = Date.now()
  const [seconds = 0, microseconds = 0] = ((await ask(looked, 'TIME')) as unknown[]).map(Number)
  const after = Date.now()
  const theirs = seconds * 1_000 + microseconds / 1_000
  const skewMs = Math.round(theirs < before ? before - theirs : theirs > after ? theirs - after : 0)
  const message = `${skewMs} ms apart from this machine's`
  if (skewMs <= mostSkewMs) return { name, status: 'ok', message }
  const advice = 'Limits follow the clock of Redis, but what clients are told is compared with others: run NTP on both.'
  return { name, status: 'warn', message, advice }
}

async function latency(looked: Looked): Promise<Finding> {
  const name = 'redis.latency'
  const times: number[] = []
  for (let i = 0; i < 11; i++) {
    const startedAt = performance.now()
    await ask(looked, 'PING')
    times.push(performance.now() - startedAt)
  }
  const median = times.sort((a, b) => a - b)[5] as number
  const message = `an answer takes ${median.toFixed(1)} ms, the deadline is ${looked.timeoutMs} ms`
  if (median < looked.timeoutMs / 2) return { name, status: 'ok', message }
  const advice = 'Bring Redis nearer, or give it more time: store.timeoutMs.'
  return { name, status: 'warn', message, advice }
}

const infoOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(':')
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )
