import { type BannedKey, liftBan, loadBans, setBan } from '../../state/bans.js'
import { linkTo } from '../../state/route.js'
import type { RuleSetDocument } from '../../state/rules.js'
import { duration, whole } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { Table } from '../../ui/table.js'
import { notify, notifyError } from '../../ui/toast.js'

/** The active bans. Not shown if no rule bans keys. */
export function BannedKeys({ sets }: { readonly sets: readonly RuleSetDocument[] }) {
  const rules = sets.flatMap(({ id: ruleSetId, rules }) =>
    rules.filter(({ ban, enabled = true }) => ban !== undefined && enabled).map((rule) => ({ ruleSetId, rule })),
  )
  const bans = useLoaded((signal) => loadBans(rules, signal), [rules.length], 3_000)
  if (rules.length === 0) return null
  const attempt = (work: Promise<unknown>): void => {
    work.catch(notifyError).finally(bans.reload)
  }
  const lift = async ({ ruleSetId, ruleId, key, until }: BannedKey): Promise<void> => {
    await liftBan(ruleSetId, ruleId, key)
    notify(t('banLifted', { key }), { undo: () => attempt(setBan(ruleSetId, ruleId, key, { until })) })
  }
  return (
    <section class="card" aria-labelledby="banned">
      <h2 id="banned">{t('bannedKeys')}</h2>
      {bans.data === undefined && <LoadState of={bans} />}
      {bans.data?.length === 0 && <Empty title={t('noBans')}>{t('noBansHelp')}</Empty>}
      {bans.data !== undefined && bans.data.length > 0 && (
        <Table
          head={[
            [t('key')],
            [t('rule'), 'wide-only'],
            [t('banEnds'), 'number'],
            [t('banNumber'), 'number wide-only'],
            [t('action'), 'number'],
          ]}
        >
          {bans.data.map((ban) => {
            const { ruleSetId, ruleId, key, retryAfterMs, count } = ban
            return (
              <tr key={`${ruleSetId}/${ruleId}/${key}`}>
                <td>
                  <a href={linkTo(['keys'], { key, set: ruleSetId, rule: ruleId })}>
                    <code>{key}</code>
                  </a>
                  <span class="muted small narrow-only">
                    {ruleSetId} / {ruleId}
                  </span>
                </td>
                <td class="muted nowrap wide-only">
                  {ruleSetId} / {ruleId}
                </td>
                <td class="number">{t('in', { time: duration(retryAfterMs) })}</td>
                <td class="number wide-only">{count === 0 ? t('byHand') : whole(count)}</td>
                <td class="number">
                  <button type="button" class="button small" onClick={() => attempt(lift(ban))}>
                    {t('liftBan')}
                    <span class="visually-hidden"> {key}</span>
                  </button>
                </td>
              </tr>
            )
          })}
        </Table>
      )}
    </section>
  )
}
