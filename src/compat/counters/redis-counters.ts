import { createHash } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'
import { connectRedis, type RedisLocation } from '../../redis/client/connect-redis.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { type LuaSource, Script } from '../../redis/client/script.js'
import type { Block, HitCounters, Hits } from './hit-counters.js'

export const lua = (source: string): LuaSource => ({ source, sha: createHash('sha1').update(source).digest('hex') })

/**
 * KEYS: counter. ARGV: hits, window in milliseconds or 0; optional: limit, window of hits above it, and FIRST, EACH
 * or DOUBLE. Returns the hits and the time to live.
 */
const addScript = lua(`local hits = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 and ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
local limit = tonumber(ARGV[3] or '')
if limit and hits > limit and (ARGV[5] ~= 'FIRST' or hits - tonumber(ARGV[1]) <= limit) then
  left = tonumber(ARGV[4])
  if ARGV[5] == 'DOUBLE' then left = math.min(left * 2 ^ (hits - limit - 1), 2 ^ 52) end
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left))
end
return { hits, left }`)

/** KEYS: counter. Returns the hits and the time to live, or nothing. */
const getScript = lua(`local hits = redis.call('GET', KEYS[1])
if not hits then return {} end
return { tonumber(hits), redis.call('PTTL', KEYS[1]) }`)

/**
 * Counters in Redis, each a plain number with a time to live. rate-limiter-flexible, rate-limit-redis and @fastify/rate-limit use
 * the same layout, so counts continue after a migration. Each operation is one atomic call.
 */
export class RedisCounters implements HitCounters {
  readonly #prefix: string
  readonly #add = new Script(addScript)
  readonly #get = new Script(getScript)
  readonly #connection: RedisConnection

  constructor(where: RedisLocation, prefix: string) {
    this.#prefix = prefix
    this.#connection = connectRedis(where, undefined)
  }

  /** Runs a script that counts in place of `add`. It returns the hits and the time to live, as `add` does. */
  async run(script: Script, key: string, args: readonly string[]): Promise<Hits> {
    return hitsIn(await script.run(this.#connection, 0, [this.#prefix + key], args))
  }

  async add(key: string, hits: number, windowMs: number, block?: Block): Promise<Hits> {
    const blocking = block === undefined ? [] : [String(block.limit), wholeMs(block.ms), block.on]
    return this.run(this.#add, key, [String(hits), wholeMs(windowMs), ...blocking])
  }

  async set(key: string, hits: number, windowMs: number): Promise<void> {
    const expiry = windowMs > 0 ? ['PX', wholeMs(windowMs)] : []
    await this.#call(key, ['SET', this.#prefix + key, String(hits), ...expiry])
  }

  async get(key: string): Promise<Hits | undefined> {
    const reply = await this.#get.run(this.#connection, 0, [this.#prefix + key], [])
    return Array.isArray(reply) && reply.length === 0 ? undefined : hitsIn(reply)
  }

  async delete(key: string): Promise<boolean> {
    return Number(await this.#call(key, ['DEL', this.#prefix + key])) > 0
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  #call(key: string, command: readonly string[]): Promise<unknown> {
    return this.#connection.call(this.#prefix + key, command)
  }
}

/** Redis accepts whole milliseconds only. 0 means that a window never ends, so shorter windows are rounded up to 1. */
const wholeMs = (ms: number): string => String(ms > 0 ? Math.max(Math.round(ms), 1) : 0)

function hitsIn(reply: unknown): Hits {
  const [hits, leftMs] = Array.isArray(reply) ? reply.map(Number) : []
  if (hits === undefined || leftMs === undefined || Number.isNaN(hits + leftMs))
    throw new FluxGateError('FLUXGATE_STORE_FAILED', 'The reply of Redis to a counter script is malformed.')
  return { hits, leftMs }
}
