import { useEffect, useState } from 'preact/hooks'
import { type Issue, request } from '../../state/api.js'
import { messageOf } from '../../ui/states.js'

export interface Validation {
  readonly issues: readonly Issue[]
  /** True once the server has validated the current document. */
  readonly isChecked: boolean
}

const unchecked: Validation = { issues: [], isChecked: false }
const pauseMs = 200

/** Validates a rule set on the server while it is edited. Undefined: there is nothing to validate yet. */
export function useValidation(set: object | undefined, deps: readonly unknown[]): Validation {
  const [validation, setValidation] = useState(unchecked)
  useEffect(() => {
    if (set === undefined) {
      setValidation(unchecked)
      return
    }
    // The issues of the previous text stay until the response arrives, so that the page does not flicker.
    setValidation(({ issues }) => ({ issues, isChecked: false }))
    const stop = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const options = { body: set, signal: stop.signal }
        const { body } = await request<{ errors: readonly Issue[] }>('POST', '/api/rules/validate', options)
        setValidation({ issues: body.errors, isChecked: true })
      } catch (error) {
        if (!stop.signal.aborted) setValidation({ issues: [{ path: '', message: messageOf(error) }], isChecked: false })
      }
    }, pauseMs)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, deps)
  return validation
}
