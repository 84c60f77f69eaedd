import { useState } from 'preact/hooks'
import { ApiError, get, request } from '../../state/api.js'
import { linkTo } from '../../state/route.js'
import { type BandDocument, type RuleDocument, rulePath } from '../../state/rules.js'
import type { BandDecision } from '../../state/statistics.js'
import { dateAndTime } from '../../text/format.js'
import { ruleSentence } from '../../text/rule-sentence.js'
import { t } from '../../text/translate.js'
import { Level } from '../../ui/level.js'
import { Failure, Loading, messageOf, useLoaded } from '../../ui/states.js'
import { notify } from '../../ui/toast.js'
import { OverrideDialog, RefundDialog } from './key-dialogs.js'

export interface Override {
  readonly key: string
  readonly action: string
  readonly bands?: readonly BandDocument[]
  readonly expiresAt?: string
  readonly note?: string
}

interface BucketCardProps {
  readonly ruleSetId: string
  readonly rule: RuleDocument
  readonly name: string
}

export function BucketCard({ ruleSetId, rule, name }: BucketCardProps) {
  const [dialog, setDialog] = useState<'refund' | 'override'>()
  const query = new URLSearchParams({ ruleSetId, ruleId: rule.id, key: name }).toString()
  const bucket = useLoaded(
    (signal) => get<{ bands: readonly Omit<BandDecision, 'key'>[] }>(`/api/buckets?${query}`, signal),
    [query],
    1_000,
  )
  const overridePath = `${rulePath(ruleSetId, rule.id)}/overrides/${encodeURIComponent(name)}`
  const override = useLoaded(
    async (signal): Promise<Override | undefined> => {
      if (rule.overrides !== true) return undefined
      try {
        return await get<Override>(overridePath, signal)
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined
        throw error
      }
    },
    [overridePath],
  )
  const run = async (work: () => Promise<unknown>, text: string): Promise<void> => {
    try {
      await work()
      notify(text)
    } catch (error) {
      notify(messageOf(error), { isError: true })
    }
    bucket.reload()
    override.reload()
  }
  const active = override.data
  return (
    <section class="card" aria-labelledby={`bucket-${ruleSetId}-${rule.id}`}>
      <div class="page-head">
        <h2 id={`bucket-${ruleSetId}-${rule.id}`}>
          <a href={linkTo(['rules', ruleSetId, rule.id])}>{rule.name ?? rule.id}</a>
        </h2>
        <span class="muted">{ruleSetId}</span>
        {rule.mode === 'SHADOW' && <span class="badge badge-shadow">{t('shadow')}</span>}
        {active && <span class="badge badge-accent">{t('overrideIs', { action: active.action })}</span>}
      </div>
      <p class="muted">{ruleSentence(rule)}</p>
      {active && (active.note || active.expiresAt) && (
        <p class="small">
          {active.note} {active.expiresAt && t('expiresAt', { time: dateAndTime(active.expiresAt) })}
        </p>
      )}
      {bucket.data === undefined &&
        (bucket.error === undefined ? <Loading /> : <Failure error={bucket.error} retry={bucket.reload} />)}
      {bucket.data?.bands.map((band) => (
        <Level {...band} key={band.label} />
      ))}
      <div class="group">
        <button
          type="button"
          class="button small"
          onClick={() => run(() => request('DELETE', `/api/buckets?${query}`), t('resetDone', { key: name }))}
        >
          {t('reset')}
        </button>
        <button type="button" class="button small" onClick={() => setDialog('refund')}>
          {t('refund')}
        </button>
        {rule.overrides === true ? (
          <button type="button" class="button small" onClick={() => setDialog('override')}>
            {t('override')}
          </button>
        ) : (
          <span class="muted small">{t('overridesOff')}</span>
        )}
        {active && (
          <button
            type="button"
            class="button small danger"
            onClick={() => run(() => request('DELETE', overridePath), t('overrideDeleted'))}
          >
            {t('deleteOverride')}
          </button>
        )}
      </div>
      {dialog === 'refund' && (
        <RefundDialog
          rule={rule}
          onClose={() => setDialog(undefined)}
          onSave={(body) => {
            setDialog(undefined)
            void run(
              () => request('POST', '/api/ratelimit/refund', { body: { ruleSetId, key: name, ...body } }),
              t('refunded'),
            )
          }}
        />
      )}
      {dialog === 'override' && (
        <OverrideDialog
          name={name}
          rule={rule}
          existing={active}
          onClose={() => setDialog(undefined)}
          onSave={(body) => {
            setDialog(undefined)
            void run(() => request('PUT', overridePath, { body }), t('overrideSaved'))
          }}
        />
      )}
    </section>
  )
}
