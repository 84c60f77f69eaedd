import { useState } from 'preact/hooks'
import { request } from '../../state/api.js'
import { ruleSetPath } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { messageOf } from '../../ui/states.js'
import { notify } from '../../ui/toast.js'

export function NewSetDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const [id, setId] = useState('')
  const [description, setDescription] = useState('')
  const [problem, setProblem] = useState('')
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      const body = { ...(description && { description }), rules: [] }
      await request('PUT', ruleSetPath(id), { body, headers: { 'If-None-Match': '*' } })
      notify(t('saved', { rule: id }))
      onDone()
      onClose()
    } catch (error) {
      setProblem(messageOf(error))
    }
  }
  return (
    <Dialog title={t('newSet')} onClose={onClose}>
      <form class="form" onSubmit={save}>
        <label class="field">
          <span>ID</span>
          <input required value={id} onInput={(event) => setId(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>{t('description')}</span>
          <input value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
        </label>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button type="submit" class="button primary" disabled={id === ''}>
            {t('create')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
