import { useMemo } from 'preact/hooks'
import { t } from '../../text/translate.js'
import { useValidation, type Validation } from './validation.js'
import { ValidationList } from './validation-list.js'
import { objectFromYaml } from './yaml-text.js'

/** A rule set that is edited as YAML. */
export interface SetDraft extends Validation {
  readonly text: string
  /** Undefined if the text is not a YAML object. */
  readonly set: object | undefined
  readonly problem: string
  readonly isValid: boolean
}

/** Parses the text, and validates it on the server while it is edited. */
export function useSetDraft(text: string): SetDraft {
  const { value: set, problem } = useMemo(() => objectFromYaml(text, t('yamlNotSet')), [text])
  const validation = useValidation(set, [text])
  const isValid = set !== undefined && validation.isChecked && validation.issues.length === 0
  return { text, set, problem, ...validation, isValid }
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
