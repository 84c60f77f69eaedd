import { useMemo, useState } from 'preact/hooks'
import { get } from '../../state/api.js'
import {
  type Change,
  plainSet,
  putRule,
  putSet,
  type RuleDocument,
  type RuleSetDocument,
  ruleSetPath,
  withoutVersion,
} from '../../state/rules.js'
import { dateAndTime } from '../../text/format.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { Diff } from '../../ui/diff.js'
import { Empty, LoadState, useLoaded } from '../../ui/states.js'
import { notify, notifyError } from '../../ui/toast.js'
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

const isSet = (document: unknown): document is RuleSetDocument =>
  typeof document === 'object' && document !== null && Array.isArray((document as { rules?: unknown }).rules)

function shownText(document: unknown): string {
  if (isSet(document)) return toYaml(plainSet(document))
  return typeof document === 'object' && document !== null ? toYaml(withoutVersion(document)) : ''
}

/** The change of one rule. A change of the whole set counts if it changed the rule. */
function changeOfRule(change: Change, ruleId: string): Change | undefined {
  if (change.ruleId !== null) return change.ruleId === ruleId ? change : undefined
  const ruleOf = (document: unknown): RuleDocument | undefined =>
    isSet(document) ? document.rules.find(({ id }) => id === ruleId) : undefined
  const [before, after] = [ruleOf(change.before), ruleOf(change.after)]
  return shownText(before) === shownText(after) ? undefined : { ...change, before, after }
}

const actions = {
  PUT_SET: 'actionPutSet',
  DELETE_SET: 'actionDeleteSet',
  PUT_RULE: 'actionPutRule',
  DELETE_RULE: 'actionDeleteRule',
} as const

export function HistoryDialog({ ruleSetId, ruleId, onClose, onRestored, onPick }: HistoryProps) {
  const [opened, setOpened] = useState<number>()
  const loaded = useLoaded(
    (signal) => get<{ changes: readonly Change[] }>(`${ruleSetPath(ruleSetId)}/history?limit=200`, signal),
    [ruleSetId],
  )
  const { data } = loaded
  const changes = useMemo(
    () => data?.changes.flatMap((change) => (ruleId === undefined ? change : (changeOfRule(change, ruleId) ?? []))),
    [data],
  )
  const restore = async (document: RuleDocument | RuleSetDocument): Promise<void> => {
    if (onPick !== undefined && isRule(document)) {
      onPick(withoutVersion(document))
      onClose()
      return
    }
    try {
      await (isSet(document) ? putSet(document) : putRule(ruleSetId, document))
      notify(t('restored', { rule: document.id }))
      onRestored()
      onClose()
    } catch (failure) {
      notifyError(failure)
    }
  }
  return (
    <Dialog title={t('historyOf', { name: ruleId ?? ruleSetId })} onClose={onClose} isWide>
      {changes === undefined && <LoadState of={loaded} />}
      {changes?.length === 0 && <Empty title={t('noHistory')}>{t('noHistoryHelp')}</Empty>}
      <ol class="history">
        {changes?.map((change, i) => (
          <li key={`${change.at}/${change.version}`}>
            <div class="group">
              <strong>{t(actions[change.action as keyof typeof actions] ?? 'actionPutRule')}</strong>
              {change.ruleId !== null && <code>{change.ruleId}</code>}
              <span class="muted small">
                {t(change.by === 'outside' ? 'outsideAt' : 'byAt', { by: change.by, time: dateAndTime(change.at) })}
              </span>
              <span class="spacer" />
              <button
                type="button"
                class="button small"
                aria-expanded={opened === i}
                onClick={() => setOpened(opened === i ? undefined : i)}
              >
                {t('showChange')}
              </button>
              {(isRule(change.before) || isSet(change.before)) && (
                <RestoreButton document={change.before} onClick={restore} />
              )}
            </div>
            {opened === i && <Diff before={shownText(change.before)} after={shownText(change.after)} />}
          </li>
        ))}
      </ol>
    </Dialog>
  )
}

interface RestoreProps {
  readonly document: RuleDocument | RuleSetDocument
  readonly onClick: (document: RuleDocument | RuleSetDocument) => void
}

const RestoreButton = ({ document, onClick }: RestoreProps) => (
  <button type="button" class="button small" onClick={() => onClick(document)}>
    {t(isSet(document) ? 'restoreSet' : 'restoreBefore')}
  </button>
)
