import { useMemo } from 'preact/hooks'
import { get } from '../../state/api.js'
import { liveRejections } from '../../state/events.js'
import { linkTo } from '../../state/route.js'
import type { RecentDecision } from '../../state/statistics.js'
import { timeOfDay, whole } from '../../text/format.js'
import { rejectionSentence } from '../../text/sentences.js'
import { t } from '../../text/translate.js'
import { Empty, Failure, Loading, useLoaded } from '../../ui/states.js'

const shown = 10
/** Events are sampled under high load, so the list is also loaded from time to time. */
const reloadMs = 5_000

interface RejectionGroup {
  /** The latest of the rejections. */
  readonly latest: RecentDecision
  readonly count: number
}

/** Rejections of the same key by the same band are one line, because a client over its limit is rejected many times. */
function groupsOf(rejections: readonly RecentDecision[]): RejectionGroup[] {
  const groups = new Map<string, { latest: RecentDecision; count: number }>()
  for (const rejection of rejections) {
    const { ruleSetId, ruleId, band, reason, key } = rejection
    const id = JSON.stringify([ruleSetId, ruleId, band, reason, key])
    const known = groups.get(id)
    if (known !== undefined) known.count += 1
    else if (groups.size < shown) groups.set(id, { latest: rejection, count: 1 })
  }
  return [...groups.values()]
}

/** The rejections that the server has kept, and those that have arrived since. */
export function RecentRejections() {
  const loaded = useLoaded(
    (signal) => get<{ decisions: readonly RecentDecision[] }>('/api/decisions/recent?allowed=false&limit=200', signal),
    [],
    reloadMs,
  )
  const live = liveRejections.value
  const groups = useMemo(() => {
    const kept = loaded.data?.decisions ?? []
    const newest = kept[0]?.at ?? 0
    return groupsOf([...live.filter(({ at }) => at > newest), ...kept])
  }, [live, loaded.data])
  return (
    <section class="card" aria-labelledby="rejections">
      <h2 id="rejections">{t('recentRejections')}</h2>
      {loaded.data === undefined && loaded.error === undefined && <Loading />}
      {loaded.error !== undefined && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== undefined && groups.length === 0 && (
        <Empty title={t('noRejections')}>{t('noRejectionsHelp')}</Empty>
      )}
      <ul class="rejections">
        {groups.map(({ latest, count }) => (
          <li key={JSON.stringify([latest.ruleSetId, latest.ruleId, latest.band, latest.reason, latest.key])}>
            <time class="muted small" dateTime={new Date(latest.at).toISOString()}>
              {timeOfDay(latest.at)}
            </time>
            <div>
              <a class="sentence" href={linkTo(['rules', latest.ruleSetId ?? '', latest.ruleId ?? ''])}>
                {rejectionSentence(latest)}
              </a>
              <span class="muted small detail">
                {latest.path !== null && (
                  <code>
                    {latest.method ?? ''} {latest.path}
                  </code>
                )}
                {latest.key !== null && <KeyLink rejection={latest} name={latest.key} />}
              </span>
            </div>
            {count > 1 && (
              <span class="badge badge-bad" title={t('sameRejections', { count: whole(count) })}>
                × {whole(count)}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function KeyLink({
  rejection: { ruleSetId, ruleId },
  name,
}: {
  readonly rejection: RecentDecision
  readonly name: string
}) {
  const query = { key: name, ...(ruleSetId !== null && { set: ruleSetId }), ...(ruleId !== null && { rule: ruleId }) }
  return (
    <a href={linkTo(['keys'], query)}>
      <code>{name}</code>
    </a>
  )
}
