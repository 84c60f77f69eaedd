import { useState } from 'preact/hooks'
import type { RuleDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import type { Override } from './bucket-card.js'

/** A path that the pattern matches: `/api/**` → `/api/x`. */
const samplePath = (pattern = '/**'): string => pattern.replaceAll(/\*\*|\*|\{[^}]*\}|:\w+/g, 'x').replaceAll('?', 'x')

interface RefundProps {
  readonly rule: RuleDocument
  readonly onClose: () => void
  readonly onSave: (body: { method: string; path: string; permits: number }) => void
}

export function RefundDialog({ rule, onClose, onSave }: RefundProps) {
  const [permits, setPermits] = useState('1')
  const [path, setPath] = useState(() => samplePath(rule.path))
  const [method, setMethod] = useState(() => [rule.method ?? 'GET'].flat().filter((it) => it !== '*')[0] ?? 'GET')
  return (
    <Dialog title={t('refund')} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          onSave({ method, path, permits: Number(permits) })
        }}
      >
        <p class="muted">{t('refundHelp')}</p>
        <div class="field-row">
          <label class="field">
            <span>{t('method')}</span>
            <input required value={method} onInput={(event) => setMethod(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span>{t('path')}</span>
            <input required value={path} onInput={(event) => setPath(event.currentTarget.value)} />
          </label>
          <label class="field">
            <span>{t('permitsAsked')}</span>
            <input
              type="number"
              min={1}
              required
              value={permits}
              onInput={(event) => setPermits(event.currentTarget.value)}
            />
          </label>
        </div>
        <Buttons onClose={onClose} text={t('refund')} />
      </form>
    </Dialog>
  )
}

interface OverrideProps {
  readonly name: string
  readonly existing: Override | undefined
  readonly onClose: () => void
  readonly onSave: (body: object) => void
}

export function OverrideDialog({ name, existing, onClose, onSave }: OverrideProps) {
  const [action, setAction] = useState(existing?.action ?? 'LIMIT')
  const [capacity, setCapacity] = useState('1000')
  const [window, setWindow] = useState('1m')
  const [expires, setExpires] = useState('')
  const [note, setNote] = useState(existing?.note ?? '')
  return (
    <Dialog title={t('overrideFor', { key: name })} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          onSave({
            action,
            ...(action === 'LIMIT' && { bands: [{ capacity: Number(capacity), window }] }),
            ...(expires && { expiresAt: new Date(expires).toISOString() }),
            ...(note && { note }),
          })
        }}
      >
        <label class="field">
          <span>{t('action')}</span>
          <select value={action} onChange={(event) => setAction(event.currentTarget.value)}>
            <option value="LIMIT">{t('actionLimit')}</option>
            <option value="ALLOW">{t('actionAllow')}</option>
            <option value="DENY">{t('actionDeny')}</option>
          </select>
        </label>
        {action === 'LIMIT' && (
          <div class="field-row">
            <label class="field">
              <span>{t('capacity')}</span>
              <input
                type="number"
                min={0}
                required
                value={capacity}
                onInput={(event) => setCapacity(event.currentTarget.value)}
              />
            </label>
            <label class="field">
              <span>{t('window')}</span>
              <input required value={window} onInput={(event) => setWindow(event.currentTarget.value)} />
            </label>
          </div>
        )}
        <label class="field">
          <span>{t('expires')}</span>
          <input type="datetime-local" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>{t('note')}</span>
          <input value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </label>
        <Buttons onClose={onClose} text={t('save')} />
      </form>
    </Dialog>
  )
}

const Buttons = ({ onClose, text }: { readonly onClose: () => void; readonly text: string }) => (
  <div class="dialog-foot">
    <button type="button" class="button" onClick={onClose}>
      {t('cancel')}
    </button>
    <button type="submit" class="button primary">
      {text}
    </button>
  </div>
)
