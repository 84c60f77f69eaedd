import type { Clock } from '../../core/clock.js'
import { isLongKey, ownText } from '../../core/keys/bounded-key.js'
import { traceIdOf } from '../../core/tracing/trace-id.js'
import type { DecisionRecorder } from '../decision-recorder.js'
import type { ShowKey } from '../key-digest.js'
import { FrequentKeys, type KeyEntry } from './frequent-keys.js'
import type { DecisionSample, KeyCount, RecentDecision, RecentQuery, Statistics } from './statistics.js'

export interface LocalStatisticsOptions {
  readonly recorder: DecisionRecorder
  readonly clock: Clock
  readonly showKey: ShowKey
}

export const maxRecent = 500
/** Limit of keys by requests and, separately, of keys by rejections, so that busy keys do not evict rejected ones. */
export const keptKeys = 10_000
const keptDeniedKeys = 1_000
const maxPathLength = 256
/** Maximum length of a rule set id, because clients can request any name. */
const maxIdLength = 128

/** Statistics of this process only. */
export class LocalStatistics implements Statistics {
  readonly #options: LocalStatisticsOptions
  readonly #keys: FrequentKeys
  readonly #denied: FrequentKeys
  readonly #recent = new RecentRing()
  readonly #rejected = new RecentRing()

  constructor(options: LocalStatisticsOptions) {
    this.#options = options
    this.#keys = new FrequentKeys(keptKeys, options.showKey)
    this.#denied = new FrequentKeys(keptDeniedKeys, options.showKey)
    options.recorder.onSample((sample) => this.#record(sample))
  }

  async summary() {
    return this.#options.recorder.summary()
  }

  async top({ by, limit }: Parameters<Statistics['top']>[0]): Promise<readonly KeyCount[]> {
    const now = this.#now()
    if (by === 'requests') return this.#keys.read(now).slice(0, limit).map(this.#shown)
    const denied = this.#denied.read(now).slice(0, limit)
    return denied.map((entry) => this.#shown({ ...entry, requests: this.#requestsOf(entry, now) }))
  }

  async keys({ prefix, limit }: Parameters<Statistics['keys']>[0]): Promise<readonly KeyCount[]> {
    const { showKey } = this.#options
    const isDigest = prefix.startsWith('sha256:')
    const matches = ({ key, isFormatted }: KeyEntry): boolean =>
      key.startsWith(prefix) || (isDigest && !isFormatted && showKey(key).startsWith(prefix))
    return this.#keys.read(this.#now(), matches).slice(0, limit).map(this.#shown)
  }

  async sample({ limit }: Parameters<Statistics['sample']>[0]): Promise<readonly KeyCount[]> {
    const entries = this.#keys.read(this.#now())
    // A partial Fisher-Yates shuffle.
    for (let i = 0; i < Math.min(limit, entries.length); i++) {
      const from = i + Math.floor(Math.random() * (entries.length - i))
      ;[entries[i], entries[from]] = [entries[from] as KeyEntry, entries[i] as KeyEntry]
    }
    return entries.slice(0, limit).map(this.#shown)
  }

  async recent({ limit, ...query }: RecentQuery): Promise<readonly RecentDecision[]> {
    const ring = query.allowed === false ? this.#rejected : this.#recent
    const found = ring.newestFirst().filter(({ decision }) => isWanted(decision, query))
    const { showKey } = this.#options
    return found.slice(0, limit).map(({ decision, isFormatted }) => ({
      ...decision,
      key: decision.key === null || isFormatted ? decision.key : showKey(decision.key),
    }))
  }

  #record(sample: DecisionSample): void {
    const { decision, at, weight } = sample
    const { ruleSetId, ruleId, key, allowed } = decision
    const { showKey } = this.#options
    const isFormatted = key !== null && isLongKey(key)
    const entry = { decision: recentDecision(sample, isFormatted ? showKey : ownText), isFormatted }
    this.#recent.add(entry)
    if (!allowed) this.#rejected.add(entry)
    if (key === null) return
    const id = { ruleSetId, ruleId, key }
    this.#keys.add(id, !allowed, weight, at)
    if (!allowed) this.#denied.add(id, true, weight, at)
  }

  /** `#denied` counts rejections only. The key may have been evicted from `#keys`, and the two decay at different times. */
  #requestsOf({ name, denied }: KeyEntry, now: number): number {
    return Math.max(denied, this.#keys.find(name, now)?.requests ?? 0)
  }

  readonly #now = (): number => Math.round(this.#options.clock.now())

  readonly #shown = ({ ruleSetId, ruleId, key, isFormatted, requests, denied, lastAt }: KeyEntry): KeyCount => ({
    ruleSetId,
    ruleId,
    key: isFormatted ? key : this.#options.showKey(key),
    requests: Math.round(requests),
    denied: Math.round(denied),
    lastAt,
  })
}

/** Keys are formatted when they are read, which is cheaper; only long keys are formatted at once. */
interface RecentEntry {
  readonly decision: RecentDecision
  readonly isFormatted: boolean
}

class RecentRing {
  readonly #entries: RecentEntry[] = []
  #next = 0

  add(entry: RecentEntry): void {
    this.#entries[this.#next] = entry
    this.#next = (this.#next + 1) % maxRecent
  }

  newestFirst(): RecentEntry[] {
    return [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)].reverse()
  }
}

export const isWanted = (decision: RecentDecision, { allowed, traceId }: Omit<RecentQuery, 'limit'>): boolean =>
  (allowed === undefined || decision.allowed === allowed) && (traceId === undefined || decision.traceId === traceId)

/** The shown part of a decision. Values from the client are truncated, and the query is removed because it may contain a token. */
export function recentDecision({ decision, context, at, weight }: DecisionSample, showKey: ShowKey): RecentDecision {
  const { allowed, delayMs, reason, ruleSetId, ruleId, band, key, limit, remaining, retryAfterMs, degraded } = decision
  const { method, path } = context
  return {
    at,
    allowed,
    delayMs,
    reason,
    ruleSetId: ruleSetId === null ? null : ownText(ruleSetId.slice(0, maxIdLength)),
    ruleId,
    band,
    key: key === null ? null : showKey(key),
    limit,
    remaining,
    retryAfterMs,
    degraded,
    method: method?.slice(0, 32) ?? null,
    traceId: traceIdOf(context.headers) ?? null,
    path: path === undefined ? null : ownText(path.slice(0, maxPathLength).replace(/[?#].*/s, '')),
    weight,
  }
}
