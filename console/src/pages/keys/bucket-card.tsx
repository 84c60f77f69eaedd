import { useState } from 'preact/hooks'
import { request } from '../../state/api.js'
import { type ActiveBan, liftBan, loadBan, type PlacedRule, setBan } from '../../state/bans.js'
import { bucketPath, loadBucket } from '../../state/buckets.js'
import { loadOverride, type Override, overridePath as pathOfOverride } from '../../state/overrides.js'
import { linkTo } from '../../state/route.js'
import { dateAndTime, duration, sinceTime, whole } from '../../text/format.js'
import { ruleSentence } from '../../text/rule-sentence.js'
import { t } from '../../text/translate.js'
import { Level } from '../../ui/level.js'
import { LoadState, useLoaded } from '../../ui/states.js'
import { notify, notifyError } from '../../ui/toast.js'
import { BanDialog, OverrideDialog, RefundDialog } from './key-dialogs.js'

interface BucketCardProps extends PlacedRule {
  readonly name: string
}

export function BucketCard({ ruleSetId, rule, name }: BucketCardProps) {
  const [dialog, setDialog] = useState<'refund' | 'override' | 'ban'>()
  const path = bucketPath({ ruleSetId, rule }, name)
  const bucket = useLoaded(
    async (signal) => {
      const [bands, ban] = await Promise.all([
        loadBucket({ ruleSetId, rule }, name, signal),
        loadBan({ ruleSetId, rule }, name, signal),
      ])
      return { bands, ban }
    },
    [path],
    1_000,
  )
  const overridePath = pathOfOverride({ ruleSetId, rule }, name)
  const override = useLoaded(
    async (signal) => (rule.overrides === true ? loadOverride({ ruleSetId, rule }, name, signal) : undefined),
    [overridePath],
  )
  const reload = (): void => {
    bucket.reload()
    override.reload()
  }
  const change = async (work: Promise<unknown>, text: string, undo?: () => Promise<unknown>): Promise<void> => {
    try {
      await work
      notify(text, undo && { undo: () => attempt(undo().finally(reload)) })
    } finally {
      reload()
    }
  }
  const attempt = (work: Promise<unknown>): void => {
    work.catch(notifyError)
  }
  const saveOverride = (body: object): Promise<unknown> => request('PUT', overridePath, { body })
  const active = override.data
  // The slots of requests in progress are released, not refunded.
  const takesHolds = bucket.data?.bands.some(({ windowMs }) => windowMs === 0) ?? false
  const ban = bucket.data?.ban
  const deleteOverride = ({ key, ...previous }: Override): Promise<void> =>
    change(request('DELETE', overridePath), t('overrideDeleted'), () => saveOverride(previous))
  const lift = ({ until }: ActiveBan): Promise<void> =>
    change(liftBan(ruleSetId, rule.id, name), t('banLifted', { key: name }), () =>
      setBan(ruleSetId, rule.id, name, { until }),
    )
  return (
    <section class="card" aria-labelledby={`bucket-${ruleSetId}-${rule.id}`}>
      <div class="page-head">
        <h2 id={`bucket-${ruleSetId}-${rule.id}`}>
          <a href={linkTo(['rules', ruleSetId, rule.id])}>{rule.name ?? rule.id}</a>
        </h2>
        <span class="muted">{ruleSetId}</span>
        {rule.mode === 'SHADOW' && <span class="badge badge-shadow">{t('shadow')}</span>}
        {active && <span class="badge badge-accent">{t('overrideIs', { action: active.action })}</span>}
        {ban && <span class="badge badge-bad">{t('banned')}</span>}
      </div>
      <p class="muted">{ruleSentence(rule)}</p>
      {active && (active.note || active.expiresAt) && (
        <p class="small">
          {active.note} {active.expiresAt && t('expiresAt', { time: dateAndTime(active.expiresAt) })}
        </p>
      )}
      {ban && (
        <p class="bad small">
          {t('bannedFor', { time: duration(ban.retryAfterMs), until: sinceTime(Date.parse(ban.until)) })}
          {ban.count > 1 && ` ${t('banCount', { count: whole(ban.count) })}`}
        </p>
      )}
      {bucket.data === undefined && <LoadState of={bucket} />}
      <div class="levels">
        {bucket.data?.bands.map((band) => (
          <Level {...band} key={band.label} />
        ))}
      </div>
      <div class="group">
        <button
          type="button"
          class="button small"
          onClick={() => attempt(change(request('DELETE', path), t('resetDone', { key: name })))}
        >
          {t('reset')}
        </button>
        {!takesHolds && (
          <button type="button" class="button small" onClick={() => setDialog('refund')}>
            {t('refund')}
          </button>
        )}
        {rule.overrides === true ? (
          <button type="button" class="button small" onClick={() => setDialog('override')}>
            {t('override')}
          </button>
        ) : (
          <span class="muted small">{t('overridesOff')}</span>
        )}
        {active && (
          <button type="button" class="button small danger" onClick={() => attempt(deleteOverride(active))}>
            {t('deleteOverride')}
          </button>
        )}
        {rule.ban !== undefined && (
          <button type="button" class="button small" onClick={() => setDialog('ban')}>
            {t(ban === undefined ? 'ban' : 'changeBan')}
          </button>
        )}
        {ban && (
          <button type="button" class="button small danger" onClick={() => attempt(lift(ban))}>
            {t('liftBan')}
          </button>
        )}
      </div>
      {dialog === 'refund' && (
        <RefundDialog
          rule={rule}
          onClose={() => setDialog(undefined)}
          onSave={(body) =>
            change(request('POST', '/api/ratelimit/refund', { body: { ruleSetId, key: name, ...body } }), t('refunded'))
          }
        />
      )}
      {dialog === 'override' && (
        <OverrideDialog
          name={name}
          rule={rule}
          existing={active}
          onClose={() => setDialog(undefined)}
          onSave={(body) => change(saveOverride(body), t('overrideSaved'))}
        />
      )}
      {dialog === 'ban' && (
        <BanDialog
          name={name}
          rule={rule}
          onClose={() => setDialog(undefined)}
          onSave={(body) => change(setBan(ruleSetId, rule.id, name, body), t('banSet', { key: name }))}
        />
      )}
    </section>
  )
}
