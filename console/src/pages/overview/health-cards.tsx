import type { Health } from '../../state/statistics.js'
import { sinceTime, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'

interface Part {
  readonly name: string
  readonly status: string
  readonly sinceAt: number | null
  readonly error: string | null
}

export function HealthCards({ health, degraded }: { readonly health: Health | undefined; readonly degraded: number }) {
  if (health === undefined) return null
  const parts: Part[] = [
    { name: t('store'), ...health.store },
    { name: t('ruleStore'), ...health.rules },
  ]
  return (
    <section class="health" aria-label={t('health')}>
      {parts.map(({ name, status, sinceAt, error }) => (
        <div key={name} class={`health-card ${status === 'UP' ? 'is-up' : 'is-down'}`}>
          <span class="dot" aria-hidden="true" />
          <strong>{name}</strong>
          <span class={status === 'UP' ? 'ok' : 'bad'}>{statusText(status)}</span>
          {sinceAt !== null && <span class="muted small">{t('since', { time: sinceTime(sinceAt) })}</span>}
          {error !== null && <span class="health-error">{error}</span>}
        </div>
      ))}
      {degraded > 0 && (
        <div class="health-card is-degraded">
          <span class="dot" aria-hidden="true" />
          <strong>{t('degradedDecisions')}</strong>
          <span class="warn number">{whole(degraded)}</span>
          <span class="muted small">{t('degradedHelp')}</span>
        </div>
      )}
    </section>
  )
}

function statusText(status: string): string {
  if (status === 'UP') return t('up')
  if (status === 'DOWN') return t('down')
  return status === 'STALE' ? t('stale') : status
}
