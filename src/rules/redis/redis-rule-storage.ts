import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '../../core/clock.js'
import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import { jsonTextSteps } from '../../core/json/json-steps.js'
import { jsonText, parseJson } from '../../core/json/source-text.js'
import { inSlices, mapInSteps } from '../../core/scheduling/steps.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { reasonOf, withoutCommand } from '../../redis/client/errors.js'
import { Script } from '../../redis/client/script.js'
import { createRedisLock, type RedisLock } from '../../redis/lock/redis-lock.js'
import { jsonValueSteps } from '../document/json-text.js'
import { documentOfSets, isEnabled, matchesSearch, priorityOf } from '../store/rule-document.js'
import type {
  ExistingRuleSet,
  NumberedEntry,
  RuleSearch,
  RuleSetChange,
  RuleSetState,
  RuleStorage,
} from '../store/rule-storage.js'
import { announcementMessage } from './announcing-provider.js'
import { ChangeSubscriber } from './change-subscriber.js'
import { commitScript, findScript, readScript, stageScript, swapScript } from './lua/scripts.generated.js'
import { ruleTrigrams, searchTrigrams } from './trigrams.js'

export interface RedisRuleStorageOptions {
  /** Prefix of all keys. */
  readonly prefix: string
  /** Channel on which changes are announced. */
  readonly channel: string
  /** The number of history entries per rule set. */
  readonly maxHistory?: number | undefined
  /** Timeout of a call in milliseconds. */
  readonly timeoutMs?: number | undefined
  readonly clock?: Clock | undefined
}

/** How long an edit of many rule sets waits for another one. */
const maxImportWaitMs = 60_000

/** Larger rule sets are read and written in parts, because a running script blocks Redis. */
const largeSet = 1_000
const largeChange = 500
const rulesPerCall = 100
/** After this time, an unfinished write in parts expires. */
const stagingTtlMs = 10 * 60_000
const maxReads = 50

type ScriptName = 'commit' | 'find' | 'read' | 'stage' | 'swap'

/**
 * The Redis storage of a rule store. Each rule is a JSON text with indexes by id, rank and text, which the edit script updates
 * atomically. All keys of a prefix share a hash slot, so that one script can access them on a cluster.
 */
export class RedisRuleStorage implements RuleStorage {
  readonly source: string
  readonly watchKind = 'PUBSUB'
  readonly #connection: RedisConnection
  readonly #base: string
  readonly #channel: string
  readonly #maxHistory: number
  readonly #timeoutMs: number
  readonly #clock: Clock
  readonly #announcements: ChangeSubscriber
  readonly #lock: RedisLock
  /** The sender id in announcements. */
  readonly #id = randomUUID()
  readonly #scripts = {
    commit: new Script(commitScript),
    find: new Script(findScript),
    read: new Script(readScript),
    stage: new Script(stageScript),
    swap: new Script(swapScript),
  }
  #loaded: { readonly latest: string; readonly document: unknown } | undefined

  constructor(connection: RedisConnection, options: RedisRuleStorageOptions) {
    const { prefix, channel, maxHistory = 1_000, timeoutMs = 5_000, clock = systemClock } = options
    this.source = `Redis (${prefix})`
    this.#connection = connection
    this.#base = `${prefix}:{${prefix}:rules}:`
    this.#channel = channel
    this.#maxHistory = maxHistory
    this.#timeoutMs = timeoutMs
    this.#clock = clock
    this.#announcements = new ChangeSubscriber(connection, channel)
    this.#lock = createRedisLock(connection, { prefix, waitMs: maxImportWaitMs })
  }

  watch(onChange: () => void, onError: (error: unknown) => void): () => void {
    return this.#announcements.watch(onChange, onError)
  }

  /** Skips the transfer if nothing has changed. */
  async loadDocument(): Promise<unknown> {
    const known = this.#loaded
    const [latest, ...sets] = await this.#read(known?.latest)
    // Change ids are random, so a server that lost data never reuses one.
    if (known !== undefined && latest === known.latest) return known.document
    if (known !== undefined && latest === '')
      throw new FluxGateError(
        'FLUXGATE_RULES_UNREADABLE',
        `${this.source} had rules and is empty now. Restore the rules.`,
      )
    const document = await inSlices(documentOfSets((await this.#readSetReplies(sets)) as ExistingRuleSet[]))
    this.#loaded = { latest, document }
    return document
  }

  async read(ruleSetId: string): Promise<RuleSetState> {
    const [, set] = await this.#read('', ruleSetId)
    return this.#readSetReply(set as SetReply)
  }

  async readAll(): Promise<readonly ExistingRuleSet[]> {
    const [, ...sets] = await this.#read('')
    return (await this.#readSetReplies(sets)) as ExistingRuleSet[]
  }

  async readRule(ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined> {
    const key = this.#key('rules:', ruleSetId)
    const text = await this.#withTimeout('be read', () => this.#connection.call(key, ['HGET', key, ruleId]))
    return text === null ? undefined : (parseJson(String(text)) as RuleDocument)
  }

  async findRules(ruleSetId: string, search: RuleSearch): Promise<readonly RuleDocument[] | undefined> {
    const { q, enabled, limit } = search
    const pieces = q === undefined ? [] : searchTrigrams(q)
    const keys = ['head:', 'rules:', 'ranks:', 'disabled:', 'texts:'].map((kind) => this.#key(kind, ruleSetId))
    const found: RuleDocument[] = []
    let { after } = search
    // A rule with all trigrams may not contain the text itself, so some candidates are filtered out.
    for (;;) {
      const place = after === undefined ? ['', ''] : [String(-after.priority), after.id]
      const flag = enabled === undefined ? '' : enabled ? '1' : '0'
      const texts = await this.#run('find', 'be read', keys, [String(limit), flag, ...place, ...pieces])
      if (texts === null) return undefined
      const documents = await inSlices(mapInSteps(texts as Buffer[], parseRule))
      found.push(...documents.filter((document) => matchesSearch(document, { q, enabled })))
      const last = documents.at(-1)
      if (documents.length < limit || found.length >= limit || last === undefined) return found.slice(0, limit)
      after = { priority: priorityOf(last), id: last.id }
    }
  }

  async commit({ ruleSetId, from, after, put, remove, entry }: RuleSetChange): Promise<boolean> {
    const ofSet = ['head:', 'rules:', 'ranks:', 'disabled:', 'texts:', 'pieces:', 'history:']
    const keys = [`${this.#base}sets`, ...ofSet.map((kind) => this.#key(kind, ruleSetId)), `${this.#base}latest`]
    const { head, version, removedVersion } = after
    const message = announcementMessage(ruleSetId, Math.trunc(this.#clock.now()), this.#id)
    const args = [
      ...[ruleSetId, String(from), String(version), String(removedVersion)],
      ...[head === undefined ? '' : JSON.stringify(head), this.#channel, message],
      ...[String(this.#maxHistory), await inSlices(jsonTextSteps({ setVersion: version, entry })), randomUUID()],
    ]
    if (head !== undefined && put.length + remove.length > largeChange) return this.#swap(keys, args, after.rules)
    const rules = put.flatMap(ruleArguments)
    return (await this.#run('commit', 'be changed', keys, [...args, String(put.length), ...rules, ...remove])) === 1
  }

  /** Writes all rules of a set to staging keys, which then replace the keys of the set. */
  async #swap(keys: readonly string[], args: readonly string[], rules: readonly RuleDocument[]): Promise<boolean> {
    const staging = `${this.#base}staged:${randomUUID()}:`
    const staged = ['rules', 'ranks', 'disabled', 'texts', 'pieces'].map((kind) => staging + kind)
    const discard = (): Promise<unknown> => this.#connection.call(staged[0] as string, ['UNLINK', ...staged])
    try {
      for (let at = 0; at < rules.length; at += rulesPerCall) {
        const part = await inSlices(mapInSteps(rules.slice(at, at + rulesPerCall), ruleArguments))
        await this.#run('stage', 'be changed', staged, [String(stagingTtlMs), ...part.flat()])
      }
      const made = await this.#run('swap', 'be changed', [...keys, ...staged], [...args, String(rules.length)])
      if (made === 0) await discard()
      if (made !== -1) return made === 1
    } catch (error) {
      await discard().catch(() => {})
      throw error
    }
    throw new FluxGateError(
      'FLUXGATE_RULES_UNREADABLE',
      `Rules in ${this.source} could not be changed: Redis lost staged data. Nothing was changed: repeat the edit.`,
    )
  }

  async history(ruleSetId: string, below: number, limit: number) {
    const key = this.#key('history:', ruleSetId)
    const command = ['ZREVRANGEBYSCORE', key, `(${below}`, '-inf', 'LIMIT', '0', String(limit)]
    const entries = (await this.#withTimeout('be read', () => this.#connection.call(key, command))) as string[]
    const numbered: NumberedEntry[] = []
    for (const text of entries) numbered.push((await inSlices(jsonValueSteps(text))) as NumberedEntry)
    return numbered
  }

  alone<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#lock.using('rules:import', work)
  }

  async close(): Promise<void> {
    this.#announcements.close()
    await this.#lock.close()
  }

  readonly #key = (kind: string, ruleSetId: string): string => `${this.#base}${kind}${ruleSetId}`

  async #read(known = '', ruleSetId?: string): Promise<[string, ...SetReply[]]> {
    const args = [this.#base, known, ruleSetId ?? '', String(largeSet)]
    const reply = await this.#run('read', 'be read', [`${this.#base}sets`, `${this.#base}latest`], args)
    const [latest, ...sets] = reply as [Buffer, ...SetReply[]]
    return [String(latest), ...sets]
  }

  async #readSetReplies(sets: readonly SetReply[]): Promise<readonly RuleSetState[]> {
    const all: RuleSetState[] = []
    for (const set of sets) all.push(await this.#readSetReply(set))
    return all
  }

  /** Reads the rules of a large set in parts, and again if the set changed in between. */
  async #readSetReply(reply: SetReply): Promise<RuleSetState> {
    let [id, version, removedVersion, head, rules] = reply
    for (let attempt = 1; !Array.isArray(rules); attempt++) {
      const texts = await this.#scan(this.#key('rules:', String(id)))
      const [, again] = (await this.#read('', String(id))) as [string, SetReply]
      if (String(again[1]) === String(version)) rules = texts
      else [id, version, removedVersion, head, rules] = again
      if (attempt === maxReads)
        throw new FluxGateError(
          'FLUXGATE_RULES_UNREADABLE',
          `The rules in ${this.source} changed during every attempt to read them. Try again.`,
        )
    }
    const documents = await inSlices(mapInSteps(rules, parseRule))
    return {
      version: Number(version),
      removedVersion: Number(removedVersion),
      ...(head.length > 0 && { head: JSON.parse(String(head)) }),
      rules: documents,
    }
  }

  /** Reads all values of a hash. Redis may return some twice; they are deduplicated. */
  async #scan(key: string): Promise<readonly Buffer[]> {
    const values = new Map<string, Buffer>()
    let cursor = '0'
    do {
      const command = ['HSCAN', key, cursor, 'COUNT', String(rulesPerCall)]
      const reply = await this.#withTimeout('be read', () => this.#connection.call(key, command, true))
      const [next, pairs] = reply as [Buffer, Buffer[]]
      for (let at = 0; at < pairs.length; at += 2) values.set(String(pairs[at]), pairs[at + 1] as Buffer)
      cursor = String(next)
    } while (cursor !== '0')
    return [...values.values()]
  }

  #run(name: ScriptName, what: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#withTimeout(what, () => this.#scripts[name].run(this.#connection, 0, keys, args))
  }

  /** Rejects if there is no reply within the timeout. */
  async #withTimeout(what: string, ask: () => Promise<unknown>): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no reply within ${this.#timeoutMs} ms`)), this.#timeoutMs)
    })
    try {
      return await Promise.race([ask(), tooLate])
    } catch (error) {
      if (error instanceof FluxGateError) throw error
      throw new FluxGateError(
        'FLUXGATE_RULES_UNREADABLE',
        `Rules in ${this.source} could not ${what}: ${reasonOf(error)}.`,
        { cause: withoutCommand(error) },
      )
    } finally {
      clearTimeout(timer)
    }
  }
}

const parseRule = (text: Buffer): RuleDocument => parseJson(String(text)) as RuleDocument

/** The reply for one rule set. A large set has the number of its rules instead of the rules. */
type SetReply = readonly [
  id: Buffer,
  version: Buffer,
  removedVersion: Buffer,
  head: Buffer,
  rules: readonly Buffer[] | number,
]

/** A rule and its index entries as script arguments. */
const ruleArguments = (rule: RuleDocument): readonly string[] => [
  rule.id,
  jsonText(rule),
  // Ascending rank is descending priority; Redis orders members with equal rank by id.
  String(-priorityOf(rule)),
  isEnabled(rule) ? '1' : '0',
  JSON.stringify(ruleTrigrams(rule)),
]
