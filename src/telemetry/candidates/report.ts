import { boundedKey } from '../../core/keys/bounded-key.js'

/** How often a rule set and its candidate rejected the same requests. */
export interface CandidateCounts {
  /** Rejected by the current rules and by the candidate. */
  readonly rejectedByBoth: number
  /** Rejected by the current rules; the candidate would allow the request. */
  readonly rejectedNowOnly: number
  /** Allowed by the current rules; the candidate would reject the request. */
  readonly rejectedThenOnly: number
}

/** The counts of the requests that a rule has rejected: of the current rules, or of the candidate under `rejectedThenOnly`. */
export interface CandidateRuleCounts extends CandidateCounts {
  /** The id of the rejecting rule. */
  readonly ruleId: string
}

/** The counts of the requests of one key that a rule has rejected. */
export interface CandidateKeyCounts extends CandidateRuleCounts {
  /** The limited key, shortened to 256 characters. */
  readonly key: string
}

/** The comparison of a candidate with the current rules, since it was started or changed. */
export interface CandidateReport extends CandidateCounts {
  /** The id of the current rule set. */
  readonly ruleSetId: string
  /** Identifies the content of the candidate: reports about different candidates are not added up. */
  readonly digest: string
  /** Epoch milliseconds. */
  readonly sinceAt: number
  /** The number of compared decisions. */
  readonly decisions: number
  /** Most differences first. */
  readonly rules: readonly CandidateRuleCounts[]
  /** Keys with the most differences first; at most 100. */
  readonly keys: readonly CandidateKeyCounts[]
}

/** The decision of one side. A rejection has the deciding rule and key. */
export interface Verdict {
  readonly allowed: boolean
  readonly ruleId: string | null
  readonly key: string | null
}

type Outcome = keyof CandidateCounts
type Row = { -readonly [Name in Outcome]: number }

export const maxKeys = 5_000
const shownKeys = 100
const maxKeyLength = 256

/** Counts differences in bounded memory: rules are few, and keys with few differences are dropped if there are many. */
export class CandidateComparison {
  readonly ruleSetId: string
  readonly #digest: string
  readonly #sinceAt: number
  readonly #total = newRow()
  readonly #rules = new Map<string, Row>()
  readonly #keys = new Map<string, Row & { readonly ruleId: string; readonly key: string }>()
  #decisions = 0

  constructor(ruleSetId: string, digest: string, sinceAt: number) {
    this.ruleSetId = ruleSetId
    this.#digest = digest
    this.#sinceAt = Math.round(sinceAt)
  }

  add(now: Verdict, then: Verdict): void {
    this.#decisions++
    if (now.allowed && then.allowed) return
    const outcome = now.allowed ? 'rejectedThenOnly' : then.allowed ? 'rejectedNowOnly' : 'rejectedByBoth'
    const { ruleId, key } = now.allowed ? then : now
    this.#total[outcome]++
    if (ruleId === null) return
    const rule = this.#rules.get(ruleId) ?? newRow()
    this.#rules.set(ruleId, rule)
    rule[outcome]++
    if (key !== null) this.#addKey(ruleId, key, outcome)
  }

  report(): CandidateReport {
    return {
      ruleSetId: this.ruleSetId,
      digest: this.#digest,
      sinceAt: this.#sinceAt,
      decisions: this.#decisions,
      ...this.#total,
      rules: [...this.#rules].map(([ruleId, row]) => ({ ruleId, ...row })).sort(mostDifferences),
      keys: [...this.#keys.values()].sort(mostDifferences).slice(0, shownKeys),
    }
  }

  #addKey(ruleId: string, key: string, outcome: Outcome): void {
    const bounded = boundedKey(key).slice(0, maxKeyLength)
    const name = `${ruleId}\n${bounded}`
    let row = this.#keys.get(name)
    if (row === undefined) {
      if (this.#keys.size >= 2 * maxKeys) this.#prune()
      row = { ruleId, key: bounded, ...newRow() }
      this.#keys.set(name, row)
    }
    row[outcome]++
  }

  /** Drops half of the keys at once, so that sorting is rare. */
  #prune(): void {
    const sorted = [...this.#keys].sort(([, one], [, other]) => mostDifferences(one, other))
    for (const [name] of sorted.slice(maxKeys)) this.#keys.delete(name)
  }
}

const newRow = (): Row => ({ rejectedByBoth: 0, rejectedNowOnly: 0, rejectedThenOnly: 0 })

const differences = ({ rejectedNowOnly, rejectedThenOnly }: CandidateCounts): number =>
  rejectedNowOnly + rejectedThenOnly

const mostDifferences = (one: CandidateCounts, other: CandidateCounts): number =>
  differences(other) - differences(one) || other.rejectedByBoth - one.rejectedByBoth

/** Adds up the reports of several processes about one candidate. */
function mergeReports(reports: readonly CandidateReport[]): CandidateReport | undefined {
  const [first] = reports
  if (first === undefined || reports.length === 1) return first
  const total = reports.reduce((sum, report) => addCounts(sum, report), newRow())
  return {
    ruleSetId: first.ruleSetId,
    digest: first.digest,
    sinceAt: Math.min(...reports.map(({ sinceAt }) => sinceAt)),
    decisions: reports.reduce((sum, { decisions }) => sum + decisions, 0),
    ...total,
    rules: merged(reports.flatMap(({ rules }) => rules)),
    keys: merged(reports.flatMap(({ keys }) => keys)).slice(0, shownKeys),
  }
}

/** Like `mergeReports`, but some processes may have no candidate yet, or an older one. */
export function mergeOptionalReports(
  reports: readonly (CandidateReport | undefined | null)[],
): CandidateReport | undefined {
  const present = reports.filter((report): report is CandidateReport => report !== undefined && report !== null)
  const latest = present.reduce<CandidateReport | undefined>(
    (one, other) => (one === undefined || other.sinceAt > one.sinceAt ? other : one),
    undefined,
  )
  return mergeReports(present.filter(({ digest }) => digest === latest?.digest))
}

function merged<R extends CandidateRuleCounts & { readonly key?: string }>(rows: readonly R[]): R[] {
  const byName = new Map<string, R>()
  for (const row of rows) {
    const name = JSON.stringify([row.ruleId, row.key])
    const known = byName.get(name)
    byName.set(name, known === undefined ? row : { ...known, ...addCounts({ ...known }, row) })
  }
  return [...byName.values()].sort(mostDifferences)
}

function addCounts<T extends Row>(sum: T, counts: CandidateCounts): T {
  sum.rejectedByBoth += counts.rejectedByBoth
  sum.rejectedNowOnly += counts.rejectedNowOnly
  sum.rejectedThenOnly += counts.rejectedThenOnly
  return sum
}

/** Formats the keys, which must not leave the process otherwise. */
export const withShownKeys = (
  report: CandidateReport | undefined,
  show: (key: string) => string,
): CandidateReport | undefined =>
  report && { ...report, keys: report.keys.map((row) => ({ ...row, key: show(row.key) })) }
