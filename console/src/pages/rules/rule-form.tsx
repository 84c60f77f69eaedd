import { algorithmNames, limitScopes } from '../../../../src/core/rule.js'
import type { Issue } from '../../state/api.js'
import type { RuleDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { Field, TextField } from '../../ui/field.js'
import { BandFields } from './band-fields.js'

interface FormProps {
  readonly draft: RuleDocument
  readonly issues: readonly Issue[]
  readonly isNew: boolean
  /** True while the YAML cannot be parsed, so that the form would overwrite it. */
  readonly isLocked: boolean
  readonly onChange: (draft: RuleDocument) => void
}

/** The most used members of a rule. All others are edited as YAML and stay unchanged here. */
export function RuleForm({ draft, issues, isNew, isLocked, onChange }: FormProps) {
  const set = (name: string, value: unknown): void => {
    const { [name]: _, ...rest } = draft
    onChange((value === undefined || value === '' ? rest : { ...draft, [name]: value }) as RuleDocument)
  }
  const issueOf = (name: string): string | undefined => issues.find(({ path }) => path === name)?.message
  const text = (name: string, label: string, placeholder = '') => (
    <TextField
      label={label}
      issue={issueOf(name)}
      value={String(draft[name] ?? '')}
      placeholder={placeholder}
      onValue={(value) => set(name, value)}
    />
  )
  const number = (name: string, label: string, placeholder: string, max?: number) => (
    <TextField
      label={label}
      issue={issueOf(name)}
      type="number"
      min={0}
      {...(max !== undefined && { max })}
      value={typeof draft[name] === 'number' ? (draft[name] as number) : ''}
      placeholder={placeholder}
      onValue={(value) => set(name, value === '' ? undefined : Number(value))}
    />
  )
  const select = (name: string, label: string, fallback: string, values: readonly string[]) => {
    const value = String(draft[name] ?? fallback)
    return (
      <Field label={label} issue={issueOf(name)}>
        <select value={value} onChange={(event) => set(name, event.currentTarget.value)}>
          {(values.includes(value) ? values : [value, ...values]).map((it) => (
            <option key={it} value={it}>
              {it}
            </option>
          ))}
        </select>
      </Field>
    )
  }
  const scope = String(draft.limitScope ?? 'IP').toUpperCase()
  return (
    <fieldset class="form" disabled={isLocked}>
      <legend class="visually-hidden">{t('form')}</legend>
      <div class="field-row">
        {isNew && text('id', 'ID')}
        {text('name', t('name'), draft.id)}
      </div>
      {text('description', t('description'))}
      <div class="field-row">
        <Field label={t('methods')} issue={issueOf('method')}>
          <input
            value={[draft.method ?? []].flat().join(', ')}
            placeholder={t('anyMethod')}
            onChange={(event) => {
              const methods = event.currentTarget.value
                .toUpperCase()
                .split(/[\s,]+/)
                .filter(Boolean)
              set('method', methods.length === 0 ? undefined : methods.length === 1 ? methods[0] : methods)
            }}
          />
        </Field>
        {text('path', t('path'), '/**')}
      </div>
      <div class="field-row">
        {select('limitScope', t('limitScope'), 'IP', limitScopes)}
        {select('algorithm', t('algorithm'), 'TOKEN_BUCKET', algorithmNames)}
      </div>
      {scope === 'COMPOSITE' && (
        <Field label={t('keyFields')} issue={issueOf('compositeKeyFields')}>
          <input
            value={(draft.compositeKeyFields ?? []).join(', ')}
            placeholder="IP, PATH"
            onChange={(event) => set('compositeKeyFields', event.currentTarget.value.split(/[\s,]+/).filter(Boolean))}
          />
        </Field>
      )}
      {scope === 'CUSTOM' && text('keyField', t('keyField'), 'header.x-tenant')}
      <BandFields bands={draft.bands ?? []} issues={issues} onChange={(bands) => set('bands', bands)} />
      <div class="field-row">
        {select('mode', t('mode'), 'ENFORCE', ['ENFORCE', 'SHADOW'])}
        {number('enforcePercent', t('enforcePercent'), '100', 100)}
        {select('onLimitExceed', t('onLimitExceed'), 'REJECT', ['REJECT', 'WAIT_FOR_REFILL'])}
      </div>
      <div class="field-row">
        {number('priority', t('priority'), '0')}
        {number('permits', t('permits'), '1')}
      </div>
      <div class="group">
        <Check
          label={t('enabled')}
          isChecked={draft.enabled ?? true}
          onChange={(on) => set('enabled', on ? undefined : false)}
        />
        <Check
          label={t('overrides')}
          isChecked={draft.overrides ?? false}
          onChange={(on) => set('overrides', on || undefined)}
        />
      </div>
    </fieldset>
  )
}

interface CheckProps {
  readonly label: string
  readonly isChecked: boolean
  readonly onChange: (on: boolean) => void
}

const Check = ({ label, isChecked, onChange }: CheckProps) => (
  <label class="check">
    <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.currentTarget.checked)} />
    {label}
  </label>
)
