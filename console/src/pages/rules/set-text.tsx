import { useMemo } from 'preact/hooks'
import { t } from '../../text/translate.js'
import { useValidation, type Validation } from './validation.js'
import { ValidationList } from './validation-list.js'
import { fromYaml } from './yaml-text.js'

/** A rule set that is edited as YAML. */
export interface SetDraft extends Validation {
  readonly text: string
  /** Undefined if the text is not a YAML object. */
  readonly set: object | undefined
  readonly problem: string
  readonly isValid: boolean
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parse(text: string): Pick<SetDraft, 'set' | 'problem'> {
  const { value, problem } = fromYaml(text)
  if (problem !== '') return { set: undefined, problem }
  return isObject(value) ? { set: value, problem: '' } : { set: undefined, problem: t('yamlNotSet') }
}

/** Parses the text, and validates it on the server while it is edited. */
export function useSetDraft(text: string): SetDraft {
  const parsed = useMemo(() => parse(text), [text])
  const validation = useValidation(parsed.set, [parsed])
  const isValid = parsed.set !== undefined && validation.isChecked && validation.issues.length === 0
  return { text, ...parsed, ...validation, isValid }
}

interface SetTextProps {
  readonly label: string
  readonly draft: SetDraft
  readonly rows: number
  readonly onChange: (text: string) => void
}

export const SetText = ({ label, draft, rows, onChange }: SetTextProps) => (
  <>
    <textarea
      class="mono yaml"
      rows={rows}
      spellcheck={false}
      aria-label={label}
      aria-describedby="set-issues"
      value={draft.text}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
    <ValidationList id="set-issues" {...draft} valid={t('setValid')} />
  </>
)
