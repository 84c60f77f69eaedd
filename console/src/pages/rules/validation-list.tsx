import type { Issue } from '../../state/api.js'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'

interface ValidationListProps {
  readonly id: string
  /** Why the text cannot be parsed; empty if it can. */
  readonly problem: string
  readonly issues: readonly Issue[]
  readonly isChecked: boolean
  /** Shown if there are no issues. */
  readonly valid: string
}

/** The messages of the server about the text above it. */
export const ValidationList = ({ id, problem, issues, isChecked, valid }: ValidationListProps) => (
  <ul id={id} class="issues" aria-live="polite">
    {problem !== '' && <li class="bad">{problem}</li>}
    {problem === '' &&
      issues.map(({ path, message }) => (
        <li class="bad" key={path + message}>
          {path && <code>{path}</code>} {message}
        </li>
      ))}
    {problem === '' && issues.length === 0 && (
      <li class={isChecked ? 'ok' : 'muted'}>
        {isChecked && <Icon name="check" size={15} />} {isChecked ? valid : t('validating')}
      </li>
    )}
  </ul>
)
