import { FluxGateError } from '../../../core/errors.js'
import type { CommandWriter } from '../../../redis/bulk/commands/command-writer.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { wrapRedisError } from '../../../redis/client/connection-errors.js'
import { hashSlotOfRange } from '../../../redis/client/hash-slot.js'
import { OverrideGenerations, type Rule } from './generations.js'
import { OverrideGroups } from './groups.js'
import { hashName, identitySlot } from './hashes.js'
import { rangeName } from './live-overrides.js'

const nowScript = `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
`

/** Numbers never come again, so that a generation is written by one import only. */
const beginScript = `${nowScript}local generation = redis.call('HINCRBY', KEYS[1], 'next', 1)
local unfinished = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], generation)
redis.call('ZADD', KEYS[2], nowMs, generation .. ' ' .. ARGV[2])
return { generation, unfinished or 0, redis.call('HGET', KEYS[1], ARGV[2]) or 0 }`

/** Only for the import that began last: whoever began earlier has lost its place, and its overrides. */
const liveScript = `${nowScript}if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[3] then return 0 end
local before = redis.call('HGET', KEYS[1], ARGV[2]) or 0
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'ranges', 1)
redis.call('ZREM', KEYS[2], ARGV[3] .. ' ' .. ARGV[2])
redis.call('ZADD', KEYS[2], nowMs, before .. ' ' .. ARGV[2])
return 1`

const signOfLifeScript = `${nowScript}return redis.call('ZADD', KEYS[1], 'XX', nowMs, ARGV[1])`
const signOfLifeMs = 30_000

/** Counting and removing is as gentle as writing: for each override in a command, one call is about so many hashes. */
const hashesPerOverride = 16

/** Processes that have not heard of it yet look at the old ones for a while. */
const oldSeconds = 60

/**
 * All overrides of a rule, replaced together. They are written as a new generation, which nobody looks at; once it is
 * complete and counted, one number says that it is in force. Until then, and if anything fails, nothing has changed.
 */
export class OverrideImport {
  readonly #prefix: string
  readonly #rule: Rule
  readonly #generations: OverrideGenerations
  readonly #groups: OverrideGroups
  #generation = 0
  #before = 0
  #timer: NodeJS.Timeout | undefined

  /** `together` is how many overrides one command writes at most: whoever else asks the server waits for it. */
  constructor(connection: RedisConnection, prefix: string, rule: Rule, together: number) {
    this.#groups = new OverrideGroups((slot) => Buffer.from(hashName(prefix, rule, this.#generation, slot)), together)
    this.#generations = new OverrideGenerations(connection, prefix, rule, hashesPerOverride * together)
    this.#prefix = prefix
    this.#rule = rule
  }

  /** What an import that never ended has left behind is removed. */
  begin(): Promise<void> {
    return this.#wrapped(async () => {
      const { marker, name } = this.#generations
      const reply = await this.#generations.eval(beginScript, this.#keys, [marker, name])
      const [generation, unfinished, before] = (reply as unknown[]).map(Number)
      this.#generation = generation as number
      this.#before = before as number
      if (unfinished) await this.#generations.remove(unfinished)
      this.#timer = setInterval(() => void this.#signOfLife(), signOfLifeMs)
      this.#timer.unref()
    })
  }

  /** Writes an override, or holds it until there are more for the same command; whether a command was written. */
  write(key: string, isRange: boolean, value: Buffer, out: CommandWriter): boolean {
    const { ruleSetId, ruleId } = this.#rule
    if (isRange) {
      const range = rangeName(ruleSetId, ruleId, this.#generation, key)
      out.addCommand(['HSET', this.#generations.live.rangesKey, range, value])
      return true
    }
    const bytes = Buffer.from(key)
    return this.#groups.add(identitySlot(this.#prefix, key), bytes, 0, bytes.length, value, out)
  }

  /** The same of a key that is `isPlainIdentity`, from its bytes. */
  writePlain(bytes: Buffer, from: number, to: number, value: Buffer, out: CommandWriter): boolean {
    return this.#groups.add(hashSlotOfRange(bytes, from, to), bytes, from, to, value, out)
  }

  /** Once there are no more: writes a command of those that were held; false if there is none. */
  writeRest(out: CommandWriter): boolean {
    return this.#groups.flush(out)
  }

  /** Rejects if there are not as many as were written. In force everywhere within a second. */
  goLive(expected: number, ranges: number): Promise<void> {
    return this.#wrapped(async () => {
      const generations = this.#generations
      const found = ranges + (await generations.count(this.#generation))
      if (found !== expected) throw failed(`${expected} overrides were written, and ${found} are there`)
      const args = [generations.marker, generations.name, String(this.#generation)]
      if (Number(await generations.eval(liveScript, this.#keys, args)) === 0)
        throw failed('another import for the same rule has begun since, or this one was taken for dead')
      clearInterval(this.#timer)
      await generations.forgetRanges(this.#generation, 'others')
      await generations.expire(this.#before, oldSeconds)
    })
  }

  /** Removes what was written. */
  abandon(): Promise<void> {
    clearInterval(this.#timer)
    return this.#wrapped(() => this.#generations.remove(this.#generation))
  }

  get #keys(): readonly string[] {
    return [this.#generations.live.liveKey, this.#generations.owedKey]
  }

  async #signOfLife(): Promise<void> {
    const { owedKey } = this.#generations
    await this.#generations
      .eval(signOfLifeScript, [owedKey], [this.#generations.owed(this.#generation)])
      .catch(() => {})
  }

  async #wrapped<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw wrapRedisError(error, 'import overrides')
    }
  }
}

const failed = (reason: string): FluxGateError =>
  new FluxGateError('FLUXGATE_BULK_STOPPED', `The import was given up, and nothing has changed: ${reason}.`)
