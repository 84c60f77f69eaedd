import type { BucketBand } from '../state/buckets.js'
import { duration, whole, windowName } from '../text/format.js'
import { t } from '../text/translate.js'

interface LevelProps extends BucketBand {
  /** Default: the current time. */
  readonly now?: number
}

/** The level of one bucket: permits left, and the time until it is full or its window ends. */
export function Level({ label, limit, remaining, resetAt, windowMs, reserved, now = Date.now() }: LevelProps) {
  const share = limit === 0 ? 0 : Math.min(1, remaining / limit)
  const color = share === 0 ? 'bad' : share < 0.25 ? 'warn' : 'ok'
  const left = resetAt - now
  // A part of the reserved permits may have refilled since.
  const reservedShare = limit === 0 ? 0 : Math.min(1 - share, (reserved?.permits ?? 0) / limit)
  return (
    <div class="level">
      <span class="level-name">{label}</span>
      <span
        class="bar level-bar"
        role="img"
        aria-label={t('levelLabel', { label, remaining: whole(remaining), limit: whole(limit) })}
      >
        <span class={`bar-${color}`} style={{ width: `${100 * share}%` }} />
        {reservedShare > 0 && <span class="bar-reserved" style={{ width: `${100 * reservedShare}%` }} />}
      </span>
      <span class="number">
        {whole(remaining)} / {whole(limit)}
      </span>
      <span class="muted small level-reset">
        {windowMs === 0
          ? t('inProgress', { count: whole(limit - remaining) })
          : t('per', { window: windowName(windowMs) })}
        {left > 0 && remaining < limit && ` · ${t(windowMs === 0 ? 'freeIn' : 'fullIn', { time: duration(left) })}`}
        {reserved !== undefined && (
          <span class="level-reserved">
            <span class="key key-reserved" aria-hidden="true" />{' '}
            {t('reserved', { permits: whole(reserved.permits), count: whole(reserved.reservations) })}
          </span>
        )}
      </span>
    </div>
  )
}
