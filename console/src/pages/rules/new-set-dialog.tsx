import { useState } from 'preact/hooks'
import { request } from '../../state/api.js'
import { ruleSetPath } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog, DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/field.js'
import { notify } from '../../ui/toast.js'

export function NewSetDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const [id, setId] = useState('')
  const [description, setDescription] = useState('')
  const save = async (): Promise<void> => {
    const body = { ...(description && { description }), rules: [] }
    await request('PUT', ruleSetPath(id), { body, headers: { 'If-None-Match': '*' } })
    notify(t('saved', { rule: id }))
    onDone()
  }
  return (
    <Dialog title={t('newSet')} onClose={onClose}>
      <DialogForm text={t('create')} isReady={id !== ''} onSave={save} onClose={onClose}>
        <TextField label="ID" required value={id} onValue={setId} />
        <TextField label={t('description')} value={description} onValue={setDescription} />
      </DialogForm>
    </Dialog>
  )
}
