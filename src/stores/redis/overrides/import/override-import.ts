import { FluxGateError } from '../../../../core/errors.js'
import type { CommandWriter } from '../../../../redis/bulk/commands/writer.js'
import type { RedisConnection } from '../../../../redis/client/connection.js'
import { wrapRedisError } from '../../../../redis/client/errors.js'
import { hashSlotOfRange } from '../../../../redis/client/hash-slot.js'
import { hashOfSlot, type RuleRef, rangeField, slotOfKey } from '../keys.js'
import { OverrideBatches } from './batches.js'
import { OverrideGenerations } from './override-generations.js'

const nowScript = `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
`

/**
 * Registers an import under a new generation. Numbers are never reused, so one generation belongs to one import.
 * KEYS  active generations, pending cleanups
 * ARGV  field of the import, field of the rule
 * Returns { new generation, generation of an unfinished import or 0, active generation or 0 }
 */
const startScript = `${nowScript}local generation = redis.call('HINCRBY', KEYS[1], 'next', 1)
local unfinished = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], generation)
redis.call('ZADD', KEYS[2], nowMs, generation .. ' ' .. ARGV[2])
return { generation, unfinished or 0, redis.call('HGET', KEYS[1], ARGV[2]) or 0 }`

/**
 * Makes the generation active, unless a later import has started since.
 * KEYS  active generations, pending cleanups
 * ARGV  field of the import, field of the rule, generation
 * Returns 1, or 0 if the import is no longer registered
 */
const activateScript = `${nowScript}if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[3] then return 0 end
local previous = redis.call('HGET', KEYS[1], ARGV[2]) or 0
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'ranges', 1)
redis.call('ZREM', KEYS[2], ARGV[3] .. ' ' .. ARGV[2])
redis.call('ZADD', KEYS[2], nowMs, previous .. ' ' .. ARGV[2])
return 1`

const heartbeatScript = `${nowScript}return redis.call('ZADD', KEYS[1], 'XX', nowMs, ARGV[1])`
const heartbeatMs = 30_000

/** Scales the number of hashes per call with the batch size, so that counting and deleting delay others as little as writing does. */
const hashesPerOverride = 16

/** How long a replaced generation is kept for processes that have not refreshed yet. */
const graceSeconds = 60

/**
 * Replaces all overrides of a rule atomically. The import writes a new generation that no decision reads, verifies its size, and
 * then makes it active by changing one number. If anything fails before that, nothing changes.
 */
export class OverrideImport {
  readonly #prefix: string
  readonly #rule: RuleRef
  readonly #generations: OverrideGenerations
  readonly #batches: OverrideBatches
  #generation = 0
  #previous = 0
  #heartbeat: NodeJS.Timeout | undefined

  /** `batchSize` is the maximum number of overrides per command. Redis serves no other client while a command runs. */
  constructor(connection: RedisConnection, prefix: string, rule: RuleRef, batchSize: number) {
    this.#batches = new OverrideBatches(
      (slot) => Buffer.from(hashOfSlot(prefix, rule, this.#generation, slot)),
      batchSize,
    )
    this.#generations = new OverrideGenerations(connection, prefix, rule, hashesPerOverride * batchSize)
    this.#prefix = prefix
    this.#rule = rule
  }

  /** Registers the import, and deletes the generation of an earlier import of the same rule that did not finish. */
  start(): Promise<void> {
    return this.#wrapErrors(async () => {
      const { registerKeys, importField, ruleField } = this.#generations
      const reply = await this.#generations.eval(startScript, registerKeys, [importField, ruleField])
      const [generation, unfinished, active] = (reply as unknown[]).map(Number)
      this.#generation = generation as number
      this.#previous = active as number
      if (unfinished) await this.#generations.delete(unfinished)
      this.#heartbeat = setInterval(() => void this.#sendHeartbeat(), heartbeatMs)
      this.#heartbeat.unref()
    })
  }

  /** Writes or buffers an override. Returns true if a command was written. */
  write(key: string, isRange: boolean, value: Buffer, out: CommandWriter): boolean {
    if (isRange) {
      const field = rangeField(this.#rule, this.#generation, key)
      out.addCommand(['HSET', this.#generations.rangesKey, field, value])
      return true
    }
    const bytes = Buffer.from(key)
    return this.#batches.add(slotOfKey(this.#prefix, key), bytes, 0, bytes.length, value, out)
  }

  /** Like `write`, for the bytes of a key that satisfies `isPlainIdentity`. */
  writePlain(bytes: Buffer, from: number, to: number, value: Buffer, out: CommandWriter): boolean {
    return this.#batches.add(hashSlotOfRange(bytes, from, to), bytes, from, to, value, out)
  }

  /** Writes one command of buffered overrides. Returns false if none are left. */
  flush(out: CommandWriter): boolean {
    return this.#batches.flush(out)
  }

  /**
   * Makes the imported overrides active; all processes use them within a second. Rejects with `FLUXGATE_BULK_STOPPED` if their
   * number is not `expected`, or if a later import has replaced this one.
   */
  activate(expected: number, ranges: number): Promise<void> {
    return this.#wrapErrors(async () => {
      const generations = this.#generations
      const found = ranges + (await generations.count(this.#generation))
      if (found !== expected) throw stopped(`${expected} overrides were written, but Redis has ${found}. Run it again.`)
      const args = [generations.importField, generations.ruleField, String(this.#generation)]
      if (Number(await generations.eval(activateScript, generations.registerKeys, args)) === 0)
        throw stopped('a later import of the same rule has replaced it, or it timed out. Run one import at a time.')
      clearInterval(this.#heartbeat)
      await generations.deleteRanges(this.#generation, 'others')
      await generations.expire(this.#previous, graceSeconds)
    })
  }

  /** Deletes everything that was written. */
  discard(): Promise<void> {
    clearInterval(this.#heartbeat)
    return this.#wrapErrors(() => this.#generations.delete(this.#generation))
  }

  async #sendHeartbeat(): Promise<void> {
    const [, cleanup] = this.#generations.registerKeys
    const entry = this.#generations.cleanupEntry(this.#generation)
    await this.#generations.eval(heartbeatScript, [cleanup], [entry]).catch(() => {})
  }

  async #wrapErrors<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw wrapRedisError(error, 'import overrides')
    }
  }
}

const stopped = (reason: string): FluxGateError =>
  new FluxGateError('FLUXGATE_BULK_STOPPED', `The import has failed and nothing has changed: ${reason}`)
