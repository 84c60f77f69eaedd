import { boundedKey, isLongKey } from '../../core/keys/bounded-key.js'
import { endOfText, textBytes, textOfBytes } from '../../redis/search-index/ordered-bytes.js'
import type { DecisionRecorder } from '../decision-recorder.js'
import { recentDecision } from './local-statistics.js'
import type { DecisionCounts, DecisionSample } from './statistics.js'

/** A batch of counts, as flush.lua takes it. */
export interface CountBatch {
  /** Field and count. */
  readonly counts: readonly (readonly [string, number])[]
  /** Name, requests and rejections. */
  readonly keys: readonly (readonly [Buffer, number, number])[]
  readonly decisions: readonly string[]
}

interface PendingKey {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** The key; a long key in the form in which it is shown. */
  readonly key: string
  readonly isFormatted: boolean
  requests: number
  denied: number
}

/** Maximum number of keys per second; further keys are not counted. */
const maxKeys = 2_000
const maxDecisions = 200
/** Redis processes this many in about a third of a millisecond, so that other commands are not delayed. */
const keysPerBatch = 64
const countsPerBatch = 200
const decisionsPerBatch = 50
const kinds = ['allowed', 'delayed', 'denied', 'shadowDenied'] as const

/** Counts of this process that are not flushed yet. A sampled decision costs one lookup; others cost nothing. */
export class PendingCounts {
  readonly #recorder: DecisionRecorder
  readonly #show: (key: string) => string
  #keys = new Map<string, PendingKey>()
  #decisions: DecisionSample[] = []
  /** The flushed count of each field. */
  readonly #flushed = new Map<string, number>()

  constructor(recorder: DecisionRecorder, show: (key: string) => string) {
    this.#recorder = recorder
    this.#show = show
  }

  add(sample: DecisionSample): void {
    const { ruleSetId, ruleId, key, allowed } = sample.decision
    // Rejections have room of their own, so that allowed decisions do not displace them.
    if (this.#decisions.length < maxDecisions || (!allowed && this.#decisions.length < 2 * maxDecisions))
      this.#decisions.push(sample)
    if (key === null) return
    const name = `${ruleSetId}\n${ruleId}\n${boundedKey(key)}`
    let entry = this.#keys.get(name)
    if (entry === undefined) {
      if (this.#keys.size >= maxKeys) return
      const isFormatted = isLongKey(key)
      entry = { ruleSetId, ruleId, key: isFormatted ? this.#show(key) : key, isFormatted, requests: 0, denied: 0 }
      this.#keys.set(name, entry)
    }
    entry.requests += sample.weight
    if (!allowed) entry.denied += sample.weight
  }

  /** Removes and returns all pending counts, in batches. */
  take(): CountBatch[] {
    const counts = this.#newCounts()
    const keys = [...this.#keys.values()].map(
      ({ ruleSetId, ruleId, key, isFormatted, requests, denied }) =>
        [nameBytes(isFormatted ? key : this.#show(key), ruleSetId, ruleId), requests, denied] as const,
    )
    const decisions = this.#decisions.map((sample) => JSON.stringify(recentDecision(sample, this.#show)))
    this.#keys = new Map()
    this.#decisions = []
    const batches = Math.ceil(
      Math.max(counts.length / countsPerBatch, keys.length / keysPerBatch, decisions.length / decisionsPerBatch),
    )
    return Array.from({ length: batches }, (_, i) => ({
      counts: counts.slice(i * countsPerBatch, (i + 1) * countsPerBatch),
      keys: keys.slice(i * keysPerBatch, (i + 1) * keysPerBatch),
      decisions: decisions.slice(i * decisionsPerBatch, (i + 1) * decisionsPerBatch),
    }))
  }

  /** Returns a batch that could not be flushed. Its counts are flushed next time; its keys and decisions are dropped. */
  restore({ counts }: CountBatch): void {
    for (const [field, by] of counts) this.#flushed.set(field, (this.#flushed.get(field) ?? 0) - by)
  }

  #newCounts(): [string, number][] {
    const { counters } = this.#recorder
    const found: [string, number][] = []
    const addChange = (field: string, now: number): void => {
      const by = now - (this.#flushed.get(field) ?? 0)
      if (by === 0) return
      this.#flushed.set(field, now)
      found.push([field, by])
    }
    const totals: DecisionCounts & { readonly degraded: number } = counters.totals()
    for (const kind of [...kinds, 'degraded'] as const) addChange(kind, totals[kind])
    for (const row of counters.rows())
      for (const kind of kinds) addChange(JSON.stringify([row.ruleSetId, row.ruleId, kind]), row[kind])
    return found
  }
}

/** The key comes first, so that names can be searched by key prefix. Ids are never empty, so an empty id means none. */
const nameBytes = (key: string, ruleSetId: string | null, ruleId: string | null): Buffer =>
  Buffer.concat([textBytes(key), endOfText, textBytes(ruleSetId ?? ''), endOfText, textBytes(ruleId ?? '')])

export function parseName(name: Buffer): { key: string; ruleSetId: string | null; ruleId: string | null } {
  const keyEnd = name.indexOf(endOfText)
  const setEnd = name.indexOf(endOfText, keyEnd + 2)
  const text = (from: number, to?: number): string => textOfBytes(name.subarray(from, to))
  return {
    key: text(0, keyEnd),
    ruleSetId: text(keyEnd + 2, setEnd) || null,
    ruleId: text(setEnd + 2) || null,
  }
}
