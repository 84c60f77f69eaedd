import type { Edit, RuleSetDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import { dropCandidate, promoteCandidate, putCandidate } from '../../rules/store/candidates.js'
import type { CandidateReport } from '../../telemetry/candidates/report.js'
import type { Candidates } from './candidates.js'

export type { CandidateCounts, CandidateReport } from '../../telemetry/candidates/report.js'

/**
 * The candidates of a gate. A candidate is another version of a rule set: it is evaluated for every request alongside the current
 * rules, on its own buckets and without effect, and its decisions are compared with theirs.
 */
export interface CandidateControl {
  /** The ids of the rule sets that have a candidate. */
  ids(): readonly string[]
  /** The candidate of a rule set, or undefined. */
  get(ruleSetId: string): RuleSet | undefined
  /** The comparison in this process since the candidate was started or changed; undefined without a candidate. */
  report(ruleSetId: string): CandidateReport | undefined
  /** Stores a candidate. Rejects with FLUXGATE_RULES_READ_ONLY if the gate has no rule store. */
  put(ruleSetId: string, document: object, edit: Edit): Promise<RuleSetDocument>
  /** Replaces the rule set with its candidate and removes the candidate. `ifVersion` is the version of the rule set. */
  promote(ruleSetId: string, edit: Edit): Promise<RuleSetDocument>
  /** Removes the candidate. Resolves to false if there was none. */
  drop(ruleSetId: string, edit: Edit): Promise<boolean>
}

export function candidateControl(candidates: Candidates, ruleStore: RuleStore | undefined): CandidateControl {
  const editable = (): RuleStore => {
    if (ruleStore !== undefined) return ruleStore
    throw new FluxGateError(
      'FLUXGATE_RULES_READ_ONLY',
      'Candidates cannot be edited: the rules are defined in code. Keep them in a file, in Redis or in MongoDB.',
    )
  }
  return {
    ids: () => candidates.ids(),
    get: (ruleSetId) => candidates.of(ruleSetId)?.ruleSet,
    report: (ruleSetId) => candidates.report(ruleSetId),
    put: async (ruleSetId, document, edit) => (await putCandidate(editable(), ruleSetId, document, edit)).document,
    promote: async (ruleSetId, edit) => promoteCandidate(editable(), ruleSetId, edit),
    drop: async (ruleSetId, edit) => dropCandidate(editable(), ruleSetId, edit),
  }
}
