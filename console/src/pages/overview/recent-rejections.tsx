import { useMemo } from 'preact/hooks'
import { get } from '../../state/api.js'
import { liveDecisions } from '../../state/events.js'
import { linkTo } from '../../state/route.js'
import type { RecentDecision } from '../../state/statistics.js'
import { timeOfDay } from '../../text/format.js'
import { rejectionSentence } from '../../text/sentences.js'
import { t } from '../../text/translate.js'
import { Empty, Failure, Loading, useLoaded } from '../../ui/states.js'

const shown = 12

/** Rejections from before the page was opened, followed by those of the event stream. */
export function RecentRejections() {
  const loaded = useLoaded(
    (signal) => get<{ decisions: readonly RecentDecision[] }>('/api/decisions/recent?limit=500', signal),
    [],
  )
  const live = liveDecisions.value
  const rejections = useMemo(() => {
    const liveRejected = live.filter(({ allowed }) => !allowed)
    const oldestLive = live.at(-1)?.at ?? Number.POSITIVE_INFINITY
    const earlier = (loaded.data?.decisions ?? []).filter(({ allowed, at }) => !allowed && at < oldestLive)
    return [...liveRejected, ...earlier].slice(0, shown)
  }, [live, loaded.data])
  return (
    <section class="card" aria-labelledby="rejections">
      <h2 id="rejections">{t('recentRejections')}</h2>
      {loaded.data === undefined && loaded.error === undefined && <Loading />}
      {loaded.error !== undefined && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== undefined && rejections.length === 0 && (
        <Empty title={t('noRejections')}>{t('noRejectionsHelp')}</Empty>
      )}
      <ul class="rejections">
        {rejections.map((decision, i) => (
          <li key={`${decision.at}/${i}`}>
            <time class="muted small" dateTime={new Date(decision.at).toISOString()}>
              {timeOfDay(decision.at)}
            </time>
            <div>
              <a class="sentence" href={linkTo(['rules', decision.ruleSetId ?? '', decision.ruleId ?? ''])}>
                {rejectionSentence(decision)}
              </a>
              <span class="muted small detail">
                {decision.path !== null && (
                  <code>
                    {decision.method ?? ''} {decision.path}
                  </code>
                )}
                {decision.key !== null && <code>{decision.key}</code>}
                {decision.weight > 1 && <span>{t('represents', { count: decision.weight })}</span>}
              </span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
