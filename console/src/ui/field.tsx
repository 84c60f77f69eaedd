import type { ComponentChildren, InputHTMLAttributes } from 'preact'

interface FieldProps {
  readonly label: ComponentChildren
  readonly issue?: string | undefined
  readonly children: ComponentChildren
}

export const Field = ({ label, issue, children }: FieldProps) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
  <label class="field">
    <span>{label}</span>
    {children}
    {issue !== undefined && <small class="bad">{issue}</small>}
  </label>
)

type TextFieldProps = InputHTMLAttributes<HTMLInputElement> & {
  readonly label: string
  readonly issue?: string | undefined
  readonly onValue: (value: string) => void
}

/** An input with its label. */
export const TextField = ({ label, issue, onValue, ...input }: TextFieldProps) => (
  <Field label={label} issue={issue}>
    <input {...input} aria-invalid={issue !== undefined} onInput={(event) => onValue(event.currentTarget.value)} />
  </Field>
)
