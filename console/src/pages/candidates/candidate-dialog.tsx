import { useState } from 'preact/hooks'
import { type CandidateDocument, putCandidate } from '../../state/candidates.js'
import { plainSet, type RuleSetDocument, setWithOriginals } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog, DialogForm } from '../../ui/dialog.js'
import { notify } from '../../ui/toast.js'
import { SetText, useSetDraft } from '../rules/set-text.js'
import { toYaml } from '../rules/yaml-text.js'

interface CandidateDialogProps {
  readonly set: RuleSetDocument
  readonly candidate: CandidateDocument | undefined
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Starts a candidate from the current rules, or changes the one that is running. */
export function CandidateDialog({ set, candidate, onClose, onDone }: CandidateDialogProps) {
  const [text, setText] = useState(() => toYaml({ ...plainSet(candidate ?? set), id: set.id }))
  const draft = useSetDraft(text)
  const save = async (): Promise<void> => {
    await putCandidate(set.id, setWithOriginals(candidate ?? set, draft.set ?? {}))
    notify(t('candidateStarted', { set: set.id }))
    onDone()
  }
  const title = t(candidate === undefined ? 'startCandidateOf' : 'editCandidateOf', { set: set.id })
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <DialogForm text={t('start')} isReady={draft.isValid} onSave={save} onClose={onClose}>
        <p class="muted">{t('candidateTextHelp')}</p>
        <SetText label={t('candidateRules')} draft={draft} rows={20} onChange={setText} />
      </DialogForm>
    </Dialog>
  )
}
