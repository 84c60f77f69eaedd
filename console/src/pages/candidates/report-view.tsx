import type { CandidateCounts, CandidateReport } from '../../../../src/telemetry/candidates/report.js'
import { linkTo } from '../../state/route.js'
import type { RuleDocument } from '../../state/rules.js'
import { ago, percent, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Empty } from '../../ui/states.js'
import { Table } from '../../ui/table.js'
import { Tiles } from '../../ui/tiles.js'

interface ReportViewProps {
  readonly report: CandidateReport
  /** For the names of the rules. */
  readonly rules: readonly RuleDocument[]
}

/** The requests that the candidate would have rejected: in total, by rule and by key. */
export function ReportView({ report, rules }: ReportViewProps) {
  const { decisions, rejectedByBoth, rejectedNowOnly, rejectedThenOnly, ruleSetId } = report
  const rejected = [
    { color: 'warn', name: t('rejectedBoth'), count: rejectedByBoth },
    { color: 'ok', name: t('rejectedNowOnly'), count: rejectedNowOnly },
    { color: 'bad', name: t('rejectedCandidateOnly'), count: rejectedThenOnly },
  ] as const
  const compared = {
    color: 'accent',
    name: t('comparedDecisions'),
    value: whole(decisions),
    detail: t('startedAt', { time: ago(report.sinceAt, Date.now()) }),
  } as const
  const tiles = rejected.map(({ count, ...tile }) => ({
    ...tile,
    value: whole(count),
    detail: t('ofDecisions', { share: percent(count / Math.max(1, decisions)) }),
  }))
  const nameOf = (id: string): string => rules.find((rule) => rule.id === id)?.name ?? id
  const differing = report.keys.filter((it) => it.rejectedNowOnly + it.rejectedThenOnly > 0)
  return (
    <>
      <Tiles label={t('result')} tiles={[compared, ...tiles]} />
      <div class="columns">
        <section class="card" aria-labelledby="candidate-rules">
          <h2 id="candidate-rules">{t('rejectionsByRule')}</h2>
          {report.rules.length === 0 ? (
            <Empty title={t(decisions === 0 ? 'noComparisons' : 'nothingRejected')}>
              {t(decisions === 0 ? 'noComparisonsHelp' : 'nothingRejectedHelp')}
            </Empty>
          ) : (
            <CountsTable
              first={t('rule')}
              rows={report.rules.map((counts) => ({
                id: counts.ruleId,
                name: <a href={linkTo(['rules', ruleSetId, counts.ruleId])}>{nameOf(counts.ruleId)}</a>,
                counts,
              }))}
            />
          )}
        </section>
        <section class="card" aria-labelledby="candidate-keys">
          <h2 id="candidate-keys">{t('keysThatDiffer')}</h2>
          {differing.length === 0 ? (
            <Empty title={t('noDifference')}>{t('noDifferenceHelp')}</Empty>
          ) : (
            <CountsTable
              first={t('key')}
              rows={differing.slice(0, 25).map((counts) => ({
                id: `${counts.ruleId}/${counts.key}`,
                name: (
                  <a href={linkTo(['keys'], { key: counts.key, set: ruleSetId, rule: counts.ruleId })}>
                    <code>{counts.key}</code> <span class="muted small">{counts.ruleId}</span>
                  </a>
                ),
                counts,
              }))}
            />
          )}
        </section>
      </div>
    </>
  )
}

interface CountsTableProps {
  readonly first: string
  readonly rows: readonly { readonly id: string; readonly name: preact.JSX.Element; readonly counts: CandidateCounts }[]
}

const CountsTable = ({ first, rows }: CountsTableProps) => (
  <Table
    head={[[first], [t('bothColumn'), 'number'], [t('nowOnlyColumn'), 'number'], [t('candidateOnlyColumn'), 'number']]}
  >
    {rows.map(({ id, name, counts }) => (
      <tr key={id}>
        <td>{name}</td>
        <td class="number">{whole(counts.rejectedByBoth)}</td>
        <td class={counts.rejectedNowOnly > 0 ? 'number ok' : 'number'}>{whole(counts.rejectedNowOnly)}</td>
        <td class={counts.rejectedThenOnly > 0 ? 'number bad' : 'number'}>{whole(counts.rejectedThenOnly)}</td>
      </tr>
    ))}
  </Table>
)
