import { useState } from 'preact/hooks'
import { get } from '../../state/api.js'
import { type Change, putRule, type RuleDocument, ruleSetPath, withoutVersion } from '../../state/rules.js'
import { dateAndTime } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { Diff } from '../../ui/diff.js'
import { Empty, Failure, Loading, messageOf, useLoaded } from '../../ui/states.js'
import { notify } from '../../ui/toast.js'
import { toYaml } from './yaml-text.js'

interface HistoryProps {
  readonly ruleSetId: string
  /** Shows only the changes of this rule. */
  readonly ruleId?: string
  readonly onClose: () => void
  readonly onRestored: () => void
  /** Called with the chosen version instead of restoring it at once. */
  readonly onPick?: (rule: RuleDocument) => void
}

const isRule = (document: unknown): document is RuleDocument =>
  typeof document === 'object' && document !== null && 'bands' in document

const shownText = (document: unknown): string =>
  typeof document === 'object' && document !== null ? toYaml(cleaned(document)) : ''

function cleaned(document: object): object {
  const { rules, ...rest } = withoutVersion(document) as { rules?: readonly object[] }
  return rules === undefined ? rest : { ...rest, rules: rules.map(withoutVersion) }
}

const actions = {
  PUT_SET: 'actionPutSet',
  DELETE_SET: 'actionDeleteSet',
  PUT_RULE: 'actionPutRule',
  DELETE_RULE: 'actionDeleteRule',
} as const

export function HistoryDialog({ ruleSetId, ruleId, onClose, onRestored, onPick }: HistoryProps) {
  const [opened, setOpened] = useState<number>()
  const { data, error, reload } = useLoaded(
    (signal) => get<{ changes: readonly Change[] }>(`${ruleSetPath(ruleSetId)}/history?limit=200`, signal),
    [ruleSetId],
  )
  const changes = data?.changes.filter((change) => ruleId === undefined || change.ruleId === ruleId)
  const restore = async (rule: RuleDocument): Promise<void> => {
    if (onPick !== undefined) {
      onPick(withoutVersion(rule))
      onClose()
      return
    }
    try {
      await putRule(ruleSetId, rule)
      notify(t('restored', { rule: rule.id }))
      onRestored()
      onClose()
    } catch (failure) {
      notify(messageOf(failure), { isError: true })
    }
  }
  return (
    <Dialog title={t('historyOf', { name: ruleId ?? ruleSetId })} onClose={onClose} isWide>
      {changes === undefined && (error === undefined ? <Loading /> : <Failure error={error} retry={reload} />)}
      {changes?.length === 0 && <Empty title={t('noHistory')}>{t('noHistoryHelp')}</Empty>}
      <ol class="history">
        {changes?.map((change, i) => (
          <li key={`${change.at}/${change.version}`}>
            <div class="group">
              <strong>{t(actions[change.action as keyof typeof actions] ?? 'actionPutRule')}</strong>
              {change.ruleId !== null && <code>{change.ruleId}</code>}
              <span class="muted small">{t('byAt', { by: change.by, time: dateAndTime(change.at) })}</span>
              <span class="spacer" />
              <button
                type="button"
                class="button small"
                aria-expanded={opened === i}
                onClick={() => setOpened(opened === i ? undefined : i)}
              >
                {t('showChange')}
              </button>
              {isRule(change.before) && (
                <button type="button" class="button small" onClick={() => restore(change.before as RuleDocument)}>
                  {t('restoreBefore')}
                </button>
              )}
            </div>
            {opened === i && <Diff before={shownText(change.before)} after={shownText(change.after)} />}
          </li>
        ))}
      </ol>
    </Dialog>
  )
}
