import type { RedisConnection } from '../../../../redis/client/connection.js'
import { activeKey, cleanupKey, hashOfSlot, type RuleRef, rangesKey, ruleField, slotCount } from '../keys.js'

/**
 * Deletes the address ranges of a rule: those of one generation, or those of all others.
 * KEYS  ranges
 * ARGV  rule set, rule, generation, `it` or `others`
 */
const deleteRangesScript = `for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local range = cjson.decode(name)
  local isOfRule = range[1] == ARGV[1] and range[2] == ARGV[2]
  if isOfRule and (range[3] == tonumber(ARGV[3])) == (ARGV[4] == 'it') then redis.call('HDEL', KEYS[1], name) end
end
return 1`

/**
 * Removes a generation from the registers of imports and of pending cleanups.
 * KEYS  active generations, pending cleanups
 * ARGV  field of the import, generation, cleanup entry
 */
const unregisterScript = `if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return redis.call('ZREM', KEYS[2], ARGV[3])`

const countScript = `local sum = 0
for _, hash in ipairs(KEYS) do sum = sum + redis.call('HLEN', hash) end
return sum`

const expireScript = `for _, hash in ipairs(KEYS) do redis.call('EXPIRE', hash, ARGV[1]) end
return 1`

const concurrentCalls = 4
/** On a cluster, each call covers one hash, and the hashes are spread over all nodes. */
const concurrentClusterCalls = 64

/** The generations of the overrides of one rule. Each import writes a new one. */
export class OverrideGenerations {
  readonly registerKeys: readonly [active: string, cleanup: string]
  readonly ruleField: string
  readonly rangesKey: string
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #rule: RuleRef
  readonly #hashesPerCall: number

  /** Redis serves no other client during a call, so `hashesPerCall` bounds the delay of others. */
  constructor(connection: RedisConnection, prefix: string, rule: RuleRef, hashesPerCall = 64) {
    this.#hashesPerCall = hashesPerCall
    this.registerKeys = [activeKey(prefix), cleanupKey(prefix)]
    this.ruleField = ruleField(rule)
    this.rangesKey = rangesKey(prefix)
    this.#connection = connection
    this.#prefix = prefix
    this.#rule = rule
  }

  /** The field that stores the generation of a running import. */
  get importField(): string {
    return `importing ${this.ruleField}`
  }

  cleanupEntry(generation: number): string {
    return `${generation} ${this.ruleField}`
  }

  async count(generation: number): Promise<number> {
    let count = 0
    await this.#forEachHash(generation, async (hashes) => {
      const found = Number(await this.eval(countScript, hashes, []))
      count += found
    })
    return count
  }

  /** Deletes a generation after a delay, because other processes use it until their next refresh. */
  async expire(generation: number, seconds: number): Promise<void> {
    await this.deleteRanges(generation, 'it')
    await this.#forEachHash(generation, async (hashes) => {
      await this.eval(expireScript, hashes, [String(seconds)])
    })
    await this.#unregister(generation)
  }

  async delete(generation: number): Promise<void> {
    await this.deleteRanges(generation, 'it')
    await this.#forEachHash(generation, async (hashes) => {
      await this.#connection.call(hashes[0] as string, ['UNLINK', ...hashes])
    })
    await this.#unregister(generation)
  }

  /** Deletes the ranges of the generation, or of all others. */
  deleteRanges(generation: number, which: 'it' | 'others'): Promise<unknown> {
    const { ruleSetId, ruleId } = this.#rule
    return this.eval(deleteRangesScript, [this.rangesKey], [ruleSetId, ruleId, String(generation), which])
  }

  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#connection.call(keys[0] as string, ['EVAL', script, String(keys.length), ...keys, ...args])
  }

  #unregister(generation: number): Promise<unknown> {
    const args = [this.importField, String(generation), this.cleanupEntry(generation)]
    return this.eval(unregisterScript, this.registerKeys, args)
  }

  /** On a cluster, each hash needs its own call, because each is in another slot. */
  async #forEachHash(generation: number, act: (hashes: readonly string[]) => Promise<void>): Promise<void> {
    const { isCluster } = this.#connection
    const size = isCluster ? 1 : this.#hashesPerCall
    const maxCalls = isCluster ? concurrentClusterCalls : concurrentCalls
    let calls: Promise<void>[] = []
    for (let slot = 0; slot < slotCount; slot += size) {
      const count = Math.min(size, slotCount - slot)
      const hashes = Array.from({ length: count }, (_, i) => hashOfSlot(this.#prefix, this.#rule, generation, slot + i))
      calls.push(act(hashes))
      if (calls.length < maxCalls) continue
      await Promise.all(calls)
      calls = []
    }
    await Promise.all(calls)
  }
}
