import { useMemo } from 'preact/hooks'
import type { Summary } from '../../state/statistics.js'
import { t } from '../../text/translate.js'
import { Chart } from '../../ui/chart.js'
import { Empty } from '../../ui/states.js'

/** Decisions per second over the last minutes. */
export function History({ summary: { seconds } }: { readonly summary: Summary }) {
  const times = useMemo(() => seconds.map(({ at }) => Math.round(at / 1_000)), [seconds])
  const series = [
    { label: t('allowed'), color: 'ok', values: seconds.map((it) => it.allowed), isFilled: true },
    { label: t('rejected'), color: 'bad', values: seconds.map((it) => it.denied), isFilled: true },
    { label: t('delayed'), color: 'warn', values: seconds.map((it) => it.delayed) },
    { label: t('shadowRejected'), color: 'shadow', values: seconds.map((it) => it.shadowDenied) },
  ]
  return (
    <section class="card" aria-labelledby="history">
      <h2 id="history">{t('decisionsPerSecond')}</h2>
      {seconds.length < 2 ? (
        <Empty title={t('collecting')} />
      ) : (
        <Chart label={t('decisionsPerSecond')} times={times} series={series} height={220} />
      )}
    </section>
  )
}
