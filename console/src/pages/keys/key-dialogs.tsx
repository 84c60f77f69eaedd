import { useMemo, useState } from 'preact/hooks'
import type { Override } from '../../state/overrides.js'
import type { BandDocument, RuleDocument } from '../../state/rules.js'
import { spanText } from '../../text/rule-sentence.js'
import { t } from '../../text/translate.js'
import { Dialog, DialogForm } from '../../ui/dialog.js'
import { Field, TextField } from '../../ui/field.js'
import { BandFields } from '../rules/band-fields.js'
import { sampleRequest } from './sample-request.js'

interface RefundProps {
  readonly rule: RuleDocument
  readonly onClose: () => void
  readonly onSave: (body: object) => Promise<unknown>
}

export function RefundDialog({ rule, onClose, onSave }: RefundProps) {
  const sample = useMemo(() => sampleRequest(rule), [rule])
  const { cost = 'requests' } = rule
  const [amount, setAmount] = useState('1')
  const [path, setPath] = useState(sample.path)
  const [method, setMethod] = useState(sample.method)
  const refunded = (): object =>
    cost === 'requests' ? { permits: Number(amount) } : { permits: 0, costs: { [cost]: Number(amount) } }
  return (
    <Dialog title={t('refund')} onClose={onClose}>
      <DialogForm
        text={t('refund')}
        onSave={() => onSave({ ...sample, method, path, ...refunded() })}
        onClose={onClose}
      >
        <p class="muted">{t('refundHelp')}</p>
        <div class="field-row">
          <TextField label={t('method')} required value={method} onValue={setMethod} />
          <TextField label={t('path')} required value={path} onValue={setPath} />
          <TextField
            label={cost === 'requests' ? t('permitsAsked') : cost}
            type="number"
            min={1}
            required
            value={amount}
            onValue={setAmount}
          />
        </div>
      </DialogForm>
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
  readonly onSave: (body: object) => Promise<unknown>
}

export function OverrideDialog({ name, rule, existing, onClose, onSave }: OverrideProps) {
  const [action, setAction] = useState(existing?.action ?? 'LIMIT')
  const [bands, setBands] = useState<readonly BandDocument[]>(existing?.bands ?? rule.bands ?? [])
  const [expires, setExpires] = useState(() => localTime(existing?.expiresAt))
  const [note, setNote] = useState(existing?.note ?? '')
  return (
    <Dialog title={t('overrideFor', { key: name })} onClose={onClose}>
      <DialogForm
        text={t('save')}
        onSave={() =>
          onSave({
            action,
            ...(action === 'LIMIT' && { bands }),
            ...(expires && { expiresAt: new Date(expires).toISOString() }),
            ...(note && { note }),
          })
        }
        onClose={onClose}
      >
        <Field label={t('action')}>
          <select value={action} onChange={(event) => setAction(event.currentTarget.value)}>
            <option value="LIMIT">{t('actionLimit')}</option>
            <option value="ALLOW">{t('actionAllow')}</option>
            <option value="DENY">{t('actionDeny')}</option>
          </select>
        </Field>
        {action === 'LIMIT' && <BandFields bands={bands} issues={[]} onChange={setBands} />}
        <TextField label={t('expires')} type="datetime-local" value={expires} onValue={setExpires} />
        <TextField label={t('note')} value={note} onValue={setNote} />
      </DialogForm>
    </Dialog>
  )
}

interface BanProps {
  readonly name: string
  readonly rule: RuleDocument
  readonly onClose: () => void
  readonly onSave: (body: { for: string }) => Promise<unknown>
}

export function BanDialog({ name, rule: { ban = {} }, onClose, onSave }: BanProps) {
  const [length, setLength] = useState(() => (typeof ban.for === 'number' ? `${ban.for}s` : (ban.for ?? '')))
  // Without `max`, bans grow to a day if they grow at all.
  const max = ban.max ?? ((ban.factor ?? 1) > 1 ? '1d' : ban.for)
  return (
    <Dialog title={t('banFor', { key: name })} onClose={onClose}>
      <DialogForm text={t('ban')} onSave={() => onSave({ for: length })} onClose={onClose}>
        <p class="muted">{t('banHelp', { max: spanText(max) })}</p>
        <TextField
          label={t('banLength')}
          required
          value={length}
          placeholder="15m"
          onValue={(value) => setLength(value.trim())}
        />
      </DialogForm>
    </Dialog>
  )
}
