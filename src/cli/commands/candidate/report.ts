import type { CandidateCounts, CandidateReport } from '../../../gate/candidates/candidate-control.js'
import { left, renderTable, right } from '../../output/table.js'

const countColumns = [right('both'), right('now only'), right('candidate only')]

const countsOf = ({ rejectedByBoth, rejectedNowOnly, rejectedThenOnly }: CandidateCounts): string[] =>
  [rejectedByBoth, rejectedNowOnly, rejectedThenOnly].map(String)

/** The rejected requests in total, by rule and by key. */
export function reportLines(report: CandidateReport): string[] {
  const { ruleSetId, sinceAt, decisions, rules, keys } = report
  const since = new Date(sinceAt).toISOString()
  const head = `rule set ${ruleSetId}: ${decisions} decisions compared since ${since}`
  const rows = [['all', ...countsOf(report)], ...rules.map((row) => [row.ruleId, ...countsOf(row)])]
  const lines = [head, '', ...renderTable([left('rejected by'), ...countColumns], rows)]
  const differing = keys.filter(({ rejectedNowOnly, rejectedThenOnly }) => rejectedNowOnly + rejectedThenOnly > 0)
  if (differing.length === 0) return lines
  const keyRows = differing.slice(0, 20).map((row) => [row.ruleId, row.key, ...countsOf(row)])
  return [...lines, '', ...renderTable([left('rule'), left('key'), ...countColumns], keyRows)]
}
