import { useMemo } from 'preact/hooks'
import { get } from '../../state/api.js'
import { healthChanges } from '../../state/events.js'
import { linkTo } from '../../state/route.js'
import type { Health, KeyCount, Summary } from '../../state/statistics.js'
import { percent, short, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { Table } from '../../ui/table.js'
import { Tiles } from '../../ui/tiles.js'
import { HealthCards } from './health-cards.js'
import { History } from './history.js'
import { RecentRejections } from './recent-rejections.js'

export function Overview() {
  const summary = useLoaded((signal) => get<Summary>('/api/stats', signal), [], 2_000)
  const health = useLoaded(loadHealth, [healthChanges.value], 2_000)
  if (summary.data === undefined) return <LoadState of={summary} />
  return (
    <>
      <div class="page-head">
        <h1>{t('overview')}</h1>
      </div>
      <HealthCards health={health.data} degraded={summary.data.totals.degraded} />
      <Rates summary={summary.data} />
      <History />
      <div class="columns">
        <RecentRejections />
        <TopKeys />
      </div>
      <RuleCounts summary={summary.data} />
    </>
  )
}

/** The route answers 503 while the server stops or is degraded; its body is the health in both cases. */
async function loadHealth(signal: AbortSignal): Promise<Health> {
  const response = await fetch('/health/ready', { signal, cache: 'no-store' })
  return (await response.json()) as Health
}

const rateSeconds = 5

function Rates({ summary: { seconds, totals } }: { readonly summary: Summary }) {
  const rates = useMemo(() => {
    const last = seconds.slice(-rateSeconds)
    const rate = (pick: (it: Summary['seconds'][number]) => number): number =>
      last.reduce((sum, it) => sum + pick(it), 0) / Math.max(1, last.length)
    return {
      allowed: rate((it) => it.allowed),
      denied: rate((it) => it.denied),
      delayed: rate((it) => it.delayed),
      shadow: rate((it) => it.shadowDenied),
    }
  }, [seconds])
  const all = totals.allowed + totals.delayed + totals.denied
  const tiles = [
    ['ok', 'allowed', rates.allowed, totals.allowed],
    ['bad', 'rejected', rates.denied, totals.denied],
    ['warn', 'delayed', rates.delayed, totals.delayed],
    ['shadow', 'shadowRejected', rates.shadow, totals.shadowDenied],
  ] as const
  return (
    <Tiles
      label={t('rates')}
      tiles={tiles.map(([color, name, rate, total]) => ({
        color,
        name: t(name),
        value: [short(rate), <small key="unit">/s</small>],
        detail: `${t('inTotal', { count: whole(total) })}${all > 0 && name === 'rejected' ? ` · ${percent(total / all)}` : ''}`,
      }))}
    />
  )
}

function TopKeys() {
  const loaded = useLoaded(
    (signal) => get<{ keys: readonly KeyCount[] }>('/api/stats/top?by=denied&limit=8', signal),
    [],
    2_000,
  )
  const { data } = loaded
  const keys = data?.keys.filter(({ denied }) => denied > 0) ?? []
  const most = Math.max(1, ...keys.map(({ denied }) => denied))
  return (
    <section class="card" aria-labelledby="top-keys">
      <h2 id="top-keys">{t('topKeys')}</h2>
      {data === undefined && <LoadState of={loaded} />}
      {data !== undefined && keys.length === 0 && <Empty title={t('noRejectedKeys')}>{t('noRejectedKeysHelp')}</Empty>}
      <ul class="bars">
        {keys.map(({ ruleSetId, ruleId, key, denied, requests }) => (
          <li key={`${ruleSetId}/${ruleId}/${key}`}>
            <a href={linkTo(['keys'], { key, ...(ruleSetId && { set: ruleSetId }), ...(ruleId && { rule: ruleId }) })}>
              <code class="ellipsis">{key}</code>
              <span class="muted small ellipsis">{ruleId ?? '–'}</span>
              <span class="number bad">{short(denied)}</span>
              <span class="muted small number">{t('ofRequests', { count: short(requests) })}</span>
            </a>
            <span class="bar" aria-hidden="true">
              <span class="bar-bad" style={{ width: `${(100 * denied) / most}%` }} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Exact as long as four columns fit on a phone. */
const count = (value: number): string => (value < 1_000_000 ? whole(value) : short(value))

function RuleCounts({ summary: { rules } }: { readonly summary: Summary }) {
  const shown = rules.filter(({ ruleId }) => ruleId !== null).slice(0, 50)
  return (
    <section class="card" aria-labelledby="by-rule">
      <h2 id="by-rule">{t('byRule')}</h2>
      {shown.length === 0 ? (
        <Empty title={t('noDecisions')}>{t('noDecisionsHelp')}</Empty>
      ) : (
        <Table
          class="counts"
          head={[
            [t('rule')],
            [t('ruleSet'), 'wide-only'],
            [t('allowed'), 'number'],
            [t('rejected'), 'number'],
            [t('delayed'), 'number'],
            [t('shadowRejected'), 'number'],
            [t('share'), 'share-column wide-only'],
          ]}
        >
          {shown.map(({ ruleSetId, ruleId, allowed, denied, delayed, shadowDenied }) => (
            <tr key={`${ruleSetId}/${ruleId}`}>
              <td>
                <a href={linkTo(['rules', ruleSetId ?? '', ruleId ?? ''])}>{ruleId}</a>
                <span class="muted small narrow-only">{ruleSetId}</span>
              </td>
              <td class="muted wide-only">{ruleSetId}</td>
              <td class="number">{count(allowed)}</td>
              <td class={denied > 0 ? 'number bad' : 'number'}>{count(denied)}</td>
              <td class="number">{count(delayed)}</td>
              <td class="number">{count(shadowDenied)}</td>
              <td class="wide-only">
                <Share allowed={allowed} delayed={delayed} denied={denied} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  )
}

function Share({ allowed, delayed, denied }: Record<'allowed' | 'delayed' | 'denied', number>) {
  const all = Math.max(1, allowed + delayed + denied)
  const parts = [
    ['ok', allowed],
    ['warn', delayed],
    ['bad', denied],
  ] as const
  return (
    <span class="bar bar-stacked" role="img" aria-label={t('shareLabel', { share: percent(denied / all) })}>
      {parts.map(([color, count]) => (
        <span key={color} class={`bar-${color}`} style={{ width: `${(100 * count) / all}%` }} />
      ))}
    </span>
  )
}
