/**
 * The MongoDB storage of a rule store. It needs no transactions, so it works without a replica set: a change is committed by
 * inserting the next head of its rule set (`head.ts`). Readers read the heads before and after the rules, so they never
 * return a partial change.
 */
import type { Clock } from '../../core/clock.js'
import type { HistoryEntry } from '../../core/contracts/rule-store.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { finish, inSlices } from '../../core/scheduling/steps.js'
import { setDocument } from '../store/rule-document.js'
import type { ExistingRuleSet, NumberedEntry, RuleSetChange, RuleSetState, RuleStorage } from '../store/rule-storage.js'
import { applyChange } from './apply-change.js'
import { type AssembledRuleSet, assemble, assembleAll } from './assemble.js'
import {
  batchOptions,
  collectionsOf,
  createIndexes,
  isDuplicate,
  isUnauthorized,
  type MongoCollections,
  type MongoDatabase,
} from './database.js'
import { createHead, latestHeads, type MongoHead } from './head.js'
import { numberedEntry } from './history.js'
import { canWatch, watchRules } from './watch.js'

export interface MongoStorageOptions {
  /** Connects on first use. Called again only if it failed. */
  readonly connect: () => Promise<MongoDatabase>
  readonly disconnect: () => Promise<void>
  readonly collection: string
  /** The name of the storage in messages. */
  readonly source: string
  readonly clock: Clock
  /** After this time in milliseconds, another process applies a change that its writer has not applied. Default: 5000. */
  readonly abandonedMs?: number
}

const maxReads = 50
const pauseMs = 20

export class MongoStorage implements RuleStorage {
  readonly source: string
  readonly #options: MongoStorageOptions
  #opened: Promise<MongoCollections> | undefined
  readonly #watches = new Set<() => void>()
  /** Changes that are committed but not applied, and when they were first seen. */
  readonly #pendingSince = new Map<string, number>()

  constructor(options: MongoStorageOptions) {
    this.source = options.source
    this.#options = options
  }

  read(ruleSetId: string): Promise<RuleSetState> {
    return this.#run('read', async (collections) => {
      const sets = await this.#readSets(collections, { ruleSetId })
      return sets.get(ruleSetId) ?? finish(assemble(ruleSetId, undefined, []))
    })
  }

  readAll(): Promise<readonly ExistingRuleSet[]> {
    return this.#run('read', async (collections) => {
      const sets = await this.#readSets(collections, {})
      return [...sets.values()].filter(
        (stored): stored is AssembledRuleSet & ExistingRuleSet => stored.head !== undefined,
      )
    })
  }

  commit(change: RuleSetChange): Promise<boolean> {
    return this.#run('written', async (collections) => {
      const { ruleSetId, from } = change
      const head = await this.#latestHead(collections, ruleSetId)
      if ((head?.version ?? 0) !== from) return false
      if (head !== undefined) await this.#untilApplied(collections, head)
      return this.#commitHead(collections, await inSlices(createHead(change)))
    })
  }

  history(ruleSetId: string, below: number, limit: number): Promise<readonly NumberedEntry[]> {
    return this.#run('read', async ({ history }) => {
      const options = { sort: { version: -1 }, limit }
      const found = await history.find({ ruleSetId, version: { $lt: below } }, options).toArray()
      const entries: NumberedEntry[] = []
      for (const document of found) entries.push(await inSlices(numberedEntry(document)))
      return entries
    })
  }

  canWatch(): Promise<boolean> {
    return this.#run('read', canWatch)
  }

  watch(onChange: () => void, onError: (error: unknown) => void): () => void {
    const end = watchRules({ open: () => this.#open(), onChange, onError })
    this.#watches.add(end)
    return () => {
      this.#watches.delete(end)
      end()
    }
  }

  async close(): Promise<void> {
    // An open stream would reconnect.
    for (const end of this.#watches) end()
    await this.#opened?.catch(() => {})
    await this.#options.disconnect()
  }

  /** Reads the rule sets, and adds edits by other programs to the history. */
  async #readSets(collections: MongoCollections, filter: object): Promise<Map<string, AssembledRuleSet>> {
    for (;;) {
      const { heads, sets } = await this.#snapshot(collections, filter)
      for (const head of heads.values()) this.#trackPending(collections, head)
      let isOutdated = false
      for (const [ruleSetId, stored] of sets)
        if (
          stored.hasOutsideEdits &&
          !(await this.#recordOutsideEdit(collections, ruleSetId, heads.get(ruleSetId), stored))
        )
          isOutdated = true
      if (!isOutdated) return sets
    }
  }

  /** A consistent snapshot: no change was committed between the first and the last read of the heads. */
  async #snapshot({ rules, sets }: MongoCollections, filter: object) {
    for (let attempt = 1; attempt <= maxReads; attempt++) {
      const heads = latestHeads(await sets.find(filter).toArray())
      const documents = await rules.find(filter, batchOptions).toArray()
      const projection = { ruleSetId: 1, version: 1 }
      const after = latestHeads(await sets.find(filter, { projection }).toArray())
      const isSame = heads.size === after.size && [...heads].every(([id, { _id }]) => after.get(id)?._id === _id)
      if (isSame) return { heads, sets: await inSlices(assembleAll(heads, documents, this.source)) }
      await pause()
    }
    throw new FluxGateError(
      'FLUXGATE_RULES_UNREADABLE',
      `The rules in ${this.source} changed during every attempt to read them. Try again.`,
    )
  }

  /** Records an edit by another program with a version and a history entry. Returns false if another process committed first. */
  async #recordOutsideEdit(
    collections: MongoCollections,
    ruleSetId: string,
    before: MongoHead | undefined,
    stored: AssembledRuleSet,
  ): Promise<boolean> {
    const { version, head } = stored
    const after = head === undefined ? null : await inSlices(setDocument({ ...stored, head }))
    const at = new Date(this.#options.clock.now()).toISOString()
    const by = 'outside'
    const entry: HistoryEntry = { at, by, action: 'PUT_SET', ruleSetId, ruleId: null, version, before: null, after }
    try {
      if (before !== undefined) await this.#untilApplied(collections, before)
      const change = { ruleSetId, from: version - 1, after: stored, put: [], remove: [], entry }
      return await this.#commitHead(collections, await inSlices(createHead(change)))
    } catch (error) {
      // A user with read-only access can still read the rules.
      if (isUnauthorized(error)) return true
      throw error
    }
  }

  async #commitHead(collections: MongoCollections, head: MongoHead): Promise<boolean> {
    const { sets, history } = collections
    try {
      await sets.insertOne(head)
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
    // The head of an old version may have been removed, so its id can be inserted again. Such an insert commits nothing.
    const latest = await this.#latestHead(collections, head.ruleSetId)
    if (latest !== undefined && latest.version > head.version) {
      const [entry] = await history.find({ _id: head._id }).toArray()
      if (entry?.commit !== head.commit) {
        await sets.deleteMany({ _id: head._id, commit: head.commit })
        return false
      }
    }
    // The change is committed. If applying it fails now, the next reader or writer applies it.
    await applyChange(collections, head).catch(() => {})
    return true
  }

  /** The latest head of a set, without the marks of its rules. */
  async #latestHead({ sets }: MongoCollections, ruleSetId: string): Promise<MongoHead | undefined> {
    return latestHeads(await sets.find({ ruleSetId }, { projection: { marks: 0 } }).toArray()).get(ruleSetId)
  }

  /** Resolves when the change is applied, by its writer or by this process after a timeout. */
  async #untilApplied(collections: MongoCollections, head: MongoHead): Promise<void> {
    let current: MongoHead | undefined = head
    while (current?.todo !== undefined && !(await this.#applyIfAbandoned(collections, current))) {
      await pause()
      const [found] = await collections.sets.find({ _id: head._id }).toArray()
      current = found as MongoHead | undefined
    }
  }

  async #applyIfAbandoned(collections: MongoCollections, head: MongoHead): Promise<boolean> {
    const { abandonedMs = 5_000 } = this.#options
    const now = performance.now()
    const since = this.#pendingSince.get(head.commit) ?? now
    this.#pendingSince.set(head.commit, since)
    if (now - since < abandonedMs) return false
    await applyChange(collections, head)
    this.#pendingSince.delete(head.commit)
    return true
  }

  /** Runs in the background. A failure is ignored, because readers do not depend on it. */
  #trackPending(collections: MongoCollections, head: MongoHead): void {
    if (head.todo !== undefined) this.#applyIfAbandoned(collections, head).catch(() => {})
    else if (this.#pendingSince.size > 0) this.#pendingSince.delete(head.commit)
  }

  #open(): Promise<MongoCollections> {
    this.#opened ??= this.#connect().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #connect(): Promise<MongoCollections> {
    const collections = collectionsOf(await this.#options.connect(), this.#options.collection)
    await createIndexes(collections)
    return collections
  }

  async #run<T>(what: 'read' | 'written', work: (collections: MongoCollections) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#open())
    } catch (cause) {
      if (cause instanceof FluxGateError) throw cause
      const code =
        what === 'written' && isUnauthorized(cause) ? 'FLUXGATE_RULES_READ_ONLY' : 'FLUXGATE_RULES_UNREADABLE'
      throw new FluxGateError(code, `The rules in ${this.source} could not be ${what}: ${messageOf(cause)}`, { cause })
    }
  }
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())))
