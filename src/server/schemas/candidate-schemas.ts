import { described } from '../../validation/kind.js'
import { text } from '../../validation/kinds.js'
import { count, cursorSchema, epochMs, listOf, openObject } from './common-schemas.js'
import { ruleSetSchema } from './rule-schemas.js'

const counts = {
  rejectedByBoth: count('Rejected by the current rules and by the candidate.'),
  rejectedNowOnly: count('Rejected by the current rules only.'),
  rejectedThenOnly: count('Rejected by the candidate only.'),
}

export const candidatePageSchema = openObject('CandidatePage', {
  candidates: listOf(ruleSetSchema),
  cursor: cursorSchema,
})

export const candidateReportSchema = openObject('CandidateReport', {
  ruleSetId: text,
  digest: described(text, 'Changes with the content of the candidate.'),
  sinceAt: epochMs('Start of the comparison.'),
  decisions: count('Compared decisions.'),
  ...counts,
  rules: listOf(
    openObject('CandidateRuleCounts', { ruleId: text, ...counts }),
    'By deciding rule, most differences first.',
  ),
  keys: listOf(
    openObject('CandidateKeyCounts', {
      ruleId: text,
      key: described(text, 'A digest, unless `revealKeys` is set.'),
      ...counts,
    }),
    'Keys with the most differences first; at most 100.',
  ),
})
