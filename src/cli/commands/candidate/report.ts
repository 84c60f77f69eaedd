import type { CandidateCounts, CandidateReport } from '../../../gate/candidates/candidate-control.js'
import { type Column, renderTable } from '../../output/table.js'

const countColumns: readonly Column[] = [
  { title: 'both', align: 'right' },
  { title: 'now only', align: 'right' },
  { title: 'candidate only', align: 'right' },
]

const countsOf = ({ rejectedByBoth, rejectedNowOnly, rejectedThenOnly }: CandidateCounts): string[] =>
  [rejectedByBoth, rejectedNowOnly, rejectedThenOnly].map(String)

/** The rejected requests in total, by rule and by key. */
export function reportLines(report: CandidateReport): string[] {
  const { ruleSetId, sinceAt, decisions, rules, keys } = report
  const since = new Date(sinceAt).toISOString()
  const head = `rule set ${ruleSetId}: ${decisions} decisions compared since ${since}`
  const rows = [['all', ...countsOf(report)], ...rules.map((row) => [row.ruleId, ...countsOf(row)])]
  const lines = [head, '', ...renderTable([{ title: 'rejected by', align: 'left' }, ...countColumns], rows)]
  const differing = keys.filter(({ rejectedNowOnly, rejectedThenOnly }) => rejectedNowOnly + rejectedThenOnly > 0)
  if (differing.length === 0) return lines
  const keyRows = differing.slice(0, 20).map((row) => [row.ruleId, row.key, ...countsOf(row)])
  const columns: readonly Column[] = [
    { title: 'rule', align: 'left' },
    { title: 'key', align: 'left' },
    ...countColumns,
  ]
  return [...lines, '', ...renderTable(columns, keyRows)]
}
