import type { BucketGroup } from '../../../core/bucket-store.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { overrideHashes } from './hashes.js'
import { LiveOverrides, ruleName } from './live-overrides.js'

export type Rule = Pick<BucketGroup, 'ruleSetId' | 'ruleId'>

/** Of the rule, all ranges but those of one generation, or those of it. */
const forgetRangesScript = `for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local range = cjson.decode(name)
  local isOurs = range[1] == ARGV[1] and range[2] == ARGV[2]
  if isOurs and (range[3] == tonumber(ARGV[3])) == (ARGV[4] == 'it') then redis.call('HDEL', KEYS[1], name) end
end
return 1`

/** Nobody imports it any more, and nobody owes its removal. */
const settleScript = `if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return redis.call('ZREM', KEYS[2], ARGV[3])`

const countScript = `local sum = 0
for _, hash in ipairs(KEYS) do sum = sum + redis.call('HLEN', hash) end
return sum`

const expireScript = `for _, hash in ipairs(KEYS) do redis.call('EXPIRE', hash, ARGV[1]) end
return 1`

/** How many calls are under way. */
const callsAtOnce = 4
/** On a cluster each hash is in another slot, and they are on several nodes. */
const callsAtOnceOnCluster = 64

/** All overrides of a rule that were imported together, wherever they are. */
export class OverrideGenerations {
  readonly live: LiveOverrides
  /** By generation and rule: what has to be removed some day unless it is in force then, and the last sign of life of it. */
  readonly owedKey: string
  readonly name: string
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #rule: Rule
  readonly #hashesAtOnce: number

  /** One call is about so many hashes, and nobody else is answered meanwhile. */
  constructor(connection: RedisConnection, prefix: string, rule: Rule, hashesAtOnce = 64) {
    this.#hashesAtOnce = hashesAtOnce
    this.live = new LiveOverrides(connection, prefix)
    this.owedKey = owedKey(prefix)
    this.name = ruleName(rule.ruleSetId, rule.ruleId)
    this.#connection = connection
    this.#prefix = prefix
    this.#rule = rule
  }

  /** Under this name it is noted which one is being imported. */
  get marker(): string {
    return `importing ${this.name}`
  }

  owed(generation: number): string {
    return `${generation} ${this.name}`
  }

  async count(generation: number): Promise<number> {
    let found = 0
    await this.#eachHash(generation, async (hashes) => {
      const count = Number(await this.eval(countScript, hashes, []))
      found += count
    })
    return found
  }

  /** Processes that have not heard of another one look at it for a while. */
  async expire(generation: number, seconds: number): Promise<void> {
    await this.forgetRanges(generation, 'it')
    await this.#eachHash(generation, async (hashes) => {
      await this.eval(expireScript, hashes, [String(seconds)])
    })
    await this.#settle(generation)
  }

  async remove(generation: number): Promise<void> {
    await this.forgetRanges(generation, 'it')
    await this.#eachHash(generation, async (hashes) => {
      await this.#connection.call(hashes[0] as string, ['UNLINK', ...hashes])
    })
    await this.#settle(generation)
  }

  forgetRanges(generation: number, which: 'it' | 'others'): Promise<unknown> {
    const { ruleSetId, ruleId } = this.#rule
    return this.eval(forgetRangesScript, [this.live.rangesKey], [ruleSetId, ruleId, String(generation), which])
  }

  eval(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#connection.call(keys[0] as string, ['EVAL', script, String(keys.length), ...keys, ...args])
  }

  #settle(generation: number): Promise<unknown> {
    const args = [this.marker, String(generation), this.owed(generation)]
    return this.eval(settleScript, [this.live.liveKey, this.owedKey], args)
  }

  /** On a cluster each of them by itself, because each is in another slot. */
  async #eachHash(generation: number, act: (hashes: readonly string[]) => Promise<void>): Promise<void> {
    const { isCluster } = this.#connection
    const most = isCluster ? 1 : this.#hashesAtOnce
    let underWay: Promise<void>[] = []
    let hashes: string[] = []
    const flush = async (): Promise<void> => {
      if (hashes.length > 0) underWay.push(act(hashes))
      hashes = []
      if (underWay.length < (isCluster ? callsAtOnceOnCluster : callsAtOnce)) return
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
}

export const owedKey = (prefix: string): string => `${prefix}:{overrides}:owed`
