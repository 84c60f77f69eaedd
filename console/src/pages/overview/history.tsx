import { useMemo, useState } from 'preact/hooks'
import { get } from '../../state/api.js'
import { hasRoute } from '../../state/features.js'
import { duration, sinceTime } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Chart } from '../../ui/chart.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { type Points, type Series, useSeries } from './series.js'

/** Decisions and latency over time. The server keeps the data, so that it survives a reload of the page. */
export function History() {
  const [resolution, setResolution] = useState<'1s' | '1m'>('1s')
  const [scope, setScope] = useState('')
  if (!hasRoute('GET /api/stats/series')) return null
  const [ruleSetId = '', ruleId = ''] = scope.split('/')
  const query = new URLSearchParams({ resolution, ...(ruleSetId && { ruleSetId }), ...(ruleId && { ruleId }) })
  return (
    <section class="card" aria-labelledby="history">
      <div class="page-head">
        <h2 id="history">{t('decisionsPerSecond')}</h2>
        <span class="spacer" />
        <Scopes value={scope} onChange={setScope} />
        <fieldset class="group kinds">
          <legend class="visually-hidden">{t('range')}</legend>
          {(['1s', '1m'] as const).map((name) => (
            <button
              type="button"
              key={name}
              class="button small"
              aria-pressed={name === resolution}
              onClick={() => setResolution(name)}
            >
              {t(name === '1s' ? 'last15Minutes' : 'last24Hours')}
            </button>
          ))}
        </fieldset>
      </div>
      <Charts query={query.toString()} everyMs={resolution === '1s' ? 1_000 : 15_000} />
    </section>
  )
}

function Scopes({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const { data } = useLoaded((signal) => get<Series>(`/api/stats/series?since=${Date.now()}`, signal), [], 10_000)
  return (
    <select
      class="choice"
      aria-label={t('scope')}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{t('allRules')}</option>
      {data?.series.map(({ ruleSetId, ruleId }) => (
        <option key={`${ruleSetId}/${ruleId}`} value={ruleId === null ? ruleSetId : `${ruleSetId}/${ruleId}`}>
          {ruleId === null ? ruleSetId : `${ruleSetId} / ${ruleId}`}
        </option>
      ))}
    </select>
  )
}

function milliseconds(value: number): string {
  if (value >= 1_000) return `${Number((value / 1_000).toFixed(1))} s`
  if (value > 0 && value < 1) return `${Math.ceil(value * 1_000)} µs`
  return `${value.toFixed(value === 0 || value >= 10 ? 0 : 1)} ms`
}

/** Leaves out the time before the first decision, so that a server that has just started does not show an empty chart. */
function sinceFirst(points: Points): Points {
  const first = points.at.findIndex((_, i) =>
    [points.allowed, points.delayed, points.denied, points.shadowDenied].some((counts) => (counts[i] ?? 0) > 0),
  )
  const start = Math.max(0, Math.min(first === -1 ? points.at.length : first, points.at.length - 90))
  return Object.fromEntries(
    Object.entries(points).map(([name, values]) => [name, values.slice(start)]),
  ) as unknown as Points
}

function Charts({ query, everyMs }: { readonly query: string; readonly everyMs: number }) {
  const series = useSeries(query, everyMs)
  const { data } = series
  const view = useMemo(() => {
    if (data === undefined) return undefined
    const { stepMs } = data
    const points = sinceFirst(data.points)
    const perSecond = (counts: readonly number[]): number[] => counts.map((count) => (count * 1_000) / stepMs)
    return {
      points,
      times: points.at.map((at) => at / 1_000),
      allowed: perSecond(points.allowed),
      denied: perSecond(points.denied),
      delayed: perSecond(points.delayed),
      shadow: perSecond(points.shadowDenied),
      marks: data.outages.map(({ fromAt, toAt }) => ({ from: fromAt / 1_000, until: (toAt ?? Date.now()) / 1_000 })),
    }
  }, [data])
  if (data === undefined || view === undefined) return <LoadState of={series} />
  if (view.times.length < 2) return <Empty title={t('collecting')} />
  return (
    <>
      <Chart
        label={t('decisionsPerSecond')}
        times={view.times}
        marks={view.marks}
        syncKey="overview"
        height={220}
        series={[
          { label: t('allowed'), color: 'ok', values: view.allowed, isFilled: true },
          { label: t('rejected'), color: 'bad', values: view.denied, isFilled: true },
          { label: t('delayed'), color: 'warn', values: view.delayed },
          { label: t('shadowRejected'), color: 'shadow', values: view.shadow },
        ]}
      />
      <h3>{t('latency')}</h3>
      <Chart
        label={t('latency')}
        times={view.times}
        marks={view.marks}
        syncKey="overview"
        height={120}
        format={milliseconds}
        series={[
          { label: 'p50', color: 'accent', values: view.points.p50Ms },
          { label: 'p99', color: 'warn', values: view.points.p99Ms },
        ]}
      />
      {data.outages.length > 0 && (
        <ul class="outages">
          {data.outages
            .slice(-3)
            .reverse()
            .map(({ kind, fromAt, toAt, error: cause }) => (
              <li key={`${kind}/${fromAt}`} class="small">
                <span class="key key-warn" aria-hidden="true" />
                <span class="warn">{t(kind === 'STORE' ? 'storeOutage' : 'rulesOutage')}</span>{' '}
                <span class="number">
                  {toAt === null
                    ? t('since', { time: sinceTime(fromAt) })
                    : t('fromUntil', {
                        from: sinceTime(fromAt),
                        until: sinceTime(toAt),
                        time: duration(toAt - fromAt),
                      })}
                </span>{' '}
                <span class="muted">{cause}</span>
              </li>
            ))}
        </ul>
      )}
    </>
  )
}
