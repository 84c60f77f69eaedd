import { duration, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Chart } from '../../ui/chart.js'
import { Table } from '../../ui/table.js'
import { Tiles } from '../../ui/tiles.js'
import type { Comparison } from './protocol.js'

export function ComparisonView({ comparison }: { readonly comparison: Comparison }) {
  const { requests, both, nowOnly, thenOnly, lines, badLines, badLineNumbers, format, tookMs, leftOutRules } =
    comparison
  const tiles = [
    { color: 'ok', name: t('requestsRead'), value: whole(requests) },
    { color: 'warn', name: t('rejectedBoth'), value: whole(both) },
    { color: 'shadow', name: t('rejectedNowOnly'), value: whole(nowOnly) },
    { color: 'bad', name: t('rejectedThenOnly'), value: whole(thenOnly) },
  ] as const
  return (
    <>
      <Tiles label={t('result')} tiles={tiles} />
      <p class="muted">
        {t('readLines', { lines: whole(lines), format, time: duration(tookMs) })}
        {badLines > 0 && ` ${t('badLines', { count: whole(badLines), lines: badLineNumbers.join(', ') })}`}
        {leftOutRules.length > 0 && ` ${t('leftOutRules', { rules: leftOutRules.join(', ') })}`}
      </p>
      {comparison.times.length > 1 && (
        <section class="card" aria-labelledby="rejections-over-time">
          <h2 id="rejections-over-time">{t('rejectionsOverTime')}</h2>
          <Chart
            label={t('rejectionsOverTime')}
            times={comparison.times}
            series={[
              { label: t('currentRules'), color: 'shadow', values: comparison.rejectedNow, isFilled: true },
              { label: t('changedRules'), color: 'bad', values: comparison.rejectedThen },
            ]}
          />
        </section>
      )}
      <div class="columns">
        <section class="card" aria-labelledby="compared-rules">
          <h2 id="compared-rules">{t('rejectionsByRule')}</h2>
          <Table
            head={[
              [t('rule')],
              [t('applied'), 'number'],
              [t('currentColumn'), 'number'],
              [t('changedColumn'), 'number'],
            ]}
          >
            {comparison.rules.map(({ ruleId, before, after }) => (
              <tr key={ruleId}>
                <td>{ruleId}</td>
                <td class="number">{whole((before ?? after)?.applied ?? 0)}</td>
                <td class="number">{before === undefined ? '–' : whole(before.rejected + before.shadowRejected)}</td>
                <td class="number">{after === undefined ? '–' : whole(after.rejected + after.shadowRejected)}</td>
              </tr>
            ))}
          </Table>
        </section>
        <section class="card" aria-labelledby="compared-keys">
          <h2 id="compared-keys">{t('keysThatDiffer')}</h2>
          {comparison.keys.length === 0 && <p class="muted">{t('noDifference')}</p>}
          {comparison.keys.length > 0 && (
            <Table head={[[t('key')], [t('rule')], [t('nowOnlyColumn'), 'number'], [t('changedOnlyColumn'), 'number']]}>
              {comparison.keys.map(({ key, ruleId, nowOnly, thenOnly }) => (
                <tr key={`${ruleId}/${key}`}>
                  <td>
                    <code>{key}</code>
                  </td>
                  <td>{ruleId}</td>
                  <td class="number">{whole(nowOnly)}</td>
                  <td class="number">{whole(thenOnly)}</td>
                </tr>
              ))}
            </Table>
          )}
        </section>
      </div>
    </>
  )
}
