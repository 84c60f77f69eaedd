import { useEffect, useState } from 'preact/hooks'
import type { RuleDocument } from '../../state/rules.js'
import { t } from '../../text/translate.js'
import { objectFromYaml, toYaml } from './yaml-text.js'

/** A rule that is edited in a form and as YAML. */
export interface RuleDraft {
  /** The last rule that the text has described. */
  readonly draft: RuleDocument
  readonly text: string
  /** The reason why the text does not describe a rule; empty if it does. */
  readonly problem: string
  /** Replaces the rule and its text. */
  readonly show: (rule: RuleDocument) => void
  /** Replaces the text, and the rule if the text describes one. */
  readonly edit: (text: string) => void
}

export function useRuleDraft(start: () => RuleDocument): RuleDraft {
  const [draft, setDraft] = useState(start)
  const [text, setText] = useState(() => toYaml(draft))
  const [problem, setProblem] = useState('')
  return {
    draft,
    text,
    problem,
    show(rule) {
      setDraft(rule)
      setText(toYaml(rule))
      setProblem('')
    },
    edit(next) {
      const parsed = objectFromYaml(next, t('yamlNotRule'))
      setText(next)
      setProblem(parsed.problem)
      if (parsed.value !== undefined) setDraft(parsed.value as RuleDocument)
    },
  }
}

/** Asks before the page is left while there are changes. */
export function useLeaveWarning(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [isChanged])
}
