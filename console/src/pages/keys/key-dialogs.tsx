import { useState } from 'preact/hooks'
import type { BandDocument, RuleDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Dialog } from '../../ui/dialog.js'
import { BandFields } from '../rules/band-fields.js'
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

/** A time as `datetime-local` expects it: in the zone of the viewer, without a suffix. */
function localTime(text: string | undefined): string {
  if (text === undefined) return ''
  const at = new Date(text)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

interface OverrideProps {
  readonly name: string
  readonly rule: RuleDocument
  readonly existing: Override | undefined
  readonly onClose: () => void
  readonly onSave: (body: object) => void
}

export function OverrideDialog({ name, rule, existing, onClose, onSave }: OverrideProps) {
  const [action, setAction] = useState(existing?.action ?? 'LIMIT')
  const [bands, setBands] = useState<readonly BandDocument[]>(existing?.bands ?? rule.bands ?? [])
  const [expires, setExpires] = useState(() => localTime(existing?.expiresAt))
  const [note, setNote] = useState(existing?.note ?? '')
  return (
    <Dialog title={t('overrideFor', { key: name })} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          onSave({
            action,
            ...(action === 'LIMIT' && { bands }),
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
        {action === 'LIMIT' && <BandFields bands={bands} issues={[]} onChange={setBands} />}
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
