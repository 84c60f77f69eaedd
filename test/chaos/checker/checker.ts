/** Judges a recorded run. It knows the limits and the faults, and nothing of how FluxGate decides. */

import type { Entry, History } from '../history.js'
import { checkAdmissions } from './admissions.js'
import { checkDeadlines } from './deadlines.js'
import { checkDegraded } from './degraded.js'

export interface Violation {
  readonly kind:
    | 'over-admission'
    | 'local over-admission'
    | 'release spacing'
    | 'unexplained degraded decision'
    | 'late answer'
    | 'no answer'
    | 'error'
    | 'no limit'
  readonly text: string
  /** The part of the history that shows it, in the order of time. */
  readonly entries: readonly Entry[]
  /** When the request was sent, if there is no entry for it. */
  readonly sentAt?: number
}

export function check(history: History): Violation[] {
  return [
    ...checkAdmissions(history),
    ...checkDegraded(history),
    ...checkDeadlines(history),
    ...history.entries.flatMap((entry) => checkAnswer(entry, history)),
  ]
}

function checkAnswer(entry: Entry, { incidents }: History): Violation[] {
  if (entry.error !== undefined) {
    const isDown = incidents.some(
      ({ down, from, to }) => down === entry.process && entry.startAt <= to && entry.endAt >= from,
    )
    if (isDown) return []
    return [{ kind: 'error', text: `${entry.process} failed without a fault: ${entry.error}`, entries: [entry] }]
  }
  if (entry.charges.length > 0 || (entry.degraded && !entry.allowed)) return []
  return [{ kind: 'no limit', text: `${entry.process} decided without a limit (${entry.reason})`, entries: [entry] }]
}
