import { useState } from 'preact/hooks'
import { type CandidateDocument, putCandidate } from '../../state/candidates.js'
import { plainSet, type RuleSetDocument, setWithOriginals } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { messageOf } from '../../ui/states.js'
import { notify } from '../../ui/toast.js'
import { SetText, useSetDraft } from '../rules/set-text.js'
import { toYaml } from '../rules/yaml-text.js'

interface CandidateDialogProps {
  readonly set: RuleSetDocument
  readonly candidate: CandidateDocument | undefined
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Starts a candidate from the rules in force, or changes the one that is running. */
export function CandidateDialog({ set, candidate, onClose, onDone }: CandidateDialogProps) {
  const [text, setText] = useState(() => toYaml({ ...plainSet(candidate ?? set), id: set.id }))
  const [problem, setProblem] = useState('')
  const draft = useSetDraft(text)
  const save = async (): Promise<void> => {
    if (draft.set === undefined) return
    try {
      await putCandidate(set.id, setWithOriginals(candidate ?? set, draft.set))
      notify(t('candidateStarted', { set: set.id }))
      onDone()
    } catch (error) {
      setProblem(messageOf(error))
    }
  }
  const title = t(candidate === undefined ? 'startCandidateOf' : 'editCandidateOf', { set: set.id })
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <p class="muted">{t('candidateTextHelp')}</p>
      <SetText label={t('candidateRules')} draft={draft} rows={20} onChange={setText} />
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="button" class="button primary" disabled={!draft.isValid} onClick={save}>
          {t('start')}
        </button>
      </div>
    </Dialog>
  )
}
