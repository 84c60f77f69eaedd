import type { BandDecision, Decision } from '../../core/decision.js'
import { policyName, secondsUp } from './policy.js'
import { RateLimitText } from './rate-limit-text.js'

/** How the limits of a decision are written in its headers; the same for as long as its rules are. */
export interface PolicyText {
  readonly ruleId: string
  readonly label: string
  /** All bands that the caller is told of. */
  readonly policies: string
  /** What is said of the one that speaks. */
  readonly speaker: RateLimitText
  /** How much that one holds. */
  readonly limit: string
  readonly bands: readonly BandDecision[]
}

/** Rules are few and requests many, so texts are kept; by rule and label of the band that speaks. */
const known = new Map<string, Map<string, PolicyText[]>>()
const mostKept = 1_000
let kept = 0
/** Often enough there is but one. */
let latest: PolicyText | undefined

export function policyTextOf(ruleId: string, label: string, { bands, limit }: Decision): PolicyText {
  if (latest?.ruleId === ruleId && latest.label === label && areAlike(latest.bands, bands)) return latest
  const candidates = known.get(ruleId)?.get(label)
  if (candidates !== undefined)
    for (let i = 0; i < candidates.length; i++) {
      const text = candidates[i] as PolicyText
      if (areAlike(text.bands, bands)) {
        latest = text
        return text
      }
    }
  const speaker = new RateLimitText(sfString(policyName(ruleId, label)))
  return keep({ ruleId, label, policies: policies(bands), speaker, limit: String(limit), bands })
}

function keep(text: PolicyText): PolicyText {
  if (kept === mostKept) {
    known.clear()
    kept = 0
  }
  kept += 1
  const { ruleId, label } = text
  const labels = known.get(ruleId) ?? new Map<string, PolicyText[]>()
  known.set(ruleId, labels.set(label, [...(labels.get(label) ?? []), text]))
  latest = text
  return text
}

function areAlike(some: readonly BandDecision[], others: readonly BandDecision[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) {
    const a = some[i] as BandDecision
    const b = others[i] as BandDecision
    if (a.label !== b.label || a.ruleId !== b.ruleId || a.limit !== b.limit || a.windowMs !== b.windowMs) return false
    if (a.shadow !== b.shadow) return false
  }
  return true
}

const policies = (bands: readonly BandDecision[]): string =>
  bands
    .filter(({ shadow }) => !shadow)
    .map(({ ruleId, label, limit, windowMs }) => {
      return `${sfString(policyName(ruleId, label))};q=${limit};w=${secondsUp(windowMs)}`
    })
    .join(', ')

/** A string of RFC 9651, which is printable ASCII. Anything else, from rules that no document was parsed for, is percent-encoded. */
function sfString(text: string): string {
  const ascii = text.replaceAll(/[^ -~]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )
  return `"${ascii.replaceAll(/["\\]/g, '\\$&')}"`
}
