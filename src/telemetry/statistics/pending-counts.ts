import { boundedKey, isLongKey } from '../../core/keys/bounded-key.js'
import { endOfText, textBytes, textOfBytes } from '../../redis/search-index/ordered-bytes.js'
import type { DecisionRecorder } from '../decision-recorder.js'
import { recentDecision } from './local-statistics.js'
import type { DecisionCounts, DecisionSample } from './statistics.js'

/** A batch of counts, as flush.lua takes it. */
export interface Portion {
  /** Field and count. */
  readonly counts: readonly (readonly [string, number])[]
  /** Name, requests and rejections. */
  readonly keys: readonly (readonly [Buffer, number, number])[]
  readonly decisions: readonly string[]
}

interface Seen {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** The key; a long key in the form in which it is shown. */
  readonly key: string
  readonly isShown: boolean
  requests: number
  denied: number
}

/** Maximum number of keys per second; further keys are not counted. */
const mostKeys = 2_000
const mostDecisions = 200
/** Redis processes this many in about a third of a millisecond, so that other commands are not delayed. */
const keysInPortion = 64
const countsInPortion = 200
const decisionsInPortion = 50
const kinds = ['allowed', 'delayed', 'denied', 'shadowDenied'] as const

/** Counts of this process that are not flushed yet. A sampled decision costs one lookup; others cost nothing. */
export class PendingCounts {
  readonly #recorder: DecisionRecorder
  readonly #show: (key: string) => string
  #keys = new Map<string, Seen>()
  #decisions: DecisionSample[] = []
  /** The flushed count of each field. */
  readonly #flushed = new Map<string, number>()

  constructor(recorder: DecisionRecorder, show: (key: string) => string) {
    this.#recorder = recorder
    this.#show = show
  }

  add(sample: DecisionSample): void {
    const { ruleSetId, ruleId, key, allowed } = sample.decision
    if (this.#decisions.length < mostDecisions) this.#decisions.push(sample)
    if (key === null) return
    const name = `${ruleSetId}\n${ruleId}\n${boundedKey(key)}`
    let seen = this.#keys.get(name)
    if (seen === undefined) {
      if (this.#keys.size >= mostKeys) return
      const isShown = isLongKey(key)
      seen = { ruleSetId, ruleId, key: isShown ? this.#show(key) : key, isShown, requests: 0, denied: 0 }
      this.#keys.set(name, seen)
    }
    seen.requests += sample.weight
    if (!allowed) seen.denied += sample.weight
  }

  /** Removes and returns all pending counts, in batches. */
  take(): Portion[] {
    const counts = this.#newCounts()
    const keys = [...this.#keys.values()].map(
      ({ ruleSetId, ruleId, key, isShown, requests, denied }) =>
        [nameBytes(isShown ? key : this.#show(key), ruleSetId, ruleId), requests, denied] as const,
    )
    const decisions = this.#decisions.map((sample) => JSON.stringify(recentDecision(sample, this.#show)))
    this.#keys = new Map()
    this.#decisions = []
    const portions = Math.ceil(
      Math.max(counts.length / countsInPortion, keys.length / keysInPortion, decisions.length / decisionsInPortion),
    )
    return Array.from({ length: portions }, (_, i) => ({
      counts: counts.slice(i * countsInPortion, (i + 1) * countsInPortion),
      keys: keys.slice(i * keysInPortion, (i + 1) * keysInPortion),
      decisions: decisions.slice(i * decisionsInPortion, (i + 1) * decisionsInPortion),
    }))
  }

  /** Returns a batch that could not be flushed. Its counts are flushed next time; its keys and decisions are dropped. */
  giveBack({ counts }: Portion): void {
    for (const [field, by] of counts) this.#flushed.set(field, (this.#flushed.get(field) ?? 0) - by)
  }

  #newCounts(): [string, number][] {
    const { counters } = this.#recorder
    const found: [string, number][] = []
    const note = (field: string, now: number): void => {
      const by = now - (this.#flushed.get(field) ?? 0)
      if (by === 0) return
      this.#flushed.set(field, now)
      found.push([field, by])
    }
    const totals: DecisionCounts & { readonly degraded: number } = counters.totals()
    for (const kind of [...kinds, 'degraded'] as const) note(kind, totals[kind])
    for (const row of counters.rows())
      for (const kind of kinds) note(JSON.stringify([row.ruleSetId, row.ruleId, kind]), row[kind])
    return found
  }
}

/** The key comes first, so that names can be searched by key prefix. Ids are never empty, so an empty id means none. */
const nameBytes = (key: string, ruleSetId: string | null, ruleId: string | null): Buffer =>
  Buffer.concat([textBytes(key), endOfText, textBytes(ruleSetId ?? ''), endOfText, textBytes(ruleId ?? '')])

export function readName(name: Buffer): { key: string; ruleSetId: string | null; ruleId: string | null } {
  const keyEnd = name.indexOf(endOfText)
  const setEnd = name.indexOf(endOfText, keyEnd + 2)
  const text = (from: number, to?: number): string => textOfBytes(name.subarray(from, to))
  return {
    key: text(0, keyEnd),
    ruleSetId: text(keyEnd + 2, setEnd) || null,
    ruleId: text(setEnd + 2) || null,
  }
}
