import { described } from '../../validation/kind.js'
import { text } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import { count, cursorSchema, epochMs, listOf } from './common-schemas.js'
import { ruleSetSchema } from './rule-schemas.js'

const open = { isOpen: true }
const counts = {
  rejectedByBoth: count('Rejected by the current rules and by the candidate.'),
  rejectedNowOnly: count('Rejected by the current rules only.'),
  rejectedThenOnly: count('Rejected by the candidate only.'),
}

export const candidatePageSchema = object(
  { candidates: listOf(ruleSetSchema), cursor: cursorSchema },
  {},
  { title: 'CandidatePage', ...open },
)

export const candidateReportSchema = object(
  {
    ruleSetId: text,
    digest: described(text, 'Changes with the content of the candidate.'),
    sinceAt: epochMs('Start of the comparison.'),
    decisions: count('Compared decisions.'),
    ...counts,
    rules: listOf(
      object({ ruleId: text, ...counts }, {}, { title: 'CandidateRuleCounts', ...open }),
      'By deciding rule, most differences first.',
    ),
    keys: listOf(
      object(
        { ruleId: text, key: described(text, 'A digest, unless `revealKeys` is set.'), ...counts },
        {},
        { title: 'CandidateKeyCounts', ...open },
      ),
      'Keys with the most differences first; at most 100.',
    ),
  },
  {},
  { title: 'CandidateReport', ...open },
)
