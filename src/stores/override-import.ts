import type { BucketGroup } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import type { CommandWriter } from '../redis/bulk/command-writer.js'
import type { RedisConnection } from '../redis/connection.js'
import { wrapRedisError } from '../redis/connection-errors.js'
import { hashSlotOfRange } from '../redis/hash-slot.js'
import { LiveOverrides, rangeName, ruleName } from './live-overrides.js'
import { OverrideGroups } from './override-groups.js'
import { hashName, identitySlot, overrideHashes } from './override-hashes.js'

type Rule = Pick<BucketGroup, 'ruleSetId' | 'ruleId'>

/** Numbers never come again, so that a generation is written by one import only. */
const beginScript = `local generation = redis.call('HINCRBY', KEYS[1], 'next', 1)
local unfinished = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], generation)
return { generation, unfinished or 0, redis.call('HGET', KEYS[1], ARGV[2]) or 0 }`

/** Only for the import that began last: whoever began earlier has lost its place, and its overrides. */
const liveScript = `if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[3] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'ranges', 1)
return 1`

const abandonScript = `if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`

/** Of the rule, all ranges but those of one generation, or those of it. */
const forgetRangesScript = `for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local range = cjson.decode(name)
  local isOurs = range[1] == ARGV[1] and range[2] == ARGV[2]
  if isOurs and (range[3] == tonumber(ARGV[3])) == (ARGV[4] == 'it') then redis.call('HDEL', KEYS[1], name) end
end
return 1`

const countScript = `local sum = 0
for _, hash in ipairs(KEYS) do sum = sum + redis.call('HLEN', hash) end
return sum`

const expireScript = `for _, hash in ipairs(KEYS) do redis.call('EXPIRE', hash, ARGV[1]) end
return 1`

/** Processes that have not heard of it yet look at the old ones for a while. */
const oldSeconds = 60
const hashesAtOnce = 256
const callsAtOnce = 64

/**
 * All overrides of a rule, replaced together. They are written as a new generation, which nobody looks at; once it is
 * complete and counted, one number says that it is in force. Until then, and if anything fails, nothing has changed.
 */
export class OverrideImport {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #rule: Rule
  readonly #live: LiveOverrides
  readonly #groups: OverrideGroups
  #generation = 0
  #before = 0

  /** `together` is how many overrides one command writes at most: whoever else asks the server waits for it. */
  constructor(connection: RedisConnection, prefix: string, rule: Rule, together: number) {
    this.#groups = new OverrideGroups((slot) => Buffer.from(hashName(prefix, rule, this.#generation, slot)), together)
    this.#connection = connection
    this.#prefix = prefix
    this.#rule = rule
    this.#live = new LiveOverrides(connection, prefix)
  }

  /** What an import that never ended has left behind is removed. */
  begin(): Promise<void> {
    return this.#wrapped(async () => {
      const reply = await this.#eval(beginScript, this.#live.liveKey, [this.#marker, this.#name])
      const [generation, unfinished, before] = (reply as unknown[]).map(Number)
      this.#generation = generation as number
      this.#before = before as number
      if (unfinished) await this.#remove(unfinished)
    })
  }

  /** Writes an override, or holds it until there are more for the same command; whether a command was written. */
  write(key: string, isRange: boolean, value: Buffer, out: CommandWriter): boolean {
    const { ruleSetId, ruleId } = this.#rule
    if (isRange) {
      out.addCommand(['HSET', this.#live.rangesKey, rangeName(ruleSetId, ruleId, this.#generation, key), value])
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
      let found = ranges
      await this.#eachHash(this.#generation, async (hashes) => {
        const count = Number(await this.#eval(countScript, hashes, []))
        found += count
      })
      if (found !== expected) throw failed(`${expected} overrides were written, and ${found} are there`)
      const args = [this.#marker, this.#name, String(this.#generation)]
      if (Number(await this.#eval(liveScript, this.#live.liveKey, args)) === 0)
        throw failed('another import for the same rule has begun since')
      await this.#forgetRanges(this.#generation, 'others')
      await this.#eachHash(this.#before, async (hashes) => {
        await this.#eval(expireScript, hashes, [String(oldSeconds)])
      })
    })
  }

  /** Removes what was written. */
  abandon(): Promise<void> {
    return this.#wrapped(async () => {
      await this.#eval(abandonScript, this.#live.liveKey, [this.#marker, String(this.#generation)])
      await this.#remove(this.#generation)
    })
  }

  async #remove(generation: number): Promise<void> {
    await this.#forgetRanges(generation, 'it')
    await this.#eachHash(generation, (hashes) =>
      this.#connection.call(hashes[0] as string, ['UNLINK', ...hashes]).then(() => {}),
    )
  }

  #forgetRanges(generation: number, which: 'it' | 'others'): Promise<unknown> {
    const { ruleSetId, ruleId } = this.#rule
    return this.#eval(forgetRangesScript, this.#live.rangesKey, [ruleSetId, ruleId, String(generation), which])
  }

  /** On a cluster each of them by itself, because each is in another slot. */
  async #eachHash(generation: number, act: (hashes: readonly string[]) => Promise<void>): Promise<void> {
    const most = this.#connection.isCluster ? 1 : hashesAtOnce
    let underWay: Promise<void>[] = []
    let hashes: string[] = []
    const flush = async (): Promise<void> => {
      if (hashes.length > 0) underWay.push(act(hashes))
      hashes = []
      if (underWay.length < callsAtOnce) return
      await Promise.all(underWay)
      underWay = []
    }
    for (const hash of overrideHashes(this.#prefix, this.#rule, generation)) {
      hashes.push(hash)
      if (hashes.length === most) await flush()
    }
    await flush()
    await Promise.all(underWay)
  }

  #eval(script: string, keys: string | readonly string[], args: readonly string[]): Promise<unknown> {
    const names = typeof keys === 'string' ? [keys] : keys
    const command = ['EVAL', script, String(names.length), ...names, ...args]
    return this.#connection.call(names[0] as string, command)
  }

  get #name(): string {
    return ruleName(this.#rule.ruleSetId, this.#rule.ruleId)
  }

  get #marker(): string {
    return `importing ${this.#name}`
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
