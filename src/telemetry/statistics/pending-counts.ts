import { boundedKey, isLongKey } from '../../core/keys/bounded-key.js'
import { endOfText, textBytes, textOfBytes } from '../../redis/search-index/ordered-bytes.js'
import type { DecisionRecorder } from '../decision-recorder.js'
import { recentDecision } from './local-statistics.js'
import type { DecisionCounts, DecisionSample } from './statistics.js'

/** One portion of what has been counted, as flush.lua takes it. */
export interface Portion {
  /** Field, and how many. */
  readonly counts: readonly (readonly [string, number])[]
  /** Name, requests, refusals. */
  readonly keys: readonly (readonly [Buffer, number, number])[]
  readonly decisions: readonly string[]
}

interface Seen {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** Of a long key, as it is shown. */
  readonly key: string
  readonly isShown: boolean
  requests: number
  denied: number
}

/** Of one second; of those that come then, nothing is known. */
const mostKeys = 2_000
const mostDecisions = 200
/** As many as Redis counts in about a third of a millisecond: others want their turn. */
const keysInPortion = 64
const countsInPortion = 200
const decisionsInPortion = 50
const kinds = ['allowed', 'delayed', 'denied', 'shadowDenied'] as const

/** What this process has counted and not told yet. Costs a decision nothing but a lookup, if it is one of the sample. */
export class PendingCounts {
  readonly #recorder: DecisionRecorder
  readonly #show: (key: string) => string
  #keys = new Map<string, Seen>()
  #decisions: DecisionSample[] = []
  /** By field: how many have been told. */
  readonly #told = new Map<string, number>()

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

  /** Takes everything out, in portions. */
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

  /** What could not be told: counts are told the next time, keys and decisions of that second are let go. */
  giveBack({ counts }: Portion): void {
    for (const [field, by] of counts) this.#told.set(field, (this.#told.get(field) ?? 0) - by)
  }

  #newCounts(): [string, number][] {
    const { counters } = this.#recorder
    const found: [string, number][] = []
    const note = (field: string, now: number): void => {
      const by = now - (this.#told.get(field) ?? 0)
      if (by === 0) return
      this.#told.set(field, now)
      found.push([field, by])
    }
    const totals: DecisionCounts & { readonly degraded: number } = counters.totals()
    for (const kind of [...kinds, 'degraded'] as const) note(kind, totals[kind])
    for (const row of counters.rows())
      for (const kind of kinds) note(JSON.stringify([row.ruleSetId, row.ruleId, kind]), row[kind])
    return found
  }
}

/** The key comes first, so that names are found by its beginning. Ids are never empty: nothing stands for none. */
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
