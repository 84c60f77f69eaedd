import { windowMsAt } from '../../../core/calendar/periods.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { RuleSet } from '../../../core/rule.js'
import { policyName } from '../../../http/rate-limit-headers.js'
import type { RecentDecision } from '../../../telemetry/statistics/statistics.js'
import type { ApiParts } from '../../parts.js'
import { invalidRequest } from '../../request/api-problem.js'
import type { RejectionQuery } from '../../schemas/rejection-schema.js'

interface Policy {
  readonly ruleSetId: string
  readonly ruleId: string
  readonly band: string
  readonly limit: number
  readonly windowMs: number
}

export interface PastRejections {
  readonly policies: readonly Policy[]
  readonly remaining: number | null
  readonly resetSeconds: number | null
  readonly rejections: readonly RecentDecision[]
}

const defaultFound = 10
/** All rejections that statistics keep. */
const searched = 1_000

/** Finds past rejections by what a client knows about them: the RateLimit header of its response and its trace ID. */
export async function pastRejections(
  { gate, statistics }: Pick<ApiParts, 'gate' | 'statistics'>,
  { ratelimit, traceId, ruleSetId, limit }: RejectionQuery,
): Promise<PastRejections> {
  if (ratelimit == null && traceId == null) throw invalidRequest('body', 'must have `ratelimit` or `traceId`')
  const header = ratelimit == null ? undefined : parseRateLimit(ratelimit)
  const recent = (await statistics?.recent({ limit: searched, allowed: false, traceId: traceId ?? undefined })) ?? []
  const rejections = recent.filter(
    (one) =>
      (ruleSetId == null || one.ruleSetId === ruleSetId) &&
      (header === undefined || policyName(one.ruleId ?? '', one.band ?? '') === header.name),
  )
  const sets = gate.ruleSets.filter(({ id }) => ruleSetId == null || id === ruleSetId)
  return {
    policies: header === undefined ? [] : sets.flatMap((set) => policiesOf(set, header.name)),
    remaining: header?.remaining ?? null,
    resetSeconds: header?.resetSeconds ?? null,
    rejections: rejections.slice(0, limit ?? defaultFound),
  }
}

const policiesOf = ({ id: ruleSetId, rules }: RuleSet, name: string): Policy[] =>
  rules.flatMap(({ id: ruleId, bands }) =>
    bands
      .filter(({ label }) => policyName(ruleId, label) === name)
      .map((band) => ({
        ruleSetId,
        ruleId,
        band: band.label,
        limit: band.capacity,
        windowMs: windowMsAt(band, Date.now() * ticksPerMs),
      })),
  )

/** Parses `"reads.per-minute";r=0;t=12`, with or without the name of the header. */
function parseRateLimit(text: string): { name: string; remaining: number | null; resetSeconds: number | null } {
  const match = /^\s*(?:ratelimit\s*:)?\s*"((?:[^"\\]|\\["\\])+)"((?:\s*;\s*[a-z]+=\d{1,15})*)\s*$/i.exec(text)
  if (match === null)
    throw invalidRequest('ratelimit', 'must be the value of a RateLimit header, such as "reads.per-minute";r=0;t=12')
  const [, name = '', parameters = ''] = match
  const numberOf = (parameter: string): number | null => {
    const [, digits] = new RegExp(`;\\s*${parameter}=(\\d+)`, 'i').exec(parameters) ?? []
    return digits === undefined ? null : Number(digits)
  }
  return { name: name.replaceAll(/\\(["\\])/g, '$1'), remaining: numberOf('r'), resetSeconds: numberOf('t') }
}
