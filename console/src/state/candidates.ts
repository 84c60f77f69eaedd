/** Candidates: other versions of rule sets, evaluated alongside the current rules without effect. */
import type { CandidateReport } from '../../../src/telemetry/candidates/report.js'
import { get, loadPages, request } from './api.js'
import { plainSet, type RuleDocument, type RuleSetDocument, ruleSetPath, withOriginals } from './rules.js'

export interface CandidateDocument extends RuleSetDocument {
  readonly candidateOf: string
}

const candidatePath = (ruleSetId: string): string => `${ruleSetPath(ruleSetId)}/candidate`

export const loadCandidates = (signal?: AbortSignal): Promise<readonly CandidateDocument[]> =>
  loadPages('/api/candidates', 'candidates', signal)

export const loadReport = (ruleSetId: string, signal?: AbortSignal): Promise<CandidateReport> =>
  get(`${candidatePath(ruleSetId)}/report`, signal)

export async function putCandidate(ruleSetId: string, set: object): Promise<void> {
  await request('PUT', candidatePath(ruleSetId), { body: { ...set, id: ruleSetId } })
}

/** Puts an edited rule into the candidate of its set, or starts a candidate that differs from the set in this rule only. */
export async function putRuleInCandidate(ruleSetId: string, rule: RuleDocument): Promise<void> {
  const running = (await loadCandidates()).find(({ candidateOf }) => candidateOf === ruleSetId)
  const base = running ?? (await get<RuleSetDocument>(ruleSetPath(ruleSetId)))
  const known = base.rules.find(({ id }) => id === rule.id)
  const rules =
    known === undefined
      ? [...base.rules, rule]
      : base.rules.map((old) => (old === known ? withOriginals(known, rule) : old))
  await putCandidate(ruleSetId, plainSet({ ...base, rules }))
}

/** Replaces the rule set with its candidate, if the set still has the version that the user has compared. */
export async function promoteCandidate(set: RuleSetDocument): Promise<RuleSetDocument> {
  const headers = { 'If-Match': `"${set.version}"` }
  return (await request<RuleSetDocument>('POST', `${candidatePath(set.id)}/promote`, { headers })).body
}

export async function dropCandidate(ruleSetId: string): Promise<void> {
  await request('DELETE', candidatePath(ruleSetId))
}
